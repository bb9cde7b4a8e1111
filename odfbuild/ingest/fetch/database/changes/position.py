"""Up to where changes of a table were read, as the source state of a block. Pure.

Positions in the server's log are numbers here, and have the form `16/B374D848` in text.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from odfbuild.ingest.fetch.database.changes.messages import RelationColumn
from odfbuild.values import Value as _Value

_STATE = re.compile(
    r"(?P<lsn>[0-9A-F]+/[0-9A-F]+) (?P<mark>[0-9]+) "
    r"(?P<form>[0-9a-f]{8})\.(?P<versions>[0-9a-f]{8})"
    r"(?: (?P<seen>[0-9:,]+)@(?P<until>[0-9A-F]+/[0-9A-F]+))?"
)


class Seen(_Value):
    """A snapshot of the database: which transactions it shows.

    Those below `next` that were not `running`; all of them committed before `until` in the log.
    """

    next: int
    running: tuple[int, ...]
    until: int

    def shows(self, xid: int) -> bool:
        """Whether it shows a transaction, by the lower 32 bits of its number."""
        behind = (self.next - xid) % 2**32
        if behind == 0 or behind >= 2**31:
            return False
        return self.next - behind not in self.running


class Position(_Value):
    """All changes up to `lsn` were read, from the publication with the number `mark`.

    `form` is a digest of the columns that are read, `versions` one that also changes when the
    server rewrote their values. Where the last that was read was the table as a whole, `seen` says
    which transactions behind `lsn` it has already.
    """

    lsn: int
    mark: int
    form: str
    versions: str
    seen: Seen | None = None

    def at(self, lsn: int) -> Position:
        """The position when all up to `lsn` was read."""
        seen = self.seen if self.seen is not None and lsn < self.seen.until else None
        return Position(lsn, self.mark, self.form, self.versions, seen)

    def state(self) -> str:
        """As it is recorded in the chain."""
        text = f"{spelled(self.lsn)} {self.mark} {self.form}.{self.versions}"
        if self.seen is None:
            return text
        running = ",".join(map(str, self.seen.running))
        return f"{text} {self.seen.next}:{running}@{spelled(self.seen.until)}"


def parse_position(text: str) -> Position | None:
    """The position that a chain recorded; `None`: it is none of changes."""
    found = _STATE.fullmatch(text)
    if found is None:
        return None
    seen = None
    if found["seen"]:
        following, _, running = found["seen"].partition(":")
        numbers = tuple(int(each) for each in running.split(",") if each)
        seen = Seen(int(following), numbers, parse_lsn(found["until"]))
    return Position(
        parse_lsn(found["lsn"]), int(found["mark"]), found["form"], found["versions"], seen
    )


def seen_by(snapshot: str, until: int) -> Seen:
    """What a snapshot shows, by the text of `pg_snapshot`: `xmin:xmax:running`."""
    _, following, running = snapshot.split(":")
    return Seen(int(following), tuple(int(each) for each in running.split(",") if each), until)


def parse_lsn(text: str) -> int:
    """A position in the log."""
    high, _, low = text.partition("/")
    return (int(high, 16) << 32) + int(low, 16)


def spelled(lsn: int) -> str:
    """A position in the log as the server spells it."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def selected(
    columns: Sequence[RelationColumn], names: Sequence[str] | None
) -> Sequence[RelationColumn]:
    """The columns that a definition declares; all, if none of them is there or declared."""
    return [each for each in columns if names is None or each.name in names] or columns


def form_of(columns: Sequence[RelationColumn]) -> str:
    """A digest of names and types, whatever their order."""
    return digest(sorted(f"{each.name}\0{each.type}\0{each.modifier}" for each in columns))


def digest(texts: Sequence[str]) -> str:
    """Eight digits."""
    return hashlib.sha256("\1".join(texts).encode()).hexdigest()[:8]
