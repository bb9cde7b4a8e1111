"""Messages of a stream, as a file of records: whole transactions, in the order of their commits.

An update is a correction of the old row to the new one, or, where the key changed, the retraction
of one and the addition of the other. Memory does not grow with a transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from odfbuild.errors import Code, IngestError
from odfbuild.ingest.fetch.database.changes.messages import (
    UNCHANGED,
    Begin,
    Commit,
    Delete,
    Insert,
    Message,
    Relation,
    RelationColumn,
    Row,
    Truncate,
    Update,
)
from odfbuild.ingest.fetch.database.changes.position import Seen, selected, spelled
from odfbuild.ingest.fetch.database.changes.problems import unreadable_change
from odfbuild.ingest.fetch.database.contract import BATCH_ROWS, Column
from odfbuild.ingest.fetch.download_cache import check_size
from odfbuild.odf.operation import APPEND, CORRECT_FROM, CORRECT_TO, RETRACT
from odfbuild.values import Value

_BATCH_BYTES = 8 << 20


class Forms(Value):
    """How a kind of database tells columns and their values.

    `form_of` gives a digest of columns, `typed` what they are in the file, and `to_arrow` values,
    which come as text, in that type; messages show the source as its last argument.
    """

    form_of: Callable[[Sequence[RelationColumn]], str]
    typed: Callable[[Sequence[RelationColumn]], Sequence[Column]]
    to_arrow: Callable[[Sequence[bytes | None], Column, str], pa.Array]


class Watched(Value):
    """The table whose changes are wanted, by its number; `key` tells its rows apart.

    `names` are the columns that are declared; `None`: all are read. `operation` is the name of the
    column that says what a record is. Changes of columns with another digest than `form` are of
    another table, and those of transactions that were `seen` are there already.
    """

    forms: Forms
    form: str
    seen: Seen | None
    table: int
    key: Sequence[str]
    names: Sequence[str] | None
    operation: str
    shown: str
    dataset: str


class Read(Value):
    """What a file has: `changes` of whole transactions, the last of which ends at `end`, and was
    committed at `micros`. So many `messages` came.

    If it `is_cut`, a transaction behind these cannot go into the same file, or into any: then
    `problem` says why.
    """

    messages: int
    changes: int
    end: int
    micros: int
    is_cut: bool = False
    problem: IngestError | None = None


def next_transactions(
    peek: Callable[[int, int], Read],
    until: int,
    most: int,
    refused: Callable[[IngestError], IngestError],
) -> Read:
    """The next transactions, until there are changes, or no more transactions.

    `peek` writes those that end at a position or before it, and have about so many messages.
    `refused` is the error where a value of the first one does not fit.
    """
    has_failed = False
    while True:
        try:
            found = peek(until, most)
        except IngestError as error:
            if error.code != Code.VALUE_DOES_NOT_FIT:
                raise
            if has_failed or most == 1:
                raise refused(error) from None
            most, has_failed = 1, True  # Those before it are committed one by one.
            continue
        if found.is_cut and found.changes:
            # Once more, without the transaction that cannot be read.
            return peek(found.end, most)
        if found.is_cut or found.changes or found.messages < most:
            return found
        most *= 10


class Transactions:
    """Takes messages, and writes the changes of one table; they begin behind a position."""

    def __init__(self, wanted: Watched, position: int, target: Path, limit: int) -> None:
        self._wanted = wanted
        self._file = _File(target, wanted, limit)
        self._messages = 0
        self._begun = Begin(0, 0, 0)
        self._is_seen = False
        self._read = Read(0, 0, position, 0)
        self._relation: Relation | None = None
        self._fits = False
        self._chosen: tuple[int, ...] = ()
        self._key: tuple[int, ...] = ()

    def __enter__(self) -> Transactions:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                self._file.flush()
        finally:
            self._file.close()

    def read(self) -> Read:
        """What was read."""
        last = self._read
        return Read(self._messages, last.changes, last.end, last.micros, last.is_cut, last.problem)

    def cut(self) -> None:
        """Leave out the transaction that has begun, because it cannot go into the file."""
        if not self._read.is_cut:
            self._cut(None)

    def take(self, message: Message) -> None:
        """Take the next message; once it is cut, the rest is left for another time."""
        self._messages += 1
        if self._read.is_cut:
            return
        match message:
            case Begin():
                seen = self._wanted.seen
                self._begun = message
                self._is_seen = (
                    seen is not None and message.lsn < seen.until and seen.shows(message.xid)
                )
            case Commit():
                self._read = Read(0, self._file.changes, message.end, message.micros)
            case Relation() if message.number == self._wanted.table:
                self._look_at(message)
            case Truncate() if self._wanted.table in message.relations and not self._is_seen:
                self._cut("the table was truncated, which is no change of single rows,")
            case Insert() | Update() | Delete():
                if message.relation == self._wanted.table and not self._is_seen:
                    self._change(message)

    def _look_at(self, relation: Relation) -> None:
        columns = selected(relation.columns, self._wanted.names)
        places = {each.name: at for at, each in enumerate(relation.columns)}
        forms = self._wanted.forms
        is_same = forms.form_of(columns) == self._wanted.form
        self._fits = is_same and {*self._wanted.key} <= {*places}
        self._chosen = tuple(places[each.name] for each in columns)
        if self._fits:
            self._key = tuple(places[each] for each in self._wanted.key)
            self._file.columns = forms.typed(columns)

    def _change(self, message: Insert | Update | Delete) -> None:
        if not self._fits:
            self._cut(None)
            return
        if isinstance(message, Insert):
            self._file.add(APPEND, self._values(message.new))
            return
        if message.old is None or not message.whole:
            what = "an update" if isinstance(message, Update) else "a deletion"
            self._cut(f"{what} came without the old row (its replica identity was not FULL)")
            return
        old = self._values(message.old)
        if isinstance(message, Delete):
            self._file.add(RETRACT, old)
            return
        whole = tuple(
            before if value is UNCHANGED else value
            for value, before in zip(message.new, message.old, strict=True)
        )
        new = self._values(whole)
        if any(message.old[at] != whole[at] for at in self._key):
            self._file.add(RETRACT, old)
            self._file.add(APPEND, new)
        elif old != new:
            self._file.add(CORRECT_FROM, old)
            self._file.add(CORRECT_TO, new)

    def _values(self, row: Row) -> list[bytes | None]:
        values = [row[at] for at in self._chosen]
        return [None if value is UNCHANGED else value for value in values]

    def _cut(self, what: str | None) -> None:
        wanted, last = self._wanted, self._read
        lsn = spelled(self._begun.lsn)
        problem = unreadable_change(wanted.shown, wanted.dataset, what, lsn) if what else None
        self._read = Read(0, last.changes, last.end, last.micros, is_cut=True, problem=problem)


class _File:
    """Records, on their way into a Parquet file; `columns` are known before the first one."""

    def __init__(self, target: Path, wanted: Watched, limit: int) -> None:
        self._target, self._limit = target, limit
        self._operation, self._shown = wanted.operation, wanted.shown
        self._to_arrow = wanted.forms.to_arrow
        self.columns: Sequence[Column] = ()
        self.changes = 0
        self._operations: list[int] = []
        self._rows: list[list[bytes | None]] = []
        self._bytes = 0
        self._writer: pq.ParquetWriter | None = None

    def add(self, operation: int, values: list[bytes | None]) -> None:
        """Add a record."""
        self.changes += 1
        self._operations.append(operation)
        self._rows.append(values)
        self._bytes += sum(len(each) for each in values if each is not None)
        if len(self._rows) >= BATCH_ROWS or self._bytes >= _BATCH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write what is in memory."""
        if not self._rows:
            return
        values = zip(*self._rows, strict=True)
        arrays = [
            self._to_arrow(texts, column, self._shown)
            for texts, column in zip(values, self.columns, strict=True)
        ]
        operations = pa.array(self._operations, pa.int32())
        names = [self._operation, *(each.name for each in self.columns)]
        batch = pa.RecordBatch.from_arrays([operations, *arrays], names=names)
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._target, batch.schema)
        self._writer.write_batch(batch)
        check_size(self._target.stat().st_size, self._limit, self._shown)
        self._operations, self._rows, self._bytes = [], [], 0

    def close(self) -> None:
        """End the file."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
