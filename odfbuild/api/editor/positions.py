"""Positions in a text as editors count them, and as Python does.

An editor counts lines and code units in a line from 0, of UTF-16 unless both sides know UTF-8 or
UTF-32. Python counts characters. Pure.
Source: Language Server Protocol 3.17, "Text Documents".
"""

from __future__ import annotations

from bisect import bisect_right
from enum import StrEnum
from functools import cached_property

from odfbuild.values import Value


class Encoding(StrEnum):
    """What a code unit is."""

    utf8 = "utf-8"
    utf16 = "utf-16"
    utf32 = "utf-32"

    def units(self, text: str) -> int:
        """How many code units a text has."""
        if self is Encoding.utf32 or text.isascii():
            return len(text)
        if self is Encoding.utf8:
            return len(text.encode(errors="surrogatepass"))
        return len(text) + sum(character > "\uffff" for character in text)

    def characters(self, text: str, units: int) -> int:
        """How many characters of a text so many code units hold, those of a broken one not."""
        if self is Encoding.utf32 or text.isascii():
            return min(units, len(text))
        left = units
        for number, character in enumerate(text):
            left -= self.units(character)
            if left < 0:
                return number
        return len(text)


def one_break(text: str) -> str:
    """The text with line feeds only, as definitions are read; lines and columns stay."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


class Position(Value):
    """A place in a text: line and code unit, both from 0."""

    line: int
    unit: int


class Range(Value):
    """From a place up to another one, which is not part of it."""

    start: Position
    end: Position


class Text(Value, dict=True):
    """A text with line feeds only, whose places are asked for."""

    text: str
    encoding: Encoding = Encoding.utf16

    @classmethod
    def of(cls, text: str, encoding: Encoding = Encoding.utf16) -> Text:
        """A text with any line breaks."""
        return cls(one_break(text), encoding)

    @cached_property
    def _starts(self) -> list[int]:
        starts = [0]
        for number, character in enumerate(self.text):
            if character == "\n":
                starts.append(number + 1)
        return starts

    def line(self, number: int) -> str:
        """A line, from 0, without its end; empty behind the last one."""
        if not 0 <= number < len(self._starts):
            return ""
        end = self._starts[number + 1] - 1 if number + 1 < len(self._starts) else len(self.text)
        return self.text[self._starts[number] : end]

    def index(self, position: Position) -> int:
        """The index of a position; behind the end of a line, that of its end."""
        if position.line >= len(self._starts):
            return len(self.text)
        line = self.line(position.line)
        return self._starts[position.line] + self.encoding.characters(line, position.unit)

    def position(self, index: int) -> Position:
        """The position of an index."""
        line = bisect_right(self._starts, min(index, len(self.text))) - 1
        start = self._starts[line]
        return Position(line, self.encoding.units(self.text[start:index]))

    def range(self, start: int, end: int) -> Range:
        """The range of some characters."""
        return Range(self.position(start), self.position(end))

    def index_at(self, line: int, column: int) -> int:
        """The index of line and column of a message, which count characters from 1."""
        if line - 1 >= len(self._starts):
            return len(self.text)
        return self._starts[line - 1] + min(column - 1, len(self.line(line - 1)))
