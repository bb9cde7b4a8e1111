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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import pyarrow as pa

from odfbuild.engine.contract import InputSlices
from odfbuild.engine.in_pieces import PiecesTask, StorageAddress, WrittenPiece
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
from odfbuild.errors import EngineProblem
from odfbuild.odf.model import DataSlice, OffsetInterval
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp
from odfbuild.store.storage import PROBES, Storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ONE_FOR_ONE = frozenset({"Project", "SubqueryAlias", "View", "MapInArrow", "Range"})
"""Nodes of a plan that give as many records as they take."""
_LOOKS = 64
"""Tasks that tell of their workers: so many meet all of them, or nearly."""
_LOOKED: WeakKeyDictionary[Any, tuple[StorageAddress, frozenset[str]]] = WeakKeyDictionary()
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
    try:
        if server is None:
            ship(spark, scratch)
        else:
            ship_to_server(server, scratch)
        _check_workers(spark, task, cluster, server)
        return _written(spark, task, server)
    except tasks.NeedsOperations:
        return None
    except NotExpressible as why:
        raise EngineProblem(
            f"{cluster} cannot be asked for the result of '{task.dataset}': {why}",
            code="E1670",
            dataset=task.dataset,
            notes=("nothing was committed",),
            help=f"say it in another way, {_OR_NOT}",
        ) from None
    except EngineProblem:
        raise
    except Exception as error:
        there = server is not None
        found = tasks.problem_of(str(error)) or _unable(str(error), cluster, is_server=there)
        if isinstance(found, tasks.NeedsOperations):
            return None
        if found is None:
            raise
        raise found from None


def _written(spark: SparkSession, task: PiecesTask, server: Any) -> tuple[WrittenPiece, ...]:
    with _over_pieces(spark, task, server) as (plan, result):
        counts = _counts(result, plan, task)
        offsets = accumulate(counts, initial=task.first_offset)
        how = tasks.Writing(
            task.dataset, task.schema, task.vocab, tuple(offsets), task.system_time, task.storage
        )
        told = result.mapInArrow(partial(tasks.write, how), _ddl(tasks.REPORT)).collect()
    by_number = {row.piece: row for row in told}
    if sorted(row.piece for row in told) != list(range(len(task.pieces))):
        raise _wrong(task, f"of {len(task.pieces)} tasks {len(told)} told of what they wrote")
    found = []
    for number, first in enumerate(how.first_offsets[:-1]):
        row = by_number[number]
        if len(task.pieces) > 1 and row.records != counts[number]:
            raise _wrong(
                task, f"piece {number} has {row.records:,} records, counted were {counts[number]:,}"
            )
        found.append(_piece(row, first))
    _check_stored(task, found)
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
    how = tasks.Reading(task.pieces, layout_of(shape), task.input_vocab, task.storage)
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


def _piece(row: Any, first: int) -> WrittenPiece:
    if not row.records:
        return WrittenPiece(None)
    data = DataSlice(
        logical_hash=Multihash.parse(row.logical),
        physical_hash=Multihash.parse(row.physical),
        offset_interval=OffsetInterval(start=first, end=first + row.records - 1),
        size=row.size,
    )
    return WrittenPiece(data, Timestamp.from_millis(row.latest))


def _ddl(schema: pa.Schema) -> str:
    names = {pa.int32(): "INT", pa.int64(): "BIGINT", pa.string(): "STRING"}
    return ", ".join(f"{field.name} {names[field.type]}" for field in schema)


# --- Checks ---

_OR_NOT = "or let the coordinator do it: `slices: coordinator` below `engine` in odfbuild.yaml"


def _check_workers(spark: SparkSession, task: PiecesTask, cluster: str, server: Any) -> None:
    """Raise `EngineProblem` unless workers can do it: before they get any work.

    Asked again where other workers have come, which servers of Spark Connect do not tell. One may
    come later still; each task fails where it cannot read or write.
    """
    context = spark.sparkContext
    known = context if server is None else server
    now = (task.storage, executor_addresses(context) if server is None else frozenset[str]())
    if _LOOKED.get(known) == now:
        return
    data, token = task.pieces[0][0], secrets.token_hex(8)
    parallel = context.defaultParallelism if server is None else cores(server)
    number = min(_LOOKS, max(2, parallel))
    look = partial(tasks.look, task.storage, data, token)
    told = (
        (server or spark).range(0, number, 1, number).mapInArrow(look, _ddl(tasks.SEEN)).collect()
    )
    storage = _storage(task)
    seen = {file.name for file in storage.files(PROBES)}
    for row in told:
        storage.discard(row.written)
    for row in told:
        if row.release != pa.__version__:
            raise EngineProblem(
                f"a worker of {cluster} has PyArrow {row.release}, and this machine has "
                f"{pa.__version__}, so that equal records would become other files",
                code="E1681",
                notes=("nothing was committed",),
                help=f"install pyarrow=={pa.__version__} on all workers; {_OR_NOT}",
            )
        if row.size != data.size or row.written not in seen:
            found = "no such object" if row.size is None else f"one of {row.size:,} bytes"
            why = f"of object {data.physical_hash} it sees {found}"
            if row.size == data.size:
                why = f"it wrote {row.written}, which is not there"
            raise EngineProblem(
                f"a worker of {cluster} does not see what this machine sees in "
                f"{task.storage.address}",
                code="E1682",
                notes=(why, "nothing was committed"),
                help="let workers use the same endpoint, such as by "
                "spark.executorEnv.AWS_ENDPOINT_URL in `engine.conf`; a storage in a folder must "
                f"be a folder that all workers see; {_OR_NOT}",
            )
    _LOOKED[known] = now


def _check_stored(task: PiecesTask, pieces: Sequence[WrittenPiece]) -> None:
    """Raise `EngineProblem` E1683 unless what tasks say they wrote lies in the storage."""
    storage = _storage(task)
    for each in pieces:
        data = each.data
        if data is not None and (size := storage.size("data", data.physical_hash)) != data.size:
            found = "is not there" if size is None else f"has {size:,} bytes there"
            raise _wrong(
                task, f"object {data.physical_hash} of {data.size:,} bytes {found}, and was written"
            )


def _storage(task: PiecesTask) -> Storage:
    return Storage(task.storage.address, task.storage.root)


def _wrong(task: PiecesTask, why: str) -> EngineProblem:
    return EngineProblem(
        f"what tasks told of the slices of '{task.dataset}' does not fit what they did",
        code="E1683",
        dataset=task.dataset,
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
