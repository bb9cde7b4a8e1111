"""Records of a dataset at a pin, as a stream of Arrow batches.

Only what is asked for is read: columns, row groups whose statistics fit a filter, and files whose
offsets do. Memory is that of a few row groups, however many records there are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa

from odfbuild.errors import RecordsError
from odfbuild.odf.operation import APPEND, CORRECT_TO
from odfbuild.odf.schema.arrow_schema import schema_of
from odfbuild.odf.vocabulary import vocabulary_of
from odfbuild.records.claimed import MOST, size_of, too_large, written_out
from odfbuild.records.personal.shown import Shown, shown_of
from odfbuild.records.pin import Pin, View
from odfbuild.records.reading import BATCH_ROWS, read, read_backwards, type_of
from odfbuild.records.retracted import Retracted, retracted
from odfbuild.records.stored import Stored
from odfbuild.store.committed import files_of
from odfbuild.wording import did_you_mean

if TYPE_CHECKING:
    import duckdb
    import pyarrow.compute as pc

    from odfbuild.odf.chain.projection import Projection
    from odfbuild.store.personal import Audience
    from odfbuild.store.workspace import Workspace


@dataclass(frozen=True)
class Records:
    """What a dataset shows at its `pin`, of what is `stored`, to an `audience`."""

    pin: Pin
    stored: Stored
    audience: Audience = "people"

    @cached_property
    def schema(self) -> pa.Schema:
        """What is shown: the current state has no system columns but the event time."""
        whole = self.stored.schema
        if self.shown is not None:
            whole = self.shown.schema(whole)
        if self.pin.view == "history":
            return whole
        return pa.schema(map(whole.field, self.stored.data_columns), whole.metadata)

    @cached_property
    def shown(self) -> Shown | None:
        """What the audience sees of personal columns; `None`: there are none."""
        stored = self.stored
        found = shown_of(stored.committed.store, stored.state.dataset_id, self.audience)
        scope = found.scope.within(stored.schema.names) if found else None
        return replace(found, scope=scope) if found and scope else None

    @property
    def personal(self) -> frozenset[str]:
        """The names of its personal columns, whatever is shown of them."""
        return frozenset(self.shown.scope.subjects) if self.shown is not None else frozenset()

    @cached_property
    def retracted(self) -> Retracted:
        """What the current state leaves out."""
        return retracted(self.stored)

    @property
    def _left_out(self) -> pa.Array | None:
        """Offsets of records that are not shown, where anything was retracted."""
        if self.pin.view == "history" or not self.retracted.count:
            return None
        return self.retracted.offsets

    def history(self) -> Records:
        """Every record up to the same block."""
        return self if self.pin.view == "history" else self._showing("history")

    def count(self, filter: pc.Expression | None = None) -> int:
        """How many there are; without a filter no file is read where nothing was retracted."""
        if filter is not None:
            return sum(batch.num_rows for batch in self.batches([], filter))
        if self.pin.last is None or self.pin.first is None:
            return 0
        total = self.pin.last - self.pin.first + 1
        return total if self.pin.view == "history" else total - self.retracted.count

    def batches(
        self,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,
        limit: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The records in order of offset, in batches of at most `BATCH_ROWS`.

        `filter` may use columns that are not shown. Raises `RecordsError` E1201 for a column that
        is not there, E1202 for a filter that does not fit.
        """
        names = self.known(columns)
        if self.shown is not None:
            found = self._as_shown(self.shown, names, filter)
            return found if limit is None else _first(found, limit)
        condition = self._condition(filter)
        if limit is None:
            files_of(self.stored.slices)  # fetches several at a time, where they are not here
            return read(self.stored, names, condition)
        rows = max(1, min(limit, BATCH_ROWS))
        return _first(read(self.stored, names, condition, rows), limit)

    def _as_shown(
        self, shown: Shown, names: list[str], filter: pc.Expression | None
    ) -> Iterator[pa.RecordBatch]:
        """The records as the audience sees them, of which those are chosen that fit `filter`."""
        wanted = names
        if filter is not None:
            self.check(filter)
            wanted = self.stored.schema.names  # nobody can tell which columns a condition is about
        whole = shown.schema(self.stored.schema)
        for batch in read(self.stored, shown.needed(wanted), self._condition(None)):
            found = _typed(shown.of(batch, wanted), pa.schema(map(whole.field, wanted)))
            if filter is None:
                yield found
                continue
            for part in pa.Table.from_batches([found]).filter(filter).to_batches():
                yield part.select(names)

    def last(
        self, count: int, columns: Sequence[str] | None = None, filter: pc.Expression | None = None
    ) -> pa.Table:
        """The newest `count` records, in order of offset; reads files from the newest backwards.

        `RecordsError` E1210 when they take more memory than can be shown.
        """
        names = self.known(columns)
        shown = pa.schema([self.schema.field(name) for name in names])
        found: list[pa.RecordBatch] = []
        if self.shown is not None and filter is not None:
            found = _last(self.batches(names, filter), count, (), self.pin.dataset)
            return pa.Table.from_batches(found, shown) if count > 0 else shown.empty_table()
        wanted = names
        if self.shown is not None:
            wanted = self.shown.needed(names)
            shown = pa.schema([self.stored.schema.field(name) for name in wanted])
        missing = count
        backwards = read_backwards(self.stored, wanted, self._condition(filter))
        for batches in backwards if count > 0 else ():
            found[:0] = _last(batches, missing, found, self.pin.dataset)
            missing = count - sum(batch.num_rows for batch in found)
            if not missing:
                break
        parts = (written_out(batch, shown, self.pin.dataset) for batch in found)
        batches = chain.from_iterable(parts)
        if self.shown is None:
            return pa.Table.from_batches(batches, shown)
        schema = pa.schema([self.schema.field(name) for name in names])
        plain = (_typed(self.shown.of(batch, names), schema) for batch in batches)
        return pa.Table.from_batches(plain, schema)

    def duckdb_view(
        self, connection: duckdb.DuckDBPyConnection, name: str, *, lasting: bool = False
    ) -> None:
        """Make a view `name` of it in a connection of DuckDB, which lives on if it is `lasting`."""
        from odfbuild.records.duckdb_views import create_view, quote

        left_out = self._left_out
        stored = self.stored.lasting() if lasting else self.stored
        columns = self.schema.names
        expressions = [quote(each) for each in columns]
        if self.shown is not None:
            expressions = [self.shown.expression(connection, each) for each in columns]
        create_view(connection, name, stored, expressions, left_out)

    def known(self, columns: Sequence[str] | None) -> list[str]:
        """Names of columns (`None`: all), checked; `RecordsError` E1201."""
        names: list[str] = self.schema.names
        wanted = names if columns is None else list(columns)
        for name in wanted:
            if name not in names:
                hidden = name in self.stored.schema.names
                raise RecordsError(
                    f"'{self.pin.dataset}' has no column '{name}'"
                    + (" in its current state" if hidden else ""),
                    code="E1201",
                    dataset=self.pin.dataset,
                    help="the history has it"
                    if hidden
                    else did_you_mean(name, names, f"its columns are {', '.join(names)}"),
                )
        return wanted

    def _showing(self, view: View) -> Records:
        return replace(self, pin=replace(self.pin, view=view))

    def _condition(self, filter: pc.Expression | None) -> pc.Expression | None:
        """What a record has to be, of the rule of the view and of `filter`."""
        rule = None
        if self._left_out is not None:
            import pyarrow.compute as pc

            rule = pc.field(self.stored.vocab.operation_type).isin([APPEND, CORRECT_TO])
            if len(self._left_out):
                rule &= ~pc.field(self.stored.vocab.offset).isin(self._left_out)
        if filter is None:
            return rule
        self.check(filter)
        return filter if rule is None else rule & filter

    def check(self, filter: object) -> None:
        """Raise `RecordsError` E1202 for a filter that is no condition on these columns."""
        import pyarrow.compute as pc

        if not isinstance(filter, pc.Expression):
            why = f"it is of type {type(filter).__name__}"
        else:
            try:
                kind = type_of(self.stored, filter)
                if pa.types.is_boolean(kind):
                    return
                why = f"it gives {kind}, not true or false"
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                why = str(error).splitlines()[0]
        raise RecordsError(
            f"the filter does not fit the records of '{self.pin.dataset}'",
            code="E1202",
            dataset=self.pin.dataset,
            notes=(why, f"columns: {', '.join(self.stored.schema.names)}"),
            help="give an expression of PyArrow, such as `pyarrow.compute.field('id') > 3`",
        )


