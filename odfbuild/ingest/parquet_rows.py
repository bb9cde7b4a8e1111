"""How many records a Parquet file has, as its footer says; reads nothing else.

Source: Parquet `parquet.thrift`, `FileMetaData`; Thrift compact protocol.
"""

from __future__ import annotations

from typing import IO

_MAGIC = b"PAR1"
_LARGEST = 64 << 20
_ROWS = 3
"""The field of `FileMetaData` that counts the records."""
_INTEGERS = (4, 5, 6)
_BYTES, _LISTS, _MAP, _STRUCT = 8, (9, 10), 11, 12
_FIXED = {1: 0, 2: 0, 3: 1, 7: 8, 13: 16}
"""Bytes of values that always have as many; a field's truth stands in its type."""


def rows_of(file: IO[bytes]) -> int | None:
    """The number of records; `None` where the file is no Parquet, broken or encrypted."""
    size = file.seek(0, 2)
    file.seek(max(0, size - 8))
    end = file.read(8)
    length = int.from_bytes(end[:4], "little")
    if end[4:] != _MAGIC or length > min(_LARGEST, size - 12):
        return None
    file.seek(size - 8 - length)
    try:
        return _Footer(file.read(length)).rows()
    except (IndexError, RecursionError):
        return None


class _Footer:
    """Bytes that are read from the beginning to the end; `IndexError` where they end too early."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def rows(self) -> int | None:
        number = 0
        while kind := self.byte():
            # The upper half is the distance to the field before, 0 where the number follows.
            number = number + (kind >> 4) if kind >> 4 else self.integer()
            if number == _ROWS:
                found = self.integer() if kind & 15 in _INTEGERS else -1
                return found if found >= 0 else None
            self.skip(kind & 15)
        return None

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def length(self) -> int:
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
            if shift > 63:
                raise IndexError

    def integer(self) -> int:
        value = self.length()
        return value >> 1 ^ -(value & 1)

    def skip(self, kind: int) -> None:
        if kind in _INTEGERS:
            self.length()
        elif kind == _BYTES:
            length = self.length()
            self.at += length
        elif kind in _LISTS:
            head = self.byte()
            count = head >> 4 if head >> 4 < 15 else self.length()
            self.skip_items(count, head & 15)
        elif kind == _MAP:
            count = self.length()
            kinds = self.byte() if count else 0
            for _ in range(count):
                self.skip_items(1, kinds >> 4)
                self.skip_items(1, kinds & 15)
        elif kind == _STRUCT:
            while field := self.byte():
                if field >> 4 == 0:
                    self.integer()
                self.skip(field & 15)
        else:
            self.at += _FIXED[kind] if kind in _FIXED else len(self.data)

    def skip_items(self, count: int, kind: int) -> None:
        for _ in range(count):
            if self.at >= len(self.data):
                raise IndexError
            # In lists, truths have a byte of their own.
            self.skip(3 if kind in (1, 2) else kind)
