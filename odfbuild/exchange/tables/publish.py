"""Bring a table up to date with its dataset: only partitions that new records touch are written.

A new record, a retraction or a correction touches the partition that its values name. The new
content of a partition is its old content and what was appended, without what was retracted; both
are multisets, as the current state of a dataset is. So work grows with the touched partitions, not
with the history. DuckDB does it, and spills to disk what does not fit into its memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from odfbuild.engine.settings import duckdb_memory, in_force
from odfbuild.exchange.tables.behind import EARLY, Behind, behind, pin_of
from odfbuild.exchange.tables.contract import (
    Key,
    TableMoved,
    TablePin,
    TableSpec,
    TableState,
    Touched,
)
from odfbuild.exchange.tables.faults import changed_by_others, moved, reaching
from odfbuild.exchange.tables.formats import open_table
from odfbuild.exchange.tables.rules import check_columns
from odfbuild.odf.operation import CORRECT_FROM, RETRACT
from odfbuild.records.duckdb_views import connect, quote
from odfbuild.records.records import Records, records_of
from odfbuild.store.disposable import scratch_folder

if TYPE_CHECKING:
    import duckdb

    from odfbuild.project.model import Config
    from odfbuild.project.tables import Table
    from odfbuild.store.workspace import Workspace

_BATCH_ROWS = 65_536
_NEW, _OLD = "__odf_new", "__odf_old"


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What became of a table: its state, how many partitions and records were written, and why.

    `anew` is why all of it was written; `written` is false when it held everything already.
    """

    state: TableState
    written: bool
    partitions: int = 0
    records: int = 0
    anew: str | None = None


def publish(
    config: Config, workspace: Workspace, table: Table, *, anew: str | None = None
) -> Published:
    """Bring `table` up to date with the head of its dataset.

    With a reason to write it `anew`, whatever is there is replaced. Otherwise `TableError` E1307
    where somebody else changed it. `TableError` also where columns, place or content are wrong; the
    table is as it was then.
    """
    try:
        return _publish(config, workspace, table, anew)
    except _EarlyError:
        return _publish(config, workspace, table, EARLY)


def _publish(config: Config, workspace: Workspace, table: Table, anew: str | None) -> Published:
    records = records_of(workspace, table.dataset, view=table.view, audience="public")
    state = records.stored.state
    check_columns(table, state)
    with scratch_folder(config.cache, "table") as scratch, reaching(table):
        opened = open_table(TableSpec(table, records.schema, scratch, records.personal))
        present = opened.read_state()
        pin = pin_of(table, state, records.stored.committed.store)
        lacks = Behind(anew) if anew else _lacks(table, present, pin, records)
        if lacks is None:
            assert present is not None
            return Published(state=present, written=False)
        memory = duckdb_memory(in_force(config.engine))
        with connect(memory_limit=memory, temp_directory=str(scratch / "spill")) as connection:
            connection.execute("SET preserve_insertion_order = false")
            replaced: Sequence[Key] | None = None
            old = _Old()
            if lacks.anew is None and present is not None and present.pin is not None:
                old.content = partial(opened.content_of, present)
                replaced, query = _since(connection, old, present.pin, records, table)
            else:
                query = _everything(connection, records)
                pin = replace(pin, early=table.view == "current" and records.retracted.early)
            counted = _Counted()
            order = [*table.partition_by, *(table.sort or _by_time(records))]
            content = counted.each(_by_partition(connection, query, records.schema, table, order))
            if replaced is not None:
                content = _all_found(content, counted, old)
            try:
                committed = opened.commit(present, pin, replaced, content)
            except TableMoved:
                raise moved(table) from None
            except Exception:
                if old.fault is not None:  # DuckDB tells only the text of what failed in a stream
                    raise old.fault from None
                raise
    return Published(
        state=committed,
        written=True,
        partitions=counted.partitions if replaced is None else len(replaced),
        records=counted.records,
        anew=lacks.anew,
    )


def _lacks(
    table: Table, present: TableState | None, wanted: TablePin, records: Records
) -> Behind | None:
    """What is to be written; `TableError` E1307 where it is not ours to overwrite."""
    if present is None:
        return Behind("it is new")
    if present.pin is None or present.changed_by is not None:
        raise changed_by_others(table, present.changed_by or "odfbuild did not write it")
    if present.pin.dataset_id != wanted.dataset_id:
        raise changed_by_others(table, f"it holds the dataset {present.pin.dataset_id}")
    stored = records.stored
    return behind(present.pin, wanted, stored.state, stored.committed.store)


def _by_time(records: Records) -> list[str]:
    """The event time, so that a query for a time opens few row groups."""
    name = records.stored.vocab.event_time
    return [name] if name in records.schema.names else []


def _everything(connection: duckdb.DuckDBPyConnection, records: Records) -> str:
    """The text of a query for all records of the view."""
    records.duckdb_view(connection, _NEW)
    return f"SELECT * FROM {_NEW}"


