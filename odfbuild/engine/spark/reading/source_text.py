"""The text of a source as Spark reads it: UTF-8, one record a line, no line without end.

Spark replaces bytes that are not text in silence, so they are looked for before it reads. The pass
over the file costs about as much as reading it.
"""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from odfbuild.engine.contract import IngestTask
from odfbuild.engine.csv_records import line_breaks, unfolded
from odfbuild.engine.read_options import codec_of
from odfbuild.errors import IngestError, Location
from odfbuild.values import Value

LONGEST_LINE = 64 << 20
"""Characters of a line; a longer one is a file of another kind, or would not fit in memory."""
_CHUNK = 1 << 20
_SHOWN = 200
_LONE = re.compile(r"\r(?!\n|\Z)")
"""A carriage return that is not half of a line end."""


class SourceText(Value):
    """A file in UTF-8 with one record a line.

    Line `n` of it is line `n` of the source, or its record `n` where records are not lines. If it
    is `folded`, line breaks within records are written as `csv_records` does.
    """

    file: Path
    unit: Literal["line", "record"] = "line"
    folded: bool = False

    def lines(self) -> Iterator[tuple[int, str]]:
        """Each record, without the end of its line, with the line of the source that it begins."""
        with self.file.open(encoding="utf-8-sig", newline="\n") as lines:
            if not self.folded:
                for number, line in enumerate(lines, 1):
                    yield number, line.rstrip("\r\n")
                return
            number = 1
            for line in lines:
                record = unfolded(line.rstrip("\r\n"))
                yield number, record
                number += 1 + line_breaks(record)

    def place(self, source: str, number: int | None, column: int | None, row: str) -> Location:
        """Where record `number` of `source` stands; `row` is its text."""
        if self.unit == "record":
            return Location(source, instance=f"record {number}" if number else None)
        if line_breaks(row):  # the column may be that of another line
            column = None
        return Location(source, number, column, shown(row) if number else None)


def shown(row: str) -> str:
    """The text of a row or value in one line, cut where it is too long for a message."""
    text = row if len(row) <= _SHOWN else row[:_SHOWN] + "…"
    return text.replace("\n", "\\n").replace("\r", "\\r")


def utf8_text(task: IngestTask, encoding: str | None, *, any_line_end: bool = False) -> SourceText:
    """The text of the task's file, converted where it is not UTF-8 yet.

    With `any_line_end` also where lines end with a carriage return alone, as on old systems.
    Raises `IngestError` with the line for bytes that are not text in that encoding, and for lines
    that are too long.
    """
    codec = codec_of(encoding, task.dataset)
    if codec in ("utf-8", "ascii", "utf-8-sig"):
        if _is_plain(task.file, codec, any_line_end):
            return SourceText(task.file)
        lone = False
        for text in _decoded(task, codec):
            lone = lone or (any_line_end and _LONE.search(text) is not None)
        if not lone:
            return SourceText(task.file)
    target = task.scratch / "utf8"
    ends = io.IncrementalNewlineDecoder(None, translate=any_line_end)
    with target.open("w", encoding="utf-8", newline="") as output:
        for text in _decoded(task, codec):
            output.write(ends.decode(text))
        output.write(ends.decode("", final=True))
    return SourceText(target)


def _is_plain(file: Path, codec: str, any_line_end: bool) -> bool:
    """Whether nothing at all is to be done or said about a file; `False` also when in doubt.

    Looks at bytes, because making text of them takes four times as long.
    """
    decoder = codecs.getincrementaldecoder(codec)()
    returns = line_ends = unfinished = 0
    last = b""
    with file.open("rb", buffering=0) as source:
        while block := source.read(_CHUNK):
            if b"\0" in block:
                return False
            if any_line_end and (b"\r" in block or last == b"\r"):
                returns += block.count(b"\r")
                line_ends += block.count(b"\r\n") + (last + block[:1] == b"\r\n")
            try:
                # A character that began in the block before is told by what the decoder keeps.
                if not block.isascii() or decoder.getstate()[0]:
                    decoder.decode(block)
            except UnicodeError:
                return False
            end = block.rfind(b"\n")
            unfinished = unfinished + len(block) if end < 0 else len(block) - end - 1
            if unfinished > LONGEST_LINE:
                return False
            last = block[-1:]
    return not decoder.getstate()[0] and returns == line_ends + (last == b"\r")


def _decoded(task: IngestTask, codec: str) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder(codec)()
    finished = unfinished = 0
    with task.file.open("rb") as source:
        while True:
            block = source.read(_CHUNK)
            try:
                text = decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                before = error.object[: error.start].decode(codec, "ignore")
                line = finished + before.count("\n") + 1
                raise _not_text(task, codec, line, error.reason) from None
            except UnicodeError as error:  # such as UTF-16 without the mark at its beginning
                raise _not_text(task, codec, finished + 1, str(error)) from None
            if "\0" in text:
                line = finished + text[: text.index("\0")].count("\n") + 1
                raise _not_text(task, codec, line, None)
            end = text.rfind("\n")
            unfinished = unfinished + len(text) if end < 0 else len(text) - end - 1
            finished += text.count("\n")
            if unfinished > LONGEST_LINE:
                raise _too_long(task, finished + 1)
            if not block:
                return
            yield text


def _not_text(task: IngestTask, codec: str, line: int, reason: str | None) -> IngestError:
    if reason is None:
        found = "a NUL character, which no text has"
    else:
        found = f"bytes that are not {codec.upper()} ({reason})"
    return IngestError(
        f"line {line} of '{task.source_name}' holds {found}",
        code="E0425",
        location=Location(task.source_name, line),
        help="set `read.encoding` to the encoding of the file, or `prepare` what is compressed",
        dataset=task.dataset,
    )


def _too_long(task: IngestTask, line: int) -> IngestError:
    return IngestError(
        f"line {line} of '{task.source_name}' is longer than {LONGEST_LINE >> 20} MiB",
        code="E0426",
        location=Location(task.source_name, line),
        help="check that records are separated by line breaks, or split the value before reading",
        dataset=task.dataset,
    )
