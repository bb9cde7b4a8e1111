"""Let executors carry out the steps of a `PiecesTask`: a task for each, all of them in one job.

Each partition is one piece. Records go through the query in the order in which they are read,
because nothing in it looks at more than one of them: there is no shuffle. So a task has the records
of its slice in their order, as the way through the coordinator has, and writes the same bytes.
Offsets have to be known beforehand; where the query may leave records out, a job counts them.
"""

from __future__ import annotations

import re
import secrets
import sys
from collections.abc import Iterable, Iterator, Set
from contextlib import contextmanager
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import msgspec
import pyarrow as pa

from odfbuild.engine.contract import InputSlices
from odfbuild.engine.in_pieces import PiecesTask, StorageAddress, WrittenPiece
from odfbuild.engine.release import release_of_spark
from odfbuild.engine.spark.connect.expression_text import NotExpressible
from odfbuild.engine.spark.connect.remote import over_tasks
from odfbuild.engine.spark.connect.workers import cores
from odfbuild.engine.spark.internals.catalyst import Catalyst
from odfbuild.engine.spark.internals.node import Node
from odfbuild.engine.spark.internals.records import layout_of
from odfbuild.engine.spark.internals.status import executor_addresses
from odfbuild.engine.spark.pieces import tasks
from odfbuild.engine.spark.pieces.shipped import ship, ship_to_server
from odfbuild.engine.spark.queries.checked import checked, known_result
from odfbuild.engine.spark.queries.foreign import in_spark
from odfbuild.engine.spark.queries.step import steps_of
from odfbuild.engine.spark.queries.validate import result_of
from odfbuild.engine.spark.results.frames import in_views, marked
from odfbuild.errors import EngineProblem, OdfbuildError
from odfbuild.odf.model import DataSlice, OffsetInterval
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp
from odfbuild.records.first_difference import RecordDifference
from odfbuild.store.storage import PROBES, Storage
from odfbuild.values import Value

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ONE_FOR_ONE = frozenset({"Project", "SubqueryAlias", "View", "MapInArrow", "Range"})
"""Nodes of a plan that give as many records as they take."""
_LOOKS = 64
"""Tasks that tell of their workers: so many meet all of them, or nearly."""
_LOOKED: WeakKeyDictionary[Any, tuple[StorageAddress, frozenset[str], bool]] = WeakKeyDictionary()
"""The workers of a session that were found able to use a storage."""


def write_in_pieces(
    spark: SparkSession, task: PiecesTask, scratch: Path, cluster: str, server: Any = None
) -> tuple[WrittenPiece, ...] | None:
    """Carry out the steps; `None` where they have to go through the coordinator.

    `scratch` is a folder of the session, and `cluster` is what messages call its workers. With the
    session of a `server` of Spark Connect that one computes, and `spark` checks and plans.
    """
    view = InputSlices(alias=task.alias, schema=task.input_schema, vocab=task.input_vocab)
    report = checked(spark, task.dataset, task.transform, [view], task.vocab)
    if (
        not report.row_wise
        or task.transform.temporal_tables
        or task.vocab.operation_type in known_result(report).columns
        or any(pa.types.is_nested(each.type) for each in task.input_schema)
    ):
        return None
    only_reads = bool(task.recorded)
    place = Workplace(task.dataset, task.storage, scratch, cluster, server, only_reads)
    try:
        with by_tasks(spark, place, task.pieces[0][0]):
            return _written(spark, task, server)
    except tasks.NotByTasks:
        return None
    except NotExpressible as why:
        raise EngineProblem(
            f"{cluster} cannot be asked for the result of '{task.dataset}': {why}",
            code="E1670",
            dataset=task.dataset,
            notes=("nothing was committed",),
            help=f"say it in another way, {_OR_NOT}",
        ) from None


class Workplace(Value):
    """Who works for a dataset, and where: `cluster` is what messages call the workers.

    `scratch` is a folder of the session. They may be those of the session of a `server`. Where
    nothing is kept that they write, they need no right to do so (`only_reads`).
    """

    dataset: str
    storage: StorageAddress
    scratch: Path
    cluster: str
    server: Any = None
    only_reads: bool = False


@contextmanager
def by_tasks(spark: SparkSession, place: Workplace, seen: DataSlice | None) -> Iterator[None]:
    """Let workers run Python in it, which have to see an object, and give their errors a form."""
    try:
        if place.server is None:
            ship(spark, place.scratch)
        else:
            ship_to_server(place.server, place.scratch)
        _check_workers(spark, place, seen)
        yield
    except (OdfbuildError, NotExpressible):
        raise
    except Exception as error:
        found = tasks.problem_of(str(error)) or _unable(
            str(error), place.cluster, is_server=place.server is not None
        )
        if found is None:
            raise
        raise found from None


