"""A table or a query of a database, such as `postgresql://host/shop?cursor=updated_at#orders`.

Without a cursor all rows are read, and a digest of them is the state. With one, those are read that
lie behind the largest value so far, and those of an overlap before it once more: a transaction that
was open at the last time may have committed meanwhile. The state is the largest value, and a digest
of the rows of the overlap, so that nothing is merged where nothing changed.

All that one run reads is one snapshot. The rows are written to a Parquet file, a batch at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from odfbuild.ingest.fetch.context import FetchContext
from odfbuild.ingest.fetch.database.address import (
    Overlap,
    Wanted,
    check_merge,
    named,
    quoted,
    wanted,
)
from odfbuild.ingest.fetch.database.connect import open_database
from odfbuild.ingest.fetch.database.contract import Column, CursorKind, Database
from odfbuild.ingest.fetch.database.position import (
    DEFAULT_OVERLAP,
    OVERLAP_FORMS,
    CursorValue,
    Position,
    fits,
    literal,
    lowest,
    parse_position,
    reaches_back,
    spelled,
)
from odfbuild.ingest.fetch.database.problems import (
    check_columns,
    cursor_went_back,
    missing_cursor,
    no_cursor,
    null_cursor,
    wrong_overlap,
)
from odfbuild.ingest.fetch.database.rows import digest_of, rows_of, schema_of, write_rows
from odfbuild.ingest.fetch.event_time import event_time_of
from odfbuild.ingest.fetch.result import ETAG, Fetched, etag
from odfbuild.odf.model import FetchStepUrl, SourceState


def fetch_database(
    step: FetchStepUrl, url: str, state: SourceState | None, context: FetchContext
) -> Iterator[Fetched]:
    """Yield the rows that are new, as a Parquet file. Raises `OdfbuildError`."""
    asked, shown = wanted(url, step.url), named(step.url)
    if context.merge is not None:
        check_merge(asked, context.merge, step.url)
    if asked.changes is not None:
        from odfbuild.ingest.fetch.database.changes.fetch import fetch_changes

        yield from fetch_changes(step, asked, shown, state, context)
        return
    known = None if context.moved or state is None or state.kind != ETAG else state.value
    with open_database(asked, context.settings, context.root, shown) as database:
        source = _Source(database, asked, context, shown)
        new = source.write_all(known) if asked.cursor is None else source.write_news(known)
    if new is not None:
        event_time = event_time_of(
            step.event_time, modified=None, default=None, now=context.now, name=shown
        )
        yield Fetched(source.target, etag(new), event_time, shown, own_rows=True)


class _Source:
    """What is read in one snapshot."""

    def __init__(
        self, database: Database, asked: Wanted, context: FetchContext, shown: str
    ) -> None:
        self._database = database
        self._asked = asked
        self._shown = shown
        check_columns(context, shown, asked.called, [each.name for each in database.columns])
        self._columns = _selected(database.columns, context.columns)
        self._most_bytes = context.settings.max_bytes
        self.target = context.scratch / "rows.parquet"

    def write_all(self, known: str | None) -> str | None:
        """Write all rows; returns the new state, `None` where it is the known one."""
        found = self._write("", self._order())
        return None if found == known else found

    def write_news(self, known: str | None) -> str | None:
        """Write the rows behind the position `known`; returns the new one, `None`: no news."""
        cursor, kind = self._cursor()
        overlap = self._overlap(cursor, kind)
        self._refuse_null(cursor)
        newest = self._newest(cursor)
        if newest is None:
            return None
        name = quoted(cursor.name)
        condition = ""
        if known is not None:
            last = parse_position(known, kind)
            if last is None:
                why = f"the position in the chain, '{known.partition(' ')[0]}', is no such value"
                raise no_cursor(self._shown, cursor.name, cursor.declared, why)
            begin = lowest(last.value, overlap)
            if _is_less(newest, begin):
                raise cursor_went_back(
                    self._shown, cursor.name, spelled(newest), spelled(last.value)
                )
            condition = f"{name} > {literal(last.value)}"
            if reaches_back(overlap, kind):
                condition = f"{name} >= {literal(begin)}"
            if newest == last.value and last.digest == self._again(newest, overlap, kind):
                return None
        order = f"{name}, {self._order()}"
        self._write(condition, order)
        return Position(newest, self._again(newest, overlap, kind)).state()

    def _cursor(self) -> tuple[Column, CursorKind]:
        name, columns = self._asked.cursor or "", self._database.columns
        cursor = next((each for each in columns if each.name == name), None)
        if cursor is None:
            called = self._asked.called
            raise missing_cursor(self._shown, called, name, [each.name for each in columns])
        if cursor.cursor is None:
            why = "values of this type have no order of time"
            raise no_cursor(self._shown, name, cursor.declared, why)
        return cursor, cursor.cursor

    def _overlap(self, cursor: Column, kind: CursorKind) -> Overlap:
        overlap = self._asked.overlap or DEFAULT_OVERLAP
        if self._asked.overlap is not None and not fits(overlap, kind):
            raise wrong_overlap(self._shown, cursor.name, cursor.declared, OVERLAP_FORMS[kind])
        return overlap

    def _refuse_null(self, cursor: Column) -> None:
        sql = f"SELECT 1 FROM {self._asked.relation} WHERE {quoted(cursor.name)} IS NULL LIMIT 1"
        # To the end: a library may refuse other statements before that.
        if sum(batch.num_rows for batch in self._database.batches(sql)):
            raise null_cursor(self._shown, self._asked.called, cursor.name)

    def _newest(self, cursor: Column) -> CursorValue | None:
        largest = Column(
            name=cursor.name,
            expression=f"max({quoted(cursor.name)})",
            type=cursor.type,
            declared=cursor.declared,
        )
        sql = f"SELECT {largest.expression} FROM {self._asked.relation}"
        (batch,) = rows_of(self._database, sql, [largest], self._shown)
        value: CursorValue | None = batch.column(0)[0].as_py()
        if isinstance(value, datetime):
            is_zoned = cursor.cursor == "zoned time"
            return value.astimezone(UTC) if is_zoned else value.replace(tzinfo=None)
        return value

    def _again(self, newest: CursorValue, overlap: Overlap, kind: CursorKind) -> str:
        """The digest of the rows that the next run reads again."""
        if not reaches_back(overlap, kind):
            return ""
        name = quoted(self._asked.cursor or "")
        condition = f"{name} >= {literal(lowest(newest, overlap))}"
        sql = self._select(condition, f"{name}, {self._order()}")
        return digest_of(rows_of(self._database, sql, self._columns, self._shown))

    def _write(self, condition: str, order: str) -> str:
        sql = self._select(condition, order)
        rows = rows_of(self._database, sql, self._columns, self._shown)
        schema = schema_of(self._columns)
        return write_rows(rows, schema, self.target, self._most_bytes, self._shown)

    def _select(self, condition: str, order: str) -> str:
        # With other names, because those in ORDER BY would mean these values, not the columns.
        names = ", ".join(f'{e.expression} AS "odfbuild.{n}"' for n, e in enumerate(self._columns))
        where = f" WHERE {condition}" if condition else ""
        return f"SELECT {names} FROM {self._asked.relation}{where} ORDER BY {order}"

    def _order(self) -> str:
        """An order in which the same rows always come in the same way."""
        return ", ".join(map(quoted, self._database.key)) or self._database.order_without_key


def _selected(columns: Sequence[Column], names: Sequence[str] | None) -> Sequence[Column]:
    """The columns that a definition declares; all, if none of them is there, or none is declared.

    A declared column may be missing where a policy says so.
    """
    found = [each for each in columns if names is None or each.name in names]
    return found or columns


def _is_less(one: CursorValue, other: CursorValue) -> bool:
    return one < other  # type: ignore[operator]  # both are values of one cursor
