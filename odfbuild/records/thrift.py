"""Read values of Apache Thrift's compact protocol, in which Parquet writes footers and headers."""

from __future__ import annotations

from collections.abc import Iterator

_DEEPEST = 16


class Excess(ValueError):
    """What a file claims and cannot hold."""


class Compact:
    """Thrift's compact protocol, as far as Parquet uses it; `IndexError` at the end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def fields(self) -> Iterator[tuple[int, int]]:
        """Number and kind of each field of a struct; whoever asks reads or skips its value."""
        field = 0
        while head := self._byte():
            field = field + (head >> 4) if head >> 4 else self.number()
            yield field, head & 15

    def number(self) -> int:
        """A zigzag number."""
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def items(self) -> Iterator[int]:
        """The places of a list; whoever asks reads or steps over each item."""
        head = self._byte()
        yield from range(self._varint() if head >> 4 == 15 else head >> 4)

    def step(self, _place: int) -> None:
        """Pass over a number of a list."""
        self._varint()

    def skip(self, kind: int, depth: int = 0) -> None:
        """Pass over a value."""
        if depth > _DEEPEST:
            raise Excess("its metadata is nested too deeply")
        if kind == 3:
            self._pass(1)
        elif kind in (4, 5, 6):
            self._varint()
        elif kind == 7:
            self._pass(8)
        elif kind == 8:
            self._pass(self._varint())
        elif kind in (9, 10):
            head = self._byte()
            for _ in range(self._varint() if head >> 4 == 15 else head >> 4):
                self.skip(max(head & 15, 3) if head & 15 in (1, 2) else head & 15, depth + 1)
        elif kind == 12:
            for _, inner in self.fields():
                self.skip(inner, depth + 1)
        elif kind not in (1, 2):  # true and false stand in the kind itself
            raise Excess("its metadata has a field of no known kind")

    def _pass(self, count: int) -> None:
        self.at += count
        if self.at > len(self._data):
            raise IndexError

    def _byte(self) -> int:
        self.at += 1
        return self._data[self.at - 1]

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
            if shift > 63:
                raise Excess("its metadata has a number that is too long")
