"""What executors do with a piece of a step: read objects, and write the object that comes of them.

Where the step was committed already, they compare what they wrote with what was.

This runs in Python workers of Spark, which have this package from the coordinator (`shipped`), and
credentials of the storage from their own environment. A task has files of its own, which are gone
when it ends. What goes wrong reaches the coordinator as text, because Spark carries nothing else.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odfbuild.engine.contract import SliceFile
from odfbuild.engine.event_windows import EventWindows, count_late
from odfbuild.engine.in_pieces import Recorded, StorageAddress
from odfbuild.engine.slice import StagedSlice, write_records
from odfbuild.engine.spark.internals.status import release
from odfbuild.errors import Code, EngineProblem, EnvironmentProblem, OdfbuildError
from odfbuild.odf.chain.step import PromisedSlice
from odfbuild.odf.model import DataSlice
from odfbuild.odf.operation import APPEND
from odfbuild.odf.timestamp import Timestamp
from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.records.first_difference import first_difference
from odfbuild.records.intact import check_slice, damage_of
from odfbuild.records.uuids import is_uuid, to_text
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.storage import PROBES, Storage
from odfbuild.values import Value

_BATCH_ROWS = 16_384
"""So many records at a time go to Spark, which has memory for some batches outside of its heap."""
_MARK = "odfbuild-problem:"
_MARKED = re.compile(_MARK + r"([\w=+/-]+)")

REPORT = pa.schema(
    [
        ("piece", pa.int32()),
        ("records", pa.int64()),
        ("size", pa.int64()),
        ("physical", pa.string()),
        ("logical", pa.string()),
        ("latest", pa.int64()),
        ("difference", pa.string()),
    ]
)
"""What a task tells of the slice that it wrote; times are milliseconds of Unix."""
DAMAGE = pa.schema(
    [
        ("piece", pa.int32()),
        ("code", pa.string()),
        ("message", pa.string()),
        ("help", pa.string()),
    ]
)
"""What a task tells of an object: nothing but its number where it is whole."""
LATE = pa.schema([("records", pa.int64())])
"""What a task tells of late records."""
SEEN = pa.schema(
    [
        ("pyspark", pa.string()),
        ("pyarrow", pa.string()),
        ("size", pa.int64()),
        ("written", pa.string()),
    ]
)
"""What a worker tells: its releases, the bytes of an object, and what it wrote there."""


class Reading(Value):
    """How pieces are read: `layout` are the columns and the form in which Spark takes them over.

    Of these only `columns` are read, if that is said; others are empty. With `operations`, records
    may have been retracted or corrected, too. Else it is an error that says so of the input
    `alias`.
    """

    pieces: tuple[tuple[DataSlice, ...], ...]
    layout: pa.Schema
    vocab: Vocabulary
    storage: StorageAddress
    alias: str
    operations: bool = False
    columns: frozenset[str] | None = None


class Writing(Value):
    """How slices are written: as for `write_records`, the offsets piece by piece.

    If `recorded` says what they were, piece by piece, they are compared with that and not kept.
    """

    dataset: str
    schema: pa.Schema
    vocab: Vocabulary
    first_offsets: tuple[int, ...]
    system_time: Timestamp
    storage: StorageAddress
    recorded: tuple[Recorded, ...] = ()


class Checking(Value):
    """Slices of a dataset that are checked, each with its column of offsets."""

    dataset: str
    slices: tuple[tuple[DataSlice, str], ...]
    storage: StorageAddress
    logical: bool


class Watching(Value):
    """Slices of an input with the watermarks before them, and the windows that they may miss."""

    slices: tuple[PromisedSlice, ...]
    vocab: Vocabulary
    windows: EventWindows
    storage: StorageAddress


# --- Tasks ---


def look(
    storage: StorageAddress,
    data: DataSlice | None,
    token: str | None,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Tell of the worker, and whether it may read in the storage; with a `token`, also write.

    Its owner may not let it remove anything, so what it wrote is left to the coordinator.
    """
    for _ in batches:
        pass
    with told_of():
        there = _storage(storage)
        size = None if data is None else there.size("data", data.physical_hash)
        name = token and f"{PROBES}/{token}-{_number()}"
        if name:
            there.write(name, b"odfbuild")
    told = [[release()], [pa.__version__], [size], [name]]
    yield pa.record_batch(told, schema=SEEN)


