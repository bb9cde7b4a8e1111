"""Instants in UTC with nanosecond precision, as the protocol stores them.

A `datetime` stops at microseconds, while a block's system time has nanoseconds
(Open Data Fabric, "Timestamp" in the FlatBuffers schema), so instants are integers here.
"""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta, timezone

from odfbuild.values import Value

_RFC3339 = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})[Tt ](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9})\d*)?([Zz]|[+-]\d{2}:\d{2})"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Timestamp(Value, order=True):
    """An instant: nanoseconds since 1970-01-01T00:00:00Z, negative before it."""

    ns: int

    @classmethod
    def now(cls) -> Timestamp:
        """The wall clock."""
        return cls(time.time_ns())

    @classmethod
    def parse(cls, text: str) -> Timestamp:
        """Read RFC 3339 text with any offset; raises `ValueError` when it is not that."""
        match = _RFC3339.fullmatch(text)
        if match is None:
            raise ValueError(f"not an RFC 3339 date and time: {text!r}")
        year, month, day, hour, minute, second, fraction, zone = match.groups()
        offset = timedelta()
        if zone not in "Zz":
            sign = -1 if zone[0] == "-" else 1
            offset = sign * timedelta(hours=int(zone[1:3]), minutes=int(zone[4:6]))
        moment = datetime(
            int(year),
            int(month),
            int(day),
            int(hour),
            int(minute),
            int(second),
            tzinfo=timezone(offset),
        )
        delta = moment - _EPOCH
        seconds = delta.days * 86_400 + delta.seconds
        return cls(seconds * 1_000_000_000 + int((fraction or "0").ljust(9, "0")))

    @classmethod
    def from_datetime(cls, moment: datetime) -> Timestamp:
        """From an aware `datetime`."""
        delta = moment - _EPOCH
        return cls(
            (delta.days * 86_400 + delta.seconds) * 1_000_000_000 + delta.microseconds * 1_000
        )

    @classmethod
    def from_millis(cls, millis: int) -> Timestamp:
        """From milliseconds since the epoch, the precision of data columns."""
        return cls(millis * 1_000_000)

    @property
    def millis(self) -> int:
        """Milliseconds since the epoch, rounded down."""
        return self.ns // 1_000_000

    def to_datetime(self) -> datetime:
        """As an aware `datetime` in UTC, rounded down to microseconds."""
        return _EPOCH + timedelta(microseconds=self.ns // 1_000)

    def __str__(self) -> str:
        """RFC 3339 in UTC with 0, 3, 6 or 9 fractional digits, the shortest that is exact."""
        seconds, nanos = divmod(self.ns, 1_000_000_000)
        moment = _EPOCH + timedelta(seconds=seconds)
        text = moment.strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")
        if nanos == 0:
            return text + "Z"
        digits = f"{nanos:09d}"
        for length in (3, 6, 9):
            if not digits[length:].strip("0"):
                return f"{text}.{digits[:length]}Z"
        raise AssertionError("unreachable: nine digits are always exact")