def _written(spark: SparkSession, task: PiecesTask, server: Any) -> tuple[WrittenPiece, ...]:
    with _over_pieces(spark, task, server) as (plan, result):
        counts: list[int] | None = None
        offsets = [each.first_offset for each in task.recorded]
        if not task.recorded:
            counts = _counts(result, plan, task)
            offsets = [*accumulate(counts, initial=task.first_offset)]
        how = tasks.Writing(
            task.dataset,
            task.schema,
            task.vocab,
            tuple(offsets),
            task.system_time,
            task.storage,
            task.recorded,
        )
        rows = result.mapInArrow(partial(tasks.write, how), ddl(tasks.REPORT)).collect()
    by_number = {row.piece: row for row in rows}
    if sorted(row.piece for row in rows) != list(range(len(task.pieces))):
        why = f"of {len(task.pieces)} tasks {len(rows)} told of what they wrote"
        raise wrong(task.dataset, why)
    found = []
    for number in range(len(task.pieces)):
        row = by_number[number]
        if counts is not None and len(counts) > 1 and row.records != counts[number]:
            why = f"piece {number} has {row.records:,} records, counted were {counts[number]:,}"
            raise wrong(task.dataset, why)
        found.append(piece_of(row, offsets[number]))
    if not task.recorded:
        check_stored(task.dataset, task.storage, found)
    return tuple(found)


@contextmanager
def _over_pieces(
    spark: SparkSession, task: PiecesTask, server: Any
) -> Iterator[tuple[Node, DataFrame]]:
    """Plan and lazy result of the query, with a partition for each piece."""
    frame = _read(spark, task)
    catalyst = Catalyst(spark)
    catalyst.show(frame, task.alias)
    transform = in_spark(spark, task.transform, task.dataset, [task.alias])
    plan, result = result_of(spark, steps_of(transform))
    plan = catalyst.inline(plan)
    if server is None:
        yield plan, result
        return
    with over_tasks(server, result, frame, _read(server, task)) as there:
        yield plan, there


def _read(session: Any, task: PiecesTask) -> DataFrame:
    """All records of the pieces, which tasks read when they are asked for."""
    shape = in_views(task.input_schema, task.input_vocab)
    layout = layout_of(shape)
    how = tasks.Reading(task.pieces, layout, task.input_vocab, task.storage, task.alias)
    size = len(task.pieces)
    numbers = session.range(0, size, 1, size)
    return marked(numbers.mapInArrow(partial(tasks.read, how), shape), task.input_schema)


def _counts(result: DataFrame, plan: Node, task: PiecesTask) -> list[int]:
    """How many records each piece will have, as far as offsets depend on it."""
    read = [sum(data.records for data in piece) for piece in task.pieces]
    if len(read) == 1 or _is_one_for_one(plan):
        return read
    numbers = result.selectExpr("spark_partition_id() AS piece").groupBy("piece").count()
    found = {row[0]: row[1] for row in numbers.collect()}
    return [found.get(number, 0) for number in range(len(read))]


def _is_one_for_one(plan: Node) -> bool:
    return plan.kind in _ONE_FOR_ONE and all(map(_is_one_for_one, plan.children))


def piece_of(row: Any, first: int) -> WrittenPiece:
    """What a task told of the slice that it wrote, whose first offset is `first`."""
    if not row.records:
        return WrittenPiece(None)
    data = DataSlice(
        logical_hash=Multihash.parse(row.logical),
        physical_hash=Multihash.parse(row.physical),
        offset_interval=OffsetInterval(start=first, end=first + row.records - 1),
        size=row.size,
    )
    difference = row.difference and msgspec.json.decode(row.difference, type=RecordDifference)
    return WrittenPiece(data, Timestamp.from_millis(row.latest), difference)


def ddl(schema: pa.Schema) -> str:
    """The columns of what tasks tell, as Spark is told of them."""
    names = {pa.int32(): "INT", pa.int64(): "BIGINT", pa.string(): "STRING"}
    return ", ".join(f"{field.name} {names[field.type]}" for field in schema)


# --- Checks ---

_OR_NOT = "or let the coordinator do it: `slices: coordinator` below `engine` in odfbuild.yaml"


