"""Records of a dataset at a pin, as a stream of Arrow batches.

Only what is asked for is read: columns, row groups whose statistics fit a filter, and files whose
offsets do. Memory is that of a few row groups, however many records there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow.fs import LocalFileSystem

from odfbuild.engine.contract import vocabulary_of
from odfbuild.engine.operation import APPEND, CORRECT_TO
from odfbuild.errors import IntegrityError, RecordsError
from odfbuild.odf.schema.arrow_schema import schema_of
from odfbuild.records.pin import Pin, View
from odfbuild.records.retracted import Retracted, retracted
from odfbuild.records.stored import Stored, path_of
from odfbuild.store.committed import files_of
from odfbuild.wording import did_you_mean

if TYPE_CHECKING:
    import duckdb

    from odfbuild.odf.chain.projection import Projection
    from odfbuild.store.committed import CommittedSlice
    from odfbuild.store.workspace import Workspace

BATCH_ROWS = 65_536
_DISK = LocalFileSystem()
# Reads the pages of a row group as they are needed, instead of all of it before the first batch.
_LAYOUT = ds.ParquetFileFormat(
    default_fragment_scan_options=ds.ParquetFragmentScanOptions(
        use_buffered_stream=True, pre_buffer=False
    )
)


@dataclass(frozen=True)
class Records:
    """What a dataset shows at its `pin`, of what is `stored`."""

    pin: Pin
    stored: Stored

    @cached_property
    def schema(self) -> pa.Schema:
        """What is shown: the current state has no system columns but the event time."""
        whole = self.stored.schema
        if self.pin.view == "history":
            return whole
        return pa.schema(map(whole.field, self.stored.data_columns), whole.metadata)

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
        condition = self._condition(filter)
        if limit is not None:
            return _first(self._read(names, condition, rows=limit), limit)
        return self._read(names, condition)

    def last(
        self, count: int, columns: Sequence[str] | None = None, filter: pc.Expression | None = None
    ) -> pa.Table:
        """The newest `count` records, in order of offset; reads files from the newest backwards."""
        names = self.known(columns)
        condition = self._condition(filter)
        found: list[pa.RecordBatch] = []
        missing = count
        for piece in self._pieces(condition, newest_first=True) if count > 0 else ():
            rows = pa.Table.from_batches(self._scan([piece], names, condition), self._only(names))
            rows = rows.slice(max(0, rows.num_rows - missing))
            found[:0] = rows.to_batches()
            missing -= rows.num_rows
            if not missing:
                break
        return pa.Table.from_batches(found, self._only(names))

    def duckdb_view(self, connection: duckdb.DuckDBPyConnection, name: str) -> None:
        """Make a view `name` of it in a connection of DuckDB."""
        from odfbuild.records.duckdb_views import create_view

        left_out = self._left_out
        create_view(connection, name, self.stored, self.schema.names, left_out)

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

    def _only(self, names: Sequence[str]) -> pa.Schema:
        return pa.schema([self.schema.field(name) for name in names], self.schema.metadata)

    def _showing(self, view: View) -> Records:
        return replace(self, pin=replace(self.pin, view=view))

    def _condition(self, filter: pc.Expression | None) -> pc.Expression | None:
        """What a record has to be, of the rule of the view and of `filter`."""
        rule = None
        if self._left_out is not None:
            rule = pc.field(self.stored.vocab.operation_type).isin([APPEND, CORRECT_TO])
            if len(self._left_out):
                rule &= ~pc.field(self.stored.vocab.offset).isin(self._left_out)
        if filter is None:
            return rule
        self._check(filter)
        return filter if rule is None else rule & filter

    def _read(
        self, names: Sequence[str], condition: pc.Expression | None, rows: int = BATCH_ROWS
    ) -> Iterator[pa.RecordBatch]:
        if rows == BATCH_ROWS:
            files_of(self.stored.slices)  # fetches several at a time, where they are not here
        pieces = self._pieces(condition)
        return self._scan(pieces, names, condition, max(1, min(rows, BATCH_ROWS)))

    def _scan(
        self,
        pieces: Iterable[ds.Fragment],
        names: Sequence[str],
        condition: pc.Expression | None,
        rows: int = BATCH_ROWS,
    ) -> Iterator[pa.RecordBatch]:
        shown = self._only(names)
        for piece in pieces:
            for batch in piece.to_batches(
                schema=self.stored.schema,
                columns=list(names),
                filter=condition,
                batch_size=rows,
                batch_readahead=2,
                use_threads=rows == BATCH_ROWS,
            ):
                if batch.num_rows:
                    yield batch.replace_schema_metadata(shown.metadata)

    def _pieces(
        self, condition: pc.Expression | None, *, newest_first: bool = False
    ) -> Iterator[ds.Fragment]:
        """Files that may hold records of that kind, by their offsets; each row group from behind.

        A file is fetched when its turn comes.
        """
        offset = pc.field(self.stored.vocab.offset)
        files = {str(path_of(each)): each for each in self.stored.slices}
        fragments = [
            _LAYOUT.make_fragment(
                file,
                _DISK,
                partition_expression=(offset >= each.data.offset_interval.start)
                & (offset <= each.data.offset_interval.end),
            )
            for file, each in files.items()
        ]
        found = self._dataset(fragments)
        chosen = list(found.get_fragments(condition))
        for each in reversed(chosen) if newest_first else chosen:
            fragment = _opened(files[each.path])
            if newest_first:
                yield from reversed(fragment.split_by_row_group(condition, self.stored.schema))
            else:
                yield fragment

    def _dataset(self, fragments: Sequence[ds.Fragment]) -> ds.FileSystemDataset:
        return ds.FileSystemDataset(fragments, self.stored.schema, _LAYOUT, _DISK)

    def _check(self, filter: object) -> None:
        if not isinstance(filter, pc.Expression):
            why = f"it is of type {type(filter).__name__}"
        else:
            try:
                kind = self._dataset([]).scanner(columns={"": filter}).projected_schema.types[0]
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
    since: Pin | None = None,
) -> Records:
    """The records of a dataset at `state`, by default as it is now; only those after `since`.

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
    pin = Pin(
        dataset=name,
        dataset_id=state.dataset_id,
        block=state.head,
        sequence_number=state.blocks - 1,
        system_time=state.system_time,
        first=_first_offset(state, since),
        last=state.last_offset if _first_offset(state, since) is not None else None,
        view=view,
    )
    stored = Stored(
        schema_of(state.schema),
        vocabulary_of(state.vocab),
        workspace.committed(name, state),
        state,
        since.block if since else None,
    )
    return Records(pin, stored)


def _opened(each: CommittedSlice) -> ds.Fragment:
    """The file of a slice; `IntegrityError` E0815 when it is no Parquet file."""
    fragment = _LAYOUT.make_fragment(str(each.file), _DISK)
    try:
        fragment.ensure_complete_metadata()
    except (pa.ArrowInvalid, OSError) as error:
        raise IntegrityError(
            f"data object {each.data.physical_hash} of '{each.store.name}' is no Parquet file",
            code="E0815",
            dataset=each.store.name,
            notes=(f"file: {each.file}", str(error).splitlines()[0]),
            help="restore it from a copy; `odfbuild verify --integrity` finds all damaged objects",
        ) from None
    return fragment


def _first_offset(state: Projection, since: Pin | None) -> int | None:
    first = 0 if since is None or since.last is None else since.last + 1
    return None if state.last_offset is None or first > state.last_offset else first


def _first(batches: Iterable[pa.RecordBatch], count: int) -> Iterator[pa.RecordBatch]:
    missing = count
    for batch in batches if count else ():
        yield batch.slice(0, missing)
        missing -= batch.num_rows
        if missing <= 0:
            return
