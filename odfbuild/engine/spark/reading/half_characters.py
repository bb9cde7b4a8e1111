"""Find half of a surrogate pair in JSON escapes: `\\ud83d` without the other half.

No text has such a thing, so readers replace it by `?` in silence.
"""

from __future__ import annotations

import mmap
import re

from odfbuild.engine.contract import IngestTask
from odfbuild.engine.spark.reading.source_text import SourceText
from odfbuild.errors import IngestError, Location

_HALF = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)


def refuse_half_characters(task: IngestTask, text: SourceText) -> None:
    """Raise `IngestError` with the line of the first one; the cost is that of reading the file."""
    if text.file.stat().st_size == 0:  # cannot be mapped
        return
    with (
        text.file.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as whole,
    ):
        for found in _HALF.finditer(whole):
            if not _is_escaped(whole, found.start()):
                line = whole[: found.start()].count(b"\n") + 1
                raise _refused(task, line, found[0].decode())


def _is_escaped(whole: mmap.mmap, place: int) -> bool:
    """Whether the backslash at `place` is itself what a backslash before it stands for."""
    before = place
    while before and whole[before - 1 : before] == b"\\":
        before -= 1
    return (place - before) % 2 == 1


def _refused(task: IngestTask, line: int, half: str) -> IngestError:
    return IngestError(
        f"line {line} of '{task.source_name}' holds half of a character, {half}",
        code="E0425",
        location=Location(task.source_name, line),
        help="correct whatever cuts the text in the middle of a character",
        dataset=task.dataset,
    )