def records_of(
    workspace: Workspace,
    name: str,
    state: Projection | None = None,
    *,
    view: View = "current",
    since: Projection | None = None,
    audience: Audience = "people",
) -> Records:
    """The records of a dataset at `state`, by default as it is now; only those after `since`.

    Both are states of the same chain. `audience` says who is to see them.

    `RecordsError` E1203 when it has no columns yet.
    """
    if state is None:
        state = workspace.projection(name)
    if state is None or state.schema is None:
        raise RecordsError(
            f"'{name}' has no columns yet",
            code="E1203",
            dataset=name,
            help="run `odfbuild apply` first",
        )
    last, before = state.last_offset, since.last_offset if since else None
    first = None if last is None or last == before else 0 if before is None else before + 1
    pin = Pin(
        dataset=name,
        dataset_id=state.dataset_id,
        block=state.head,
        sequence_number=state.blocks - 1,
        system_time=state.system_time,
        first=first,
        last=None if first is None else state.last_offset,
        view=view,
    )
    stored = Stored(
        schema_of(state.schema),
        vocabulary_of(state.vocab),
        workspace.committed(name, state),
        state,
        since.head if since else None,
    )
    return Records(pin, stored, audience)


def newest_records(
    workspace: Workspace, name: str, state: Projection | None, count: int | None
) -> pa.Table | None:
    """The last `count` records (`None`: all) of the history, in order of offset.

    `None` when there are none. `RecordsError` E1210 as `Records.last`.
    """
    if state is None or state.schema is None or state.last_offset is None:
        return None
    records = records_of(workspace, name, state, view="history")
    if count is None:
        return pa.Table.from_batches(records.batches(), records.schema)
    return records.last(count)