def _check_workers(spark: SparkSession, place: Workplace, data: DataSlice | None) -> None:
    """Raise `EngineProblem` unless workers can do it: before they get any work.

    Asked again where other workers have come, which servers of Spark Connect do not tell. One may
    come later still; each task fails where it cannot read or write.
    """
    context, server = spark.sparkContext, place.server
    known = context if server is None else server
    addresses = executor_addresses(context) if server is None else frozenset[str]()
    now = (place.storage, addresses, place.only_reads)
    if _LOOKED.get(known) == now:
        return
    token = None if place.only_reads else secrets.token_hex(8)
    parallel = context.defaultParallelism if server is None else cores(server)
    number = min(_LOOKS, max(2, parallel))
    look = partial(tasks.look, place.storage, data, token)
    numbers = (server or spark).range(0, number, 1, number)
    rows = numbers.mapInArrow(look, ddl(tasks.SEEN)).collect()
    storage = _storage(place.storage)
    seen: Set[str | None] = {e.name for e in storage.files(PROBES)} if token else {None}
    for row in rows if token else ():
        storage.discard(row.written)
    for row in rows:
        check_seen(row, place, data, seen)
    _LOOKED[known] = now


def check_seen(row: Any, place: Workplace, data: DataSlice | None, there: Set[str | None]) -> None:
    """Raise `EngineProblem` unless a worker that told `SEEN` can do it.

    `there` are the objects that this machine finds where workers wrote theirs.
    """
    if row.pyspark != (release := release_of_spark()):
        raise EngineProblem(
            f"a worker of {place.cluster} has Spark {row.pyspark}, and this machine has {release}, "
            "so that equal queries could have other results",
            code="E1675",
            notes=("nothing was committed",),
            help=f"install Spark {release} on all workers; {_OR_NOT}",
        )
    if row.pyarrow != pa.__version__:
        raise EngineProblem(
            f"a worker of {place.cluster} has PyArrow {row.pyarrow}, and this machine has "
            f"{pa.__version__}, so that equal records would become other files",
            code="E1681",
            notes=("nothing was committed",),
            help=f"install pyarrow=={pa.__version__} on all workers; {_OR_NOT}",
        )
    if row.written not in there or (data is not None and row.size != data.size):
        why = f"it wrote {row.written}, which is not there"
        if data is not None and row.size != data.size:
            found = "no such object" if row.size is None else f"one of {row.size:,} bytes"
            why = f"of object {data.physical_hash} it sees {found}"
        raise EngineProblem(
            f"a worker of {place.cluster} does not see what this machine sees in "
            f"{place.storage.address}",
            code="E1682",
            notes=(why, "nothing was committed"),
            help="let workers use the same endpoint, such as by "
            "spark.executorEnv.AWS_ENDPOINT_URL in `engine.conf`; a storage in a folder must "
            f"be a folder that all workers see; {_OR_NOT}",
        )


def check_stored(dataset: str, where: StorageAddress, pieces: Iterable[WrittenPiece]) -> None:
    """Raise `EngineProblem` E1683 unless what tasks say they wrote lies in the storage."""
    storage = _storage(where)
    for each in pieces:
        data = each.data
        if data is not None and (size := storage.size("data", data.physical_hash)) != data.size:
            found = "is not there" if size is None else f"has {size:,} bytes there"
            why = f"object {data.physical_hash} of {data.size:,} bytes {found}, and was written"
            raise wrong(dataset, why)


def _storage(where: StorageAddress) -> Storage:
    return Storage(where.address, where.root)


def wrong(dataset: str, why: str) -> EngineProblem:
    """E1683: what tasks told cannot be."""
    return EngineProblem(
        f"what tasks told of the slices of '{dataset}' does not fit what they did",
        code="E1683",
        dataset=dataset,
        notes=(why, "nothing was committed"),
        help=f"run the same command again; {_OR_NOT}",
    )


_NO_PYTHON = re.compile(r"Cannot run program|PYTHON_VERSION_MISMATCH|different minor version")
_NO_MODULE = re.compile(
    r"No module named '?([\w.]+)|(\w+) ?>= ?[\d.]+ must be installed|cannot import name '(\w+)'"
)


def _unable(text: str, cluster: str, *, is_server: bool = False) -> EngineProblem | None:
    """The error of a worker that cannot run Python tasks; `None` for anything else."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    if _NO_PYTHON.search(text):
        what = re.search(r".*(?:Cannot run program|VERSION_MISMATCH|minor version).*", text)
        return EngineProblem(
            f"workers of {cluster} have no Python {version}, with which tasks run",
            code="E1680",
            notes=(" ".join((what[0] if what else "").split())[:300], "nothing was committed"),
            help=f"install Python {version} there, and name it in PYSPARK_PYTHON where "
            f"{'the server' if is_server else 'odfbuild'} runs; {_OR_NOT}",
        )
    missing = _NO_MODULE.search(text)
    if missing is None:
        return None
    return EngineProblem(
        f"workers of {cluster} lack a library: {next(filter(None, missing.groups()))}",
        code="E1681",
        notes=("nothing was committed",),
        help=f"install pyarrow=={pa.__version__}, numpy, msgspec and the libraries of the extra "
        f"for the storage, such as odfbuild[s3], in the Python of all workers; {_OR_NOT}",
    )
