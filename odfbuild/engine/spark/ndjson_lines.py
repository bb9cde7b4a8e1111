"""Find lines of newline-delimited JSON that hold more than one object.

Spark reads the first object of a line and passes over the rest in silence; records must not vanish.
"""

from __future__ import annotations

import json
import mmap
import re

from odfbuild.engine.contract import IngestTask
from odfbuild.engine.spark.source_text import SourceText, shown
from odfbuild.errors import IngestError, Location

_SUSPECT = re.compile(rb"\}[ \t]*\{")


def refuse_crowded_lines(task: IngestTask, text: SourceText) -> None:
    """Raise `IngestError` with the place of the first line that holds several objects.

    Only lines that look like it are parsed, so the cost is that of reading the file once.
    """
    with (
        text.file.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as whole,
    ):
        for found in _SUSPECT.finditer(whole):
            start = whole.rfind(b"\n", 0, found.start()) + 1
            end = whole.find(b"\n", found.end())
            line = whole[start : end if end >= 0 else len(whole)]
            try:
                json.loads(line)
            except json.JSONDecodeError as error:
                if error.msg == "Extra data":
                    number = whole[:start].count(b"\n") + 1
                    raise _crowded(task, number, error.colno, line.decode().rstrip()) from None


def _crowded(task: IngestTask, line: int, column: int, text: str) -> IngestError:
    return IngestError(
        f"line {line} of {task.source_name} holds more than one JSON object",
        code="E0424",
        location=Location(task.source_name, line, column, shown(text)),
        help="write one object a line",
        dataset=task.dataset,
    )
