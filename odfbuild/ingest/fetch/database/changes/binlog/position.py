"""Up to where the binary log of MariaDB was read, as the source state of a block. Pure.

A place in the log is a number here: that of the file, and the offset in it. Source: MariaDB
documentation, "Using CHANGE MASTER TO", "Global Transaction ID", "BINLOG_GTID_POS".
"""

from __future__ import annotations

import re

from odfbuild.values import Value as _Value

_STATE = re.compile(
    r"(?P<base>[^\s:]+)\.(?P<number>[0-9]+):(?P<offset>[0-9]+) (?P<gtid>[0-9,-]+) "
    r"(?P<form>[0-9a-f]{8})"
)
_FILE = re.compile(r"(.+)\.([0-9]+)")
_OFFSET_BITS = 40
_NO_GTID = "-"


class Position(_Value):
    """All changes up to `place` were read, where `gtid` is the last transaction of each domain.

    `form` is a digest of the columns that are read.
    """

    base: str
    place: int
    gtid: str
    form: str

    def state(self) -> str:
        """As it is recorded in the chain."""
        return f"{spelled(self.base, self.place)} {self.gtid or _NO_GTID} {self.form}"


def parse_position(text: str) -> Position | None:
    """The position that a chain recorded; `None`: it is none of a binary log."""
    found = _STATE.fullmatch(text)
    if found is None:
        return None
    place = place_of(int(found["number"]), int(found["offset"]))
    gtid = "" if found["gtid"] == _NO_GTID else found["gtid"]
    return Position(found["base"], place, gtid, found["form"])


def place_of(number: int, offset: int) -> int:
    """A place in the log, so that a later one is larger."""
    return (number << _OFFSET_BITS) + offset


def place_in(file: str, offset: int) -> int:
    """The same, by the name of a file. Raises `ValueError` if it has no number."""
    return place_of(_parts(file)[1], offset)


def base_of(file: str) -> str:
    """The part of a file's name that all files of the log have."""
    return _parts(file)[0]


def file_and_offset(base: str, place: int) -> tuple[str, int]:
    """What the server calls a place."""
    return f"{base}.{place >> _OFFSET_BITS:06d}", place & ((1 << _OFFSET_BITS) - 1)


def spelled(base: str, place: int) -> str:
    """A place as people write it, such as `log.000012:345`."""
    file, offset = file_and_offset(base, place)
    return f"{file}:{offset}"


def is_far(one: int, other: int, bytes: int) -> bool:
    """Whether there is a beginning of a file between two places, or so many bytes."""
    return one >> _OFFSET_BITS != other >> _OFFSET_BITS or other - one >= bytes


def _parts(file: str) -> tuple[str, int]:
    found = _FILE.fullmatch(file)
    if found is None:
        raise ValueError(f"'{file}' is no name of a file of a binary log")
    return found[1], int(found[2])