def _since(
    connection: duckdb.DuckDBPyConnection,
    old: _Old,
    pin: TablePin,
    records: Records,
    table: Table,
) -> tuple[Sequence[Key], str]:
    """The partitions that records since `pin` touch, and a query for their new content."""
    stored = replace(records.stored, since=pin.block)
    replace(records.history(), stored=stored).duckdb_view(connection, _NEW)
    keys = _touched(connection, records.schema, table)
    batches = pa.RecordBatchReader.from_batches(records.schema, old.read(keys))
    connection.register(_OLD, batches)
    columns = ", ".join(map(quote, records.schema.names))
    operation = quote(stored.vocab.operation_type)
    is_taken = f"{operation} IN ({RETRACT}, {CORRECT_FROM})"
    (count, taken), *_ = connection.execute(
        f"SELECT count(*), count(*) FILTER ({is_taken}) FROM {_NEW}"
    ).fetchall()
    if table.view == "history" or not taken:
        old.becomes = count
        return keys, f"SELECT {columns} FROM {_OLD} UNION ALL SELECT {columns} FROM {_NEW}"
    old.becomes = count - 2 * taken
    new = f"SELECT {columns} FROM {_NEW} WHERE"
    query = f"SELECT {columns} FROM {_OLD} UNION ALL {new} NOT {is_taken}"
    return keys, f"({query}) EXCEPT ALL {new} {is_taken}"


class _EarlyError(Exception):
    """A retraction found no record: it takes away one that comes later."""


class _Old:
    """The old content of partitions; what failed while it was read; what the new one must have.

    `becomes` is how many records there are then, from those that were read on.
    """

    content: Callable[[Sequence[Key]], Iterator[pa.RecordBatch]]
    fault: Exception | None = None
    becomes = 0

    def read(self, keys: Sequence[Key]) -> Iterator[pa.RecordBatch]:
        try:
            for batch in self.content(keys):
                self.becomes += batch.num_rows
                yield batch
        except Exception as error:
            self.fault = error
            raise


def _all_found(content: Iterable[Touched], counted: _Counted, old: _Old) -> Iterator[Touched]:
    """`content`, in which each retraction has taken a record away; else `_EarlyError`."""
    yield from content
    if counted.records != old.becomes:
        raise _EarlyError


def _touched(
    connection: duckdb.DuckDBPyConnection, schema: pa.Schema, table: Table
) -> Sequence[Key]:
    if not table.partition_by:
        return [()]
    names = ", ".join(map(quote, table.partition_by))
    found = connection.sql(f"SELECT DISTINCT {names} FROM {_NEW} ORDER BY ALL").to_arrow_table()
    found = found.cast(pa.schema([schema.field(name) for name in table.partition_by]))
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


def _by_partition(
    connection: duckdb.DuckDBPyConnection,
    query: str,
    schema: pa.Schema,
    table: Table,
    order: Iterable[str],
) -> Iterator[Touched]:
    """The records of a query, partition by partition, each in its order."""
    names = ", ".join(map(quote, dict.fromkeys(order)))
    by = f" ORDER BY {names}" if names else ""
    batches = connection.sql(f"SELECT * FROM ({query}){by}").to_arrow_reader(_BATCH_ROWS)
    pieces = (
        piece for batch in batches for piece in _pieces(batch.cast(schema), table.partition_by)
    )
    for key, group in groupby(pieces, key=itemgetter(0)):
        yield Touched(key, map(itemgetter(1), group))


def _pieces(batch: pa.RecordBatch, names: Sequence[str]) -> Iterator[tuple[Key, pa.RecordBatch]]:
    """A sorted batch, cut where the key changes."""
    if not batch.num_rows:
        return
    keys = [batch.column(name) for name in names]
    begins = [0, *_changes(keys), batch.num_rows]
    for begin, end in pairwise(begins):
        key = tuple(each[begin].as_py() for each in keys)
        yield key, batch.slice(begin, end - begin)


def _changes(keys: Sequence[pa.Array]) -> list[int]:
    """The rows whose key is another one than that of the row before."""
    changed = None
    for each in keys:
        before, after = each[:-1], each[1:]
        other = pc.fill_null(pc.not_equal(before, after), False)
        other = pc.or_(other, pc.xor(pc.is_null(before), pc.is_null(after)))
        changed = other if changed is None else pc.or_(changed, other)
    if changed is None:
        return []
    return [row + 1 for row in pc.indices_nonzero(changed).to_pylist()]


class _Counted:
    """Counts partitions and records that pass."""

    def __init__(self) -> None:
        self.partitions = self.records = 0

    def each(self, content: Iterable[Touched]) -> Iterator[Touched]:
        for touched in content:
            self.partitions += 1
            yield Touched(touched.key, self._batches(touched.batches))

    def _batches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            self.records += batch.num_rows
            yield batch