def _typed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    return batch if batch.schema == schema else batch.cast(schema)


def _first(batches: Iterable[pa.RecordBatch], count: int) -> Iterator[pa.RecordBatch]:
    missing = count
    for batch in batches if count else ():
        yield batch.slice(0, missing)
        missing -= batch.num_rows
        if missing <= 0:
            return


def _last(
    batches: Iterable[pa.RecordBatch], count: int, beside: Sequence[pa.RecordBatch], dataset: str
) -> list[pa.RecordBatch]:
    """The last `count` records of batches, or all; the others are let go of.

    `RecordsError` E1210 when they take too much memory, with those that are kept `beside`.
    """
    kept: deque[tuple[pa.RecordBatch, int]] = deque()
    rows, size = 0, sum(map(size_of, beside))
    for batch in batches:
        kept.append((batch, size_of(batch)))
        rows += batch.num_rows
        size += kept[-1][1]
        while rows - kept[0][0].num_rows >= count:
            gone, freed = kept.popleft()
            rows -= gone.num_rows
            size -= freed
        if rows > count:
            first, bytes = kept[0]
            rest = first.slice(rows - count)
            kept[0] = rest, size_of(rest)
            size += kept[0][1] - bytes
            rows = count
        if size > MOST:
            raise too_large(dataset, "the records take", size)
    return [batch for batch, _ in kept]
