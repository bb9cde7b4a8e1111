"""Steps that read changes of a table of MariaDB from its binary log.

The table is read first, in a transaction of which the server tells where in the log it began: there
the changes join exactly. A step then reads whole transactions behind the position in the chain, and
ends; nothing is kept on the server, and nothing is confirmed to it. The server removes its log by
time (`binlog_expire_logs_seconds`), so a dataset has to be applied more often.

Where something may have changed the table without its rows being in the log, such as ALTER TABLE,
the table is read as a whole once more. Source: MariaDB documentation, "Binary Log".
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

from odfbuild.ingest.fetch.context import FetchContext
from odfbuild.ingest.fetch.database.address import Wanted
from odfbuild.ingest.fetch.database.changes.binlog.facts import Facts, check, look
from odfbuild.ingest.fetch.database.changes.binlog.position import (
    Position,
    file_and_offset,
    is_far,
    parse_position,
    spelled,
)
from odfbuild.ingest.fetch.database.changes.binlog.stream import TABLE, Unclear, messages
from odfbuild.ingest.fetch.database.changes.binlog.values import (
    form_of,
    form_of_typed,
    to_arrow,
    typed,
)
from odfbuild.ingest.fetch.database.changes.found import Found
from odfbuild.ingest.fetch.database.changes.messages import Begin, Commit
from odfbuild.ingest.fetch.database.changes.problems import (
    log_again,
    log_does_not_fit,
    log_lost,
    may_not,
    named_like_operation,
)
from odfbuild.ingest.fetch.database.changes.transactions import (
    Forms,
    Read,
    Transactions,
    Watched,
    next_transactions,
)
from odfbuild.ingest.fetch.database.contract import Column
from odfbuild.ingest.fetch.database.mysql import Mysql, login_of, open_mysql, text_literal
from odfbuild.ingest.fetch.database.rows import rows_of, schema_of, write_rows
from odfbuild.odf.model import MergeStrategyAppend
from odfbuild.odf.timestamp import Timestamp

IDLE_BYTES = 64 << 20
"""So much of the log may be behind a position without changes of the table, before a block without
records moves it."""
_NO_RIGHT = {1045, 1227}
_NOT_IN_LOG = 1236
"""Errors of the server: no rights, and a place that its log does not have."""


def take_changes(
    asked: Wanted, shown: str, context: FetchContext, known: str | None, until: int | None
) -> Found | None:
    """What comes behind the state `known`, up to the place `until`; `None`: nothing.

    `until` is the end of the log as it is now where it is `None`. Raises `OdfbuildError`.
    """
    position = parse_position(known) if known is not None else None
    with open_mysql(asked, context.settings, shown) as database:
        facts = look(database, asked, shown)
        step = _Step(database, facts, asked, shown, context)
        until = until or facts.place
        if position is None:
            return step.whole(until)
        step.check_log(position)
        return step.stream(position, until)


class _Step:
    """One transaction of the server, and at most one file."""

    def __init__(
        self, database: Mysql, facts: Facts, asked: Wanted, shown: str, context: FetchContext
    ) -> None:
        self._database, self._facts = database, facts
        self._asked, self._shown, self._context = asked, shown, context
        self._target = context.scratch / "changes.parquet"
        self._columns = self._selected()
        self._key = self._merge_key()
        operation = context.vocab.operation_type
        if operation in facts.kinds:
            raise named_like_operation(shown, asked.called, operation)
        check(facts, asked, shown, [each.name for each in self._columns], self._key)

    def whole(self, until: int) -> Found:
        """The rows of the transaction, and where in the log it began."""
        names = ", ".join(each.expression for each in self._columns)
        sql = f"SELECT {names} FROM {self._asked.relation}"
        rows = rows_of(self._database, sql, self._columns, self._shown)
        limit = self._context.settings.max_bytes
        write_rows(rows, schema_of(self._columns), self._target, limit, self._shown)
        position = self._position(self._facts.place, form_of_typed(self._columns))
        return Found(self._target, position.state(), until, whole=True)

    def check_log(self, position: Position) -> None:
        """Raise `IngestError` E0491 unless the log goes on behind a position."""
        place = spelled(position.base, position.place)
        if position.base != self._facts.base or self._gtid(position.place) != position.gtid:
            why = (
                f"it does not have {place} any more, or it is the log of another server"
                if position.place <= self._facts.place
                else f"it ends before {place}, up to where it was read"
            )
            raise log_lost(self._shown, self._asked.changes or "", why)

    def stream(self, position: Position, until: int) -> Found | None:
        """The transactions behind a position, up to `until`."""
        found = self._some(position, until)
        if found.changes:
            committed = Timestamp.from_millis(found.micros // 1000)
            state = self._position(found.end, position.form).state()
            return Found(self._target, state, until, committed)
        if found.is_cut or form_of_typed(self._columns) != position.form:
            return self.whole(until)
        if not is_far(position.place, until, IDLE_BYTES):
            return None
        note = "no changes; the position moved, so that the server can remove its log"
        return Found(None, self._position(until, position.form).state(), until, note=note)

    def _some(self, position: Position, until: int) -> Read:
        if position.place >= until:
            return Read(0, 0, position.place, 0)
        place = spelled(position.base, position.place)
        return next_transactions(
            lambda upto, most: self._peek(position, upto, most),
            until,
            self._context.settings.target_records,
            lambda error: log_does_not_fit(error, place, log_again(self._asked.changes or "")),
        )

    def _peek(self, position: Position, upto: int, most: int) -> Read:
        """Write whole transactions, of about `most` messages, that end at `upto` or before."""
        import pymysql

        facts, context = self._facts, self._context
        names, own = context.columns, tuple(each.name for each in self._columns)
        if names is None and {*own} != {*facts.kinds}:
            names = own  # The log has generated and invisible columns, too.
        table = Watched(
            forms=Forms(form_of, typed, to_arrow),
            form=position.form,
            seen=None,
            table=TABLE,
            key=self._key or sorted(facts.keys[0]),
            names=names,
            operation=context.vocab.operation_type,
            shown=self._shown,
            dataset=context.dataset,
        )
        login = login_of(self._asked, context.settings)
        told = messages(login, facts.schema, facts.table, position.base, position.place)
        taken = 0
        try:
            with (
                Transactions(table, position.place, self._target, context.settings.max_bytes) as to,
                closing(told),
            ):
                for message in told:
                    if isinstance(message, Begin) and message.lsn > upto:
                        break
                    if isinstance(message, Unclear):
                        to.cut()
                        break
                    to.take(message)
                    taken += 1
                    found = to.read()
                    is_enough = found.changes and taken >= most
                    if found.is_cut or (isinstance(message, Commit) and is_enough):
                        break
                    if isinstance(message, Commit) and message.end >= upto:
                        break
        except pymysql.Error as error:
            raise self._of_stream(error, position) from None
        return to.read()

    def _of_stream(self, error: Exception, position: Position) -> Exception:
        code = error.args[0] if error.args else None
        if code in _NO_RIGHT:
            what = "reading the binary log"
            statement = "GRANT REPLICATION SLAVE ON *.* TO …"
            return may_not(self._shown, what, [str(error.args[-1])], [statement])
        if code == _NOT_IN_LOG:
            place = spelled(position.base, position.place)
            why = f"it does not go on behind {place}: {error.args[-1]}"
            return log_lost(self._shown, self._asked.changes or "", why)
        return self._database.refused(error)

    def _merge_key(self) -> Sequence[str] | None:
        """The primary key of the merge, if its columns are those of the table."""
        merge = self._context.merge
        if merge is None or isinstance(merge, MergeStrategyAppend):
            return None
        return merge.primary_key if {*merge.primary_key} <= {*self._facts.kinds} else None

    def _selected(self) -> Sequence[Column]:
        """The columns that are read: those that are declared, or all that are not generated."""
        facts, names = self._facts, self._context.columns
        own = [each for each in self._database.columns if facts.kinds.get(each.name) != "generated"]
        return [each for each in own if names is None or each.name in names] or own

    def _position(self, place: int, form: str) -> Position:
        return Position(self._facts.base, place, self._gtid(place) or "", form)

    def _gtid(self, place: int) -> str | None:
        """The last transactions before a place; `None` where the log does not have it."""
        file, offset = file_and_offset(self._facts.base, place)
        ((found,),) = self._database.rows(f"SELECT BINLOG_GTID_POS({text_literal(file)}, {offset})")
        return None if found is None else str(found)
