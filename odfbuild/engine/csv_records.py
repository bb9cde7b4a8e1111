"""Write CSV whose quoted values hold line breaks with one record a line.

So whatever takes a line for a record (Spark, counts, places of errors) reads such files, too. Line
breaks within quotes become marks, which `unfolded` turns back; everything else stays as it is. A
file is read in blocks, never as a whole. Source: RFC 4180. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from odfbuild.odf.model import ReadStepCsv
from odfbuild.values import Value

LONGEST_RECORD = 64 << 20
"""Bytes of a record; a longer one is a quote that nobody closes, or would not fit in memory."""
_TOO_LONG = f"begins a record of more than {LONGEST_RECORD >> 20} MiB"
_MARK = "\ufdd0"
"""Stands before `n`, `r` or `e`, for a line feed, a carriage return, or itself: Unicode keeps it
for use within programs, and it is nobody's separator or quote."""
_LETTERS = (("\n", "n"), ("\r", "r"), (_MARK, "e"))
_BYTES = _MARK.encode()
_BOM = b"\xef\xbb\xbf"


class NotRecordsError(Exception):
    """Where records end cannot be told: `line`, from 1, of the quote; `what` is wrong with it."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(f"line {line} {what}")
        self.line, self.what = line, what


class Quoting(Value):
    """The signs of a CSV file, each one byte.

    A quote within quotes is doubled, or stands behind the `escape` if there is one, as for Spark.
    """

    separator: bytes
    quote: bytes
    escape: bytes | None

    @classmethod
    def of(cls, read: ReadStepCsv) -> Quoting | None:
        """What a read step says; `None` without quotes, or with signs that reading refuses."""
        separator, quote = read.separator or ",", '"' if read.quote is None else read.quote
        escape = None if read.escape in (None, "", quote) else read.escape
        signs = (separator, quote, escape or "\\")
        if any(len(sign) != 1 or not sign.isascii() for sign in signs):
            return None
        return cls(separator.encode(), quote.encode(), escape.encode() if escape else None)

    def _pattern(self) -> re.Pattern[bytes]:
        """What is to be looked at, and runs of values that hold nothing of that.

        Of a run `tail` is what follows its last value; of a value that is to be looked at, `end`
        is the quote that closes it. A carriage return alone and a mark are looked at, too. Each way
        begins with a byte of its own, so that the search runs from one to the next.
        """
        quote, after = re.escape(self.quote), re.escape(self.separator) + rb"\r\n"
        begin = quote + rb"(?<![^" + after + rb"]" + quote + rb")"
        plain = begin + self._inside(rb"\r\n\xef") + quote + rb"(?=[" + after + rb"])"
        between = rb"[^" + quote + rb"\r\xef]*"
        between += rb"(?:\r\n" + between + rb")*"
        # Python remembers each turn of a run, so it has an end.
        run = plain + rb"(?:" + between + plain + rb"){0,999}(?P<tail>" + between + rb")"
        value = begin + self._inside(b"") + rb"(?P<end>" + quote + rb")?"
        return re.compile(rb"|".join((run, value, rb"\r(?!\n)", _BYTES)), re.DOTALL)

    def _inside(self, without: bytes) -> bytes:
        """A pattern of what stands between quotes, if it has none of the bytes `without`."""
        quote = re.escape(self.quote)
        plain, pair = rb"[^" + quote + without + rb"]*+", quote + quote
        if self.escape is not None:
            escape = re.escape(self.escape)
            plain = rb"[^" + quote + escape + without + rb"]*+"
            pair = escape + (rb"[^" + without + rb"]" if without else rb".")
        return plain + rb"(?:" + pair + plain + rb")*+"


def folded(blocks: Iterable[bytes], signs: Quoting) -> Iterator[bytes]:
    """The bytes of a file with one record a line, in UTF-8 or another encoding that extends ASCII.

    Lines end as before, but for carriage returns alone, which become line feeds. Raises
    `NotRecordsError` for a quote that is not closed, and for one that a value goes on behind.
    """
    fold = _Folder(signs)
    waiting: list[bytes] = []
    for block in blocks:
        waiting.append(block)
        # What was left is looked at again, so a long value waits for as much as it has already.
        if sum(map(len, waiting)) >= fold.left:
            yield fold.taken(b"".join(waiting))
            waiting = []
    yield fold.taken(b"".join(waiting), is_last=True)


def unfolded(text: str) -> str:
    """A record, or a value of it, as it was before `folded`."""
    if _MARK in text:
        for sign, letter in _LETTERS:
            text = text.replace(_MARK + letter, sign)
    return text


def folded_text(text: str) -> str:
    """`text` as it stands in a record within quotes."""
    for sign, letter in reversed(_LETTERS):
        text = text.replace(sign, _MARK + letter)
    return text


def unfolding_sql(column: str) -> str:
    """SQL of Spark for `unfolded`; `column` is SQL for a text."""
    for code, letter in ((10, "n"), (13, "r"), (ord(_MARK), "e")):
        column = f"replace({column}, '{_MARK}{letter}', '\\u{code:04x}')"
    return column


def line_breaks(text: str) -> int:
    """Line feeds, carriage returns and pairs of both, which count as one."""
    return text.count("\n") + text.count("\r") - text.count("\r\n")


class _Folder:
    """What was read of a file, up to a place that lies outside of quotes."""

    def __init__(self, signs: Quoting) -> None:
        self._signs = signs
        self._pattern = signs._pattern()
        self._rest = b""
        self._line = self._begins = 1
        self._record = 0
        self._is_first = True

    @property
    def left(self) -> int:
        """Bytes that were not given yet."""
        return len(self._rest)

    def taken(self, block: bytes, *, is_last: bool = False) -> bytes:
        """`block` behind what was left of the one before, as far as its records are known."""
        data = self._rest + block
        if self._is_first and (len(data) > len(_BOM) or is_last):
            self._is_first = False
            if data.startswith(_BOM):
                self._rest = data[len(_BOM) :]
                return _BOM + self.taken(b"", is_last=is_last)
        if self._is_first:
            self._rest = data
            return b""
        end, changes = self._looked(data, is_last)
        if len(data) - end > LONGEST_RECORD:
            raise self._wrong(data, end, _TOO_LONG)
        self._rest = data[end:]
        out = _changed(data[:end], changes)
        self._count(data, end, out)
        return out

    def _looked(self, data: bytes, is_last: bool) -> tuple[int, list[tuple[int, int, bytes]]]:
        """Up to where records are known, and what to put in place of parts of that."""
        changes: list[tuple[int, int, bytes]] = []
        outside = 0
        for found in self._pattern.finditer(data) if self._has_any(data) else ():
            start, end = found.span()
            if found.lastgroup == "tail":
                outside = found.start("tail")
                continue
            value = found[0]
            is_sign = value in (b"\r", _BYTES)
            is_open = not is_sign and found["end"] is None
            # The next byte tells whether a quote is one of a pair, a return one of a line end.
            if not is_last and (is_open or (end == len(data) and value != _BYTES)):
                return start, changes
            if is_sign:
                changes.append((start, end, b"\n" if value == b"\r" else _BYTES + b"e"))
                continue
            if is_open:
                raise self._wrong(data, start, "opens a quote that it does not close")
            if data[end : end + 1] not in (b"", b"\r", b"\n", self._signs.separator):
                raise self._wrong(data, end - 1, "goes on behind the quote that closes a value")
            outside = end
            if b"\n" in value or b"\r" in value or _BYTES in value:
                changes.append((start, end, _without_breaks(value)))
        if is_last:
            return len(data), changes
        # A value may go on in the next block, and a quote in the middle of one means nothing.
        ends = (data.rfind(sign, outside) for sign in (self._signs.separator, b"\n"))
        return max(outside, max(ends) + 1), changes

    def _has_any(self, data: bytes) -> bool:
        """Whether there is anything to look at; most blocks of many files have nothing."""
        returns = data.count(b"\r")
        lone = returns and returns != data.count(b"\r\n")
        return bool(lone or self._signs.quote in data or _BYTES in data)

    def _count(self, data: bytes, end: int, out: bytes) -> None:
        """Note that `out` was made of `data` up to `end`; `NotRecordsError` for a long record."""
        if self._record + len(out) > LONGEST_RECORD:
            line = self._begins
            for number, record in enumerate(out.split(b"\n")):
                size = len(record) + (0 if number else self._record)
                if size > LONGEST_RECORD:
                    raise NotRecordsError(line, _TOO_LONG)
                line = (line if number else self._line) + 1 + _folded_breaks(record)
        self._line += _breaks(data, end)
        last = out.rfind(b"\n") + 1
        if last:
            self._record, self._begins = 0, self._line - _folded_breaks(out[last:])
        self._record += len(out) - last

    def _wrong(self, data: bytes, place: int, what: str) -> NotRecordsError:
        return NotRecordsError(self._line + _breaks(data, place), what)


def _changed(data: bytes, changes: Iterable[tuple[int, int, bytes]]) -> bytes:
    """`data` with what stands in `changes`, in its order, in place of parts of it."""
    parts: list[bytes] = []
    done = 0
    for start, end, new in changes:
        if end > len(data):
            break
        parts += (data[done:start], new)
        done = end
    return b"".join((*parts, data[done:])) if parts else data


def _without_breaks(value: bytes) -> bytes:
    value = value.replace(_BYTES, _BYTES + b"e")
    return value.replace(b"\n", _BYTES + b"n").replace(b"\r", _BYTES + b"r")


def _folded_breaks(record: bytes) -> int:
    return line_breaks(unfolded(record.decode("utf-8", "replace"))) if _BYTES in record else 0


def _breaks(data: bytes, end: int) -> int:
    """Line breaks before the byte `end`; one that a carriage return at `end` begins is none."""
    returns = data.count(b"\r", 0, end)
    # The line feed of a pair may be the next byte, which belongs to the same break.
    pairs = data.count(b"\r\n", 0, end) if returns else 0
    return data.count(b"\n", 0, end) + returns - pairs
