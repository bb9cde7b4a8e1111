"""Prepare newline-delimited JSON so that Spark reads every line correctly.

What Spark would change or pass over in silence is refused with its line. Where bad records are
skipped such a line becomes empty: one message of a broker must not stop all that come after it.
"""

from __future__ import annotations

import json
import mmap
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from odfbuild.engine.contract import BadRecord, IngestTask
from odfbuild.engine.read_options import codec_of
from odfbuild.engine.spark.reading.bad_records import BadRecords
from odfbuild.engine.spark.reading.half_characters import refuse_half_characters
from odfbuild.engine.spark.reading.json_depth import refuse_deep
from odfbuild.engine.spark.reading.source_text import SourceText, shown, utf8_text
from odfbuild.errors import IngestError, Location


def ndjson_text(task: IngestTask, encoding: str | None, bad: BadRecords) -> SourceText:
    """The lines of the task's file in UTF-8; `IngestError` for the first that cannot be read."""
    while True:
        try:
            text = utf8_text(task, encoding)
            for check in _CHECKS:
                check(task, text)
        except IngestError as error:
            line = error.location.line if error.location is not None else None
            # In other encodings than these the bytes of a line are not known.
            if line is None or codec_of(encoding, task.dataset) not in ("utf-8", "ascii"):
                raise
            if not task.skip_bad_records:
                raise error.changed(help=f"{error.help}; {bad.way_out}") from None
            assert error.location is not None
            bad.add(BadRecord(error.message, error.location))
            task = _without(task, line)
        else:
            return text


def _without(task: IngestTask, line: int) -> IngestTask:
    """The task with a copy of its file in which a line is empty; the others keep their numbers."""
    source, target = task.file, task.scratch / "lines"
    if source != target:
        shutil.copyfile(source, target)
    _empty(target, line)
    return replace(task, file=target)


def _empty(file: Path, line: int) -> None:
    with file.open("r+b") as lines:
        for _ in range(line - 1):
            lines.readline()
        start = lines.tell()
        length = len(lines.readline().rstrip(b"\r\n"))
        lines.seek(start)
        lines.write(b" " * length)


# --- Lines ---


# Spark reads the first value of a line and passes over the rest in silence, and takes an array
# apart; records must not vanish, and a file of another kind is no file of records.

_NEXT = re.compile(rb"\}[ \t]*,?[ \t]*\{")
"""Between two objects: of a line, or of an array in it."""
_EDGE = re.compile(rb"\n(?:(?<!\}\n)(?<!\}\r\n)(?<!\n\n)|(?!\{|\r?\n|\Z))")
"""A line break behind something else than an object, or before it."""
_ARRAY = re.compile(rb"\[[ \t]*\{")
_BOM = b"\xef\xbb\xbf"


def refuse_crowded_lines(task: IngestTask, text: SourceText) -> None:
    """Raise `IngestError` with the place of the first line that is an array or goes on behind it.

    Only lines that look like it are parsed, so the cost is that of reading the file once. What is
    no JSON at all is left to the reader, which counts bad records.
    """
    if text.file.stat().st_size == 0:  # such as a byte order mark alone, which cannot be mapped
        return
    with (
        text.file.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as whole,
    ):
        for start, end in _suspects(whole):
            line = whole[start:end].removeprefix(_BOM if start == 0 else b"").strip(b" \t\r")
            if not line:
                continue
            wrong = _wrong(line.decode())
            if wrong:
                number = whole[:start].count(b"\n") + 1
                raise _refused(task, number, *wrong, line.decode())


def _suspects(whole: mmap.mmap) -> Iterator[tuple[int, int]]:
    """Where lines begin and end that may be something else; in order, some twice."""
    places = sorted({0, len(whole), *_places(whole)})
    for place in places:
        start = whole.rfind(b"\n", 0, place) + 1
        end = whole.find(b"\n", place)
        yield start, end if end >= 0 else len(whole)


def _places(whole: mmap.mmap) -> Iterator[int]:
    for found in _EDGE.finditer(whole):
        yield found.start()
        yield found.end()
    for found in _NEXT.finditer(whole):
        if b"," not in found[0]:
            yield found.start()
            continue
        before = whole[whole.rfind(b"\n", 0, found.start()) + 1 : found.start()]
        inside = before.count(b"[") > before.count(b"]") and _ARRAY.search(before)
        if not inside:  # of an array, as far as can be seen without parsing
            yield found.start()


def _wrong(line: str) -> tuple[str, int] | None:
    """What is wrong with a line that begins with JSON, and in which column."""
    try:
        value, end = json.JSONDecoder().raw_decode(line)
    except (json.JSONDecodeError, RecursionError):
        return None
    if isinstance(value, list):
        return "holds an array", 1
    rest = line[end:].lstrip()
    if not rest:
        return None
    what = "holds more than one JSON object" if rest[0] == "{" else "goes on behind its JSON object"
    return what, len(line) - len(rest) + 1


def _refused(task: IngestTask, line: int, what: str, column: int, text: str) -> IngestError:
    return IngestError(
        f"line {line} of {task.source_name} {what}",
        code="E0424",
        location=Location(task.source_name, line, column, shown(text)),
        help="write one object a line, with nothing else; an array of objects is read by `Json`",
        dataset=task.dataset,
    )


_CHECKS: tuple[Callable[[IngestTask, SourceText], None], ...] = (
    refuse_crowded_lines,
    refuse_half_characters,
    refuse_deep,
)
