"""Find lines of newline-delimited JSON that hold more than one object.

Spark reads the first object of a line and passes over the rest in silence; records must not vanish.
"""

from __future__ import annotations

import json
import re

from odfbuild.engine.contract import IngestTask
from odfbuild.errors import IngestError, Location

_SUSPECT = re.compile(rb"\}[ \t]*\{")


def refuse_crowded_lines(task: IngestTask) -> None:
    """Raise `IngestError` with the place of the first line that holds several objects.

    Only lines that look like it are parsed, so the cost is that of reading the file once.
    """
    with task.file.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if _SUSPECT.search(line) is None:
                continue
            try:
                json.loads(line)
            except json.JSONDecodeError as error:
                if error.msg == "Extra data":
                    text = line.decode("utf-8", errors="replace").rstrip()
                    raise _crowded(task, number, error.colno, text) from None
            except UnicodeDecodeError:
                continue  # reading reports it with its place


def _crowded(task: IngestTask, line: int, column: int, text: str) -> IngestError:
    return IngestError(
        f"line {line} of {task.source_name} holds more than one JSON object",
        code="E0424",
        location=Location(task.source_name, line, column, text),
        help="write one object a line",
        dataset=task.dataset,
    )