def read(how: Reading, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The records of pieces, whose numbers come in `batches`, in the order of their offsets."""
    with told_of(), own_folder() as folder:
        storage = _storage(how.storage)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for data in how.pieces[number]:
                    yield from _records(how, storage, data, folder / str(data.physical_hash))


def write(how: Writing, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write the records of the piece that this task computes, and tell what became of them."""
    with told_of(), own_folder() as folder:
        yield written(how, _number(), (each for each in batches if each.num_rows), folder)


def written(
    how: Writing, number: int, records: Iterable[pa.RecordBatch], folder: Path
) -> pa.RecordBatch:
    """Write the records of a piece into the storage, or compare them; what there is to tell."""
    recorded = how.recorded[number] if how.recorded else None
    staged = write_records(
        records,
        dataset=how.dataset,
        schema=how.schema,
        vocab=how.vocab,
        first_offset=how.first_offsets[number],
        system_time=recorded.system_time if recorded else how.system_time,
        target=folder / "slice.parquet",
    )
    if staged is None:
        told: list[object] = [number, 0, 0, None, None, None, None]
    else:
        data, latest, difference = staged.data, staged.max_event_time, None
        if recorded is None:
            # Also where it is there already: what is young is no garbage for others.
            _storage(how.storage).upload("data", data.physical_hash, staged.path)
        else:
            difference = _difference(_storage(how.storage), recorded.data, staged)
        staged.path.unlink()
        hashes = [str(data.physical_hash), str(data.logical_hash)]
        millis = latest.millis if latest else None
        told = [number, staged.records, data.size, *hashes, millis, difference]
    return pa.record_batch([[each] for each in told], schema=REPORT)


def _difference(storage: Storage, recorded: DataSlice | None, staged: StagedSlice) -> str | None:
    """The first record in which a slice differs from the recorded one, as JSON."""
    if recorded is None or recorded.logical_hash == staged.data.logical_hash:
        return None
    file = staged.path.with_name("recorded.parquet")
    _fetch(storage, recorded, file)
    found = first_difference(file, staged.path)
    file.unlink()
    return None if found is None else msgspec.json.encode(found).decode()


def check(how: Checking, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What is wrong with slices, whose numbers come in `batches`."""
    with told_of(), own_folder() as folder:
        store = DatasetStore(folder, how.dataset, _storage(how.storage))
        for batch in batches:
            for number in batch.column(0).to_pylist():
                data, column = how.slices[number]
                hash = data.physical_hash
                file = store.object_path("data", hash)
                whole = partial(check_slice, file, data, column, logical=how.logical)
                found = damage_of(store, "data", hash, whole)
                file.unlink(missing_ok=True)
                told = [found.code, found.message, found.help] if found else [None] * 3
                yield pa.record_batch([[each] for each in (number, *told)], schema=DAMAGE)


def _number() -> int:
    """Which of the tasks of its job this is, from 0 on."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None, "it runs in a task of Spark"
    return int(context.partitionId())


def _records(
    how: Reading, storage: Storage, data: DataSlice, file: Path
) -> Iterator[pa.RecordBatch]:
    """The records of one object in the form that Spark takes over."""
    _fetch(storage, data, file)
    operation = how.vocab.operation_type
    rows = 0
    with pq.ParquetFile(file, pre_buffer=False) as opened:
        known = {*opened.schema_arrow.names} & (how.columns or {*how.layout.names})
        wanted = [name for name in how.layout.names if name in known]
        columns = list(dict.fromkeys([*wanted, operation]))
        for batch in opened.iter_batches(_BATCH_ROWS, columns=columns):
            appended = pc.equal(batch.column(operation), APPEND)
            if not how.operations and not pc.all(appended).as_py():
                raise NeedsOperations(how.alias)
            rows += batch.num_rows
            yield _as_spark_takes_it(batch, how.layout)
    file.unlink()
    if rows != data.records:
        raise AssertionError(f"{data.physical_hash} has {rows} records")


def late(how: Watching, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """How many records of slices, whose numbers come in `batches`, came behind a window."""
    with told_of(), own_folder() as folder:
        storage = _storage(how.storage)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                data, promised = how.slices[number]
                file = folder / str(data.physical_hash)
                _fetch(storage, data, file)
                found = count_late([SliceFile(file, promised)], how.vocab, how.windows)
                file.unlink()
                yield pa.record_batch([[found]], schema=LATE)


def _fetch(storage: Storage, data: DataSlice, file: Path) -> None:
    """Bring an object, whose hash is checked, to a file."""
    if not storage.get("data", data.physical_hash, file):
        raise EngineProblem(
            f"the storage {storage.address} has no object {data.physical_hash}",
            code=Code.WORKER_WITHOUT_STORAGE,
            notes=("nothing was committed",),
            help="run `odfbuild storage push` where the data is",
        )


def _as_spark_takes_it(batch: pa.RecordBatch, layout: pa.Schema) -> pa.RecordBatch:
    """Columns by position: Spark matches them so. Columns that came later are empty."""
    columns = []
    for field in layout:
        if field.name not in batch.schema.names:
            columns.append(pa.nulls(batch.num_rows, field.type))
            continue
        values = batch.column(field.name)
        sixteen = is_uuid(values.type) or pa.types.is_fixed_size_binary(values.type)
        if sixteen and pa.types.is_string(field.type):
            values = to_text(values)
        columns.append(values.cast(field.type))
    return pa.RecordBatch.from_arrays(columns, schema=layout)


def _storage(where: StorageAddress) -> Storage:
    return Storage(where.address, where.root)


@contextmanager
def own_folder() -> Iterator[Path]:
    """A folder where Spark lets executors put files, or among temporary ones."""
    places = os.environ.get("SPARK_EXECUTOR_DIRS") or os.environ.get("SPARK_LOCAL_DIRS") or ""
    place = next((each for each in places.replace(":", ",").split(",") if each), None)
    folder = Path(tempfile.mkdtemp(prefix="odfbuild-", dir=place))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# --- What goes wrong ---


class NotByTasks(OdfbuildError):
    """Nothing is wrong, but it has to go through the coordinator."""


class NeedsOperations(NotByTasks):
    """Records of the input were retracted or corrected, which this way cannot follow."""


class TaskError(RuntimeError):
    """An error of a task as text in its message, which `problem_of` reads."""


@contextmanager
def told_of() -> Iterator[None]:
    """Give errors the form in which they reach the coordinator."""
    try:
        yield
    except OdfbuildError as error:
        said = json.dumps(_described(_of_worker(error)))
        raise TaskError(_MARK + base64.urlsafe_b64encode(said.encode()).decode()) from None


def _of_worker(error: OdfbuildError) -> OdfbuildError:
    """E1682 in place of an error of the machine, which is the worker's and not ours."""
    if not isinstance(error, EnvironmentProblem) or isinstance(error, EngineProblem):
        return error
    return EngineProblem(
        f"a worker cannot use the storage: {error.message}",
        code=Code.WORKER_WITHOUT_STORAGE,
        notes=("nothing was committed",),
        help="give workers the address and the credentials, such as by spark.executorEnv.NAME in "
        "`engine.conf`, and install there what odfbuild uses for that storage",
    )


def _described(error: OdfbuildError) -> dict[str, object]:
    return {
        "kind": type(error).__name__,
        "message": error.message,
        "code": error.code,
        "notes": list(error.notes),
        "help": error.help,
        "dataset": error.dataset,
    }


def problem_of(text: str) -> OdfbuildError | None:
    """The error that a task told, from what Spark says of its end; `None` where it told none."""
    found = _MARKED.search(text)
    if found is None:
        return None
    said = json.loads(base64.urlsafe_b64decode(found[1]))
    name = said.pop("kind")
    kind = next((each for each in _all(OdfbuildError) if each.__name__ == name), OdfbuildError)
    return kind(**{**said, "notes": tuple(said["notes"])})


def _all(kind: type[OdfbuildError]) -> Sequence[type[OdfbuildError]]:
    return [kind, *(below for each in kind.__subclasses__() for below in _all(each))]
