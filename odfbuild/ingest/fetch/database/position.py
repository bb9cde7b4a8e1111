"""Where a cursor stands: its largest value that was read, as the source state and as SQL. Pure."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from odfbuild.ingest.fetch.database.address import Overlap
from odfbuild.ingest.fetch.database.contract import CursorKind
from odfbuild.values import Value as _Value

CursorValue = int | date | datetime

DEFAULT_OVERLAP = Overlap(time=timedelta(minutes=10), number=1000)
"""What is read again where an address does not say it."""

OVERLAP_FORMS = {
    "number": "a number without a unit, such as overlap=1000",
    "date": "a time, such as overlap=2d",
    "time": "a time, such as overlap=10m",
    "zoned time": "a time, such as overlap=10m",
}


class Position(_Value):
    """Up to which value a cursor was read, and a digest of the rows that are read again.

    `digest` is empty where nothing is.
    """

    value: CursorValue
    digest: str = ""

    def state(self) -> str:
        """As it is recorded in the chain."""
        return f"{spelled(self.value)} {self.digest}".rstrip()


def parse_position(text: str, kind: CursorKind) -> Position | None:
    """The position that a chain recorded; `None`: it is none of such a cursor."""
    value, _, digest = text.partition(" ")
    try:
        match kind:
            case "number":
                return Position(int(value), digest)
            case "date":
                return Position(date.fromisoformat(value), digest)
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    has_zone = moment.tzinfo is not None
    return Position(moment, digest) if has_zone == (kind == "zoned time") else None


def spelled(value: CursorValue) -> str:
    """A value of a cursor as text without blanks, such as `2026-01-02T03:04:05.000006Z`."""
    if isinstance(value, datetime):
        text = value.replace(tzinfo=None).isoformat(timespec="microseconds")
        return f"{text}Z" if value.tzinfo is not None else text
    return str(value)


def fits(overlap: Overlap, kind: CursorKind) -> bool:
    """Whether an overlap is a difference of values of such a cursor."""
    return overlap.is_none or (overlap.number is not None) == (kind == "number")


def reaches_back(overlap: Overlap, kind: CursorKind) -> bool:
    """Whether rows are read again."""
    return bool(overlap.number if kind == "number" else overlap.time)


def lowest(value: CursorValue, overlap: Overlap) -> CursorValue:
    """The smallest value that is read again behind `value`."""
    if isinstance(value, int):
        return value - (overlap.number or 0)
    back = overlap.time or timedelta()
    try:
        if isinstance(value, datetime):
            return value - back
        return value - timedelta(days=-(-back // timedelta(days=1)))
    except OverflowError:
        zone = value.tzinfo if isinstance(value, datetime) else None
        first = datetime.min.replace(tzinfo=zone)
        return first if isinstance(value, datetime) else first.date()


def literal(value: CursorValue) -> str:
    """A value in SQL."""
    if isinstance(value, datetime):
        zone = value.tzinfo
        moment = (value if zone is None else value.astimezone(UTC)).replace(tzinfo=None)
        text = moment.isoformat(" ", "microseconds")
        return f"TIMESTAMP '{text}'" if zone is None else f"TIMESTAMPTZ '{text}+00'"
    return str(value) if isinstance(value, int) else f"DATE '{value.isoformat()}'"
