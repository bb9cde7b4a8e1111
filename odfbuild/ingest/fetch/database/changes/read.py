"""Steps that read changes of a table of PostgreSQL.

A replication slot keeps the server's log from the position that was confirmed last. Each step asks
for the transactions behind it without taking them (`pg_logical_slot_peek_binary_changes`), writes
whole transactions to a file, and gives that with the position behind them as the new source state.
The slot is moved only to a position that a chain has recorded, when the next step begins. So a
crash at any moment repeats a step or does what it left, and neither loses nor doubles a change.

The first step reads the table as a whole, in a snapshot: its file is the state, not changes, and is
merged as such. The slot is older than that snapshot, so the stream has all transactions that the
snapshot does not show, and those that it shows are skipped by their numbers: the two join exactly.
The same step is made again where the columns of the table changed, or a new slot was created.

An ordinary connection is enough for all of that. Source: PostgreSQL, "Logical Decoding", "System
Administration Functions".
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

from odfbuild.errors import Code, IngestError
from odfbuild.ingest.fetch.context import FetchContext
from odfbuild.ingest.fetch.database.address import Wanted
from odfbuild.ingest.fetch.database.changes.facts import Facts, check_table, look
from odfbuild.ingest.fetch.database.changes.found import Found
from odfbuild.ingest.fetch.database.changes.messages import RelationColumn
from odfbuild.ingest.fetch.database.changes.pgoutput import decode
from odfbuild.ingest.fetch.database.changes.position import (
    Position,
    form_of,
    parse_lsn,
    parse_position,
    seen_by,
    selected,
    spelled,
)
from odfbuild.ingest.fetch.database.changes.problems import (
    log_does_not_fit,
    may_not,
    named_like_operation,
    not_created,
    slot_again,
    slot_in_use,
    slot_lost,
    still_running,
)
from odfbuild.ingest.fetch.database.changes.transactions import (
    Forms,
    Read,
    Transactions,
    Watched,
    next_transactions,
)
from odfbuild.ingest.fetch.database.contract import Column
from odfbuild.ingest.fetch.database.postgresql import Postgresql, column_of, open_postgresql
from odfbuild.ingest.fetch.database.problems import check_columns, unfit
from odfbuild.ingest.fetch.database.rows import fitted, rows_of, schema_of, write_rows
from odfbuild.odf.model import MergeStrategyAppend
from odfbuild.odf.timestamp import Timestamp

IDLE_BYTES = 64 << 20
"""So much of the log may be behind a position without changes of the table, before a block without
records moves it. The server keeps all of it."""

_TURN_SECONDS = 0.1


def take_changes(
    asked: Wanted, shown: str, context: FetchContext, known: str | None, until: int | None
) -> Found | None:
    """What comes behind the state `known`, up to the position `until`; `None`: nothing.

    `until` is the end of the log as it is now where it is `None`. Raises `OdfbuildError`.
    """
    position = parse_position(known) if known is not None else None
    return _Step(asked, shown, context, position, until).take()


class _Step:
    """One connection, and at most one file."""

    def __init__(
        self,
        asked: Wanted,
        shown: str,
        context: FetchContext,
        position: Position | None,
        until: int | None,
    ) -> None:
        self._asked, self._shown, self._context = asked, shown, context
        self._position, self._begun_until = position, until
        self._slot = asked.changes or ""
        self._target = context.scratch / "changes.parquet"

    def take(self) -> Found | None:
        """What comes behind the position; `None`: nothing."""
        settings = self._context.settings
        with open_postgresql(self._asked, settings, self._shown) as database:
            facts = self._look(database)
            confirmed = self._check(facts)
            self._until = self._begun_until or facts.flushed
            position = self._position
            if position is None or facts.mark != position.mark:
                return self._whole(database, confirmed)
            if confirmed < position.lsn:
                sql = f"SELECT end_lsn::text FROM pg_replication_slot_advance('{self._slot}', "
                with self._rights():
                    database.rows(f"{sql}'{spelled(position.lsn)}')")
            columns = self._selected(facts.table.columns)
            same = form_of(columns) == position.form
            if same and facts.table.versions_of(columns) != position.versions:
                # The server may have computed new values for rows without telling it as changes.
                return self._whole(database, position.lsn)
            return self._stream(database, facts, position, changed=not same)

    def _look(self, database: Postgresql) -> Facts:
        """What the server says, once nobody reads the slot: a process that was killed may yet."""
        deadline = time.monotonic() + self._context.settings.connect_seconds
        while (facts := look(database, self._asked)).slot is not None and facts.slot.active:
            if time.monotonic() > deadline:
                raise slot_in_use(self._shown, self._slot)
            time.sleep(_TURN_SECONDS)
        return facts

    def _check(self, facts: Facts) -> int:
        """The position that the slot has confirmed. Raises `IngestError` where it is no use."""
        slot, publication, position = facts.slot, facts.publication, self._position
        dataset = self._context.dataset
        if slot is None or publication is None:
            if position is None:
                raise not_created(self._shown, self._slot, dataset)
            gone = "its replication slot" if slot is None else "its publication"
            raise slot_lost(self._shown, self._slot, dataset, f"{gone} is gone")
        why = ""
        if not slot.fits:
            why = "the slot is one of another database or another plugin"
        elif slot.lost:
            why = "it kept more of its log than it may (`max_slot_wal_keep_size`), and gave it up"
        elif not publication.complete:
            why = "its publication has not all changes of the table"
        elif position is not None and publication.number == position.mark:
            if slot.confirmed > position.lsn:
                why = (
                    f"somebody else confirmed changes up to {spelled(slot.confirmed)}, and the "
                    f"chain has those up to {spelled(position.lsn)}"
                )
            elif facts.flushed < position.lsn:
                why = (
                    f"its log ends at {spelled(facts.flushed)}, before {spelled(position.lsn)}, up "
                    "to where it was read: it was restored from a backup"
                )
        if why:
            raise slot_lost(self._shown, self._slot, dataset, why)
        key = self._merge_key(facts)
        check_table(facts, self._asked, self._shown, key)
        operation = self._context.vocab.operation_type
        if any(each.name == operation for each in facts.table.columns):
            raise named_like_operation(self._shown, self._asked.called, operation)
        return slot.confirmed

    def _merge_key(self, facts: Facts) -> Sequence[str] | None:
        """The primary key of the merge, if its columns are those of the table."""
        merge = self._context.merge
        if merge is None or isinstance(merge, MergeStrategyAppend):
            return None
        names = {each.name for each in facts.table.columns}
        return merge.primary_key if {*merge.primary_key} <= names else None

    def _selected(self, columns: Sequence[RelationColumn]) -> Sequence[RelationColumn]:
        return selected(columns, self._context.columns)

    @contextmanager
    def _rights(self) -> Iterator[None]:
        """What is refused here for a lack of rights is the use of the slot."""
        try:
            yield
        except IngestError as error:
            # Of an error in a stream of rows, the library does not tell the code.
            if error.code != Code.NO_SUCH_TABLE and not any(
                "replication role" in n for n in error.notes
            ):
                raise
            what = f"reading the replication slot '{self._slot}'"
            statement = "ALTER ROLE … REPLICATION, for the user in `fetch.url`"
            raise may_not(self._shown, what, error.notes, [statement]) from None

    # --- The table as a whole ---

    def _whole(self, database: Postgresql, lsn: int) -> Found:
        """The rows of a snapshot; the stream goes on at `lsn`, which is not behind it."""
        facts = self._settled(database)
        ((until,),) = database.rows("SELECT pg_current_wal_insert_lsn()::text")
        database.run("SET LOCAL row_security = off")  # An error is better than a part of the rows.
        names = [each.name for each in facts.table.columns]
        check_columns(self._context, self._shown, self._asked.called, names)
        chosen = self._selected(facts.table.columns)
        columns = typed(chosen)
        expressions = ", ".join(each.expression for each in columns)
        sql = f"SELECT {expressions} FROM ONLY {self._asked.relation}"
        rows = rows_of(database, sql, columns, self._shown)
        limit = self._context.settings.max_bytes
        write_rows(rows, schema_of(columns), self._target, limit, self._shown)
        position = Position(
            lsn=lsn,
            mark=facts.mark,
            form=form_of(chosen),
            versions=facts.table.versions_of(chosen),
            seen=seen_by(facts.snapshot, parse_lsn(until)),
        )
        return Found(self._target, position.state(), self._until, whole=True)

    def _settled(self, database: Postgresql) -> Facts:
        """What a snapshot shows in which all is over that was under way before it.

        A transaction may be in the log already, and in no snapshot yet: while it waits for a
        replica, for example. Those before the slot's position must not be missed.
        """
        ((bound,),) = database.rows("SELECT pg_current_xact_id()::text")
        deadline = time.monotonic() + self._context.settings.idle_seconds
        while True:
            database.begin(self._context.settings)
            facts = look(database, self._asked)
            if int(facts.snapshot.partition(":")[0]) >= int(bound):
                return facts
            if time.monotonic() > deadline:
                raise still_running(self._shown)
            time.sleep(_TURN_SECONDS)

    # --- Changes ---

    def _stream(
        self, database: Postgresql, facts: Facts, position: Position, *, changed: bool
    ) -> Found | None:
        """The transactions behind the position, up to the end of the log when the run began."""
        found = self._some(database, facts, position)
        if found.changes:
            committed = Timestamp.from_millis(found.micros // 1000)
            return Found(self._target, position.at(found.end).state(), self._until, committed)
        if found.problem is not None:
            raise found.problem
        if found.is_cut:
            return self._whole(database, position.lsn)
        if changed:
            return self._whole(database, max(self._until, position.lsn))
        if self._until - position.lsn < IDLE_BYTES:
            return None
        note = "no changes; the position moved, so that the server can remove its log"
        return Found(None, position.at(self._until).state(), self._until, note=note)

    def _some(self, database: Postgresql, facts: Facts, position: Position) -> Read:
        if position.lsn >= self._until:
            return Read(0, 0, position.lsn, 0)
        return next_transactions(
            lambda upto, most: self._peek(database, facts, position, upto, most),
            self._until,
            self._context.settings.target_records,
            lambda error: log_does_not_fit(
                error, spelled(position.lsn), slot_again(self._context.dataset)
            ),
        )

    def _peek(
        self, database: Postgresql, facts: Facts, position: Position, upto: int, most: int
    ) -> Read:
        """Write whole transactions, of about `most` messages, that end at `upto` or before."""
        sql = (
            f"SELECT data FROM pg_logical_slot_peek_binary_changes('{self._slot}', "
            f"'{spelled(upto)}', {most}, 'proto_version', '1', 'publication_names', "
            f"'{self._slot}')"
        )
        context = self._context
        table = Watched(
            forms=Forms(form_of, typed, to_arrow),
            form=position.form,
            seen=position.seen,
            table=facts.table.number,
            key=self._merge_key(facts) or sorted(facts.table.keys[0]),
            names=context.columns,
            operation=context.vocab.operation_type,
            shown=self._shown,
            dataset=context.dataset,
        )
        with Transactions(table, position.lsn, self._target, context.settings.max_bytes) as found:
            try:
                with self._rights():
                    for batch in database.batches(sql):
                        for data in batch.column(0):
                            found.take(decode(data.as_py()))
            except IngestError as error:
                if any("publication" in each and "not exist" in each for each in error.notes):
                    why = "its publication is younger than changes that are to be read"
                    raise slot_lost(self._shown, self._slot, context.dataset, why) from None
                raise
        return found.read()


_NAMES = {
    16: "bool",
    17: "bytea",
    19: "name",
    20: "int8",
    21: "int2",
    23: "int4",
    25: "text",
    26: "oid",
    700: "float4",
    701: "float8",
    1042: "bpchar",
    1043: "varchar",
    1082: "date",
    1114: "timestamp",
    1184: "timestamptz",
    1700: "numeric",
}
"""Types with a form of their own in Arrow, by their numbers, which are the same on all servers.

Others are text, also `money`: how the server spells it depends on its settings.
"""


def typed(columns: Sequence[RelationColumn]) -> list[Column]:
    """The columns as they are in the file."""
    return [
        column_of(each.name, _NAMES.get(each.type, f"type {each.type}"), each.modifier)
        for each in columns
    ]


def to_arrow(texts: Sequence[bytes | None], column: Column, shown: str) -> pa.Array:
    """Values of a column. Raises `IngestError` E0466 for one that no dataset can hold."""
    try:
        read = _READ.get(column.declared)
        if read is not None:
            values = [None if each is None else read(each) for each in texts]
            return pa.array(values, column.type)
        found = pa.array([None if each is None else each.decode() for each in texts], pa.string())
    except UnicodeDecodeError as error:
        raise unfit(shown, column.name, column.declared, f"it is no UTF-8: {error}") from None
    if column.declared == "timestamp":
        found = fitted(found, Column(column.name, "", pa.timestamp("us"), "timestamp"), shown)
    return fitted(found, column, shown)


_READ: dict[str, Callable[[bytes], object]] = {
    "bool": lambda text: text == b"t",
    "bytea": lambda text: bytes.fromhex(text[2:].decode()),
}
