"""Prepare newline-delimited JSON so that Spark reads every line correctly.

What Spark would change or pass over in silence is refused with its line. Where bad records are
skipped such a line becomes empty: one message of a broker must not stop all that come after it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from odfbuild.engine.contract import BadRecord, IngestTask
from odfbuild.engine.read_options import codec_of
from odfbuild.engine.spark.reading.bad_records import BadRecords
from odfbuild.engine.spark.reading.half_characters import refuse_half_characters
from odfbuild.engine.spark.reading.json_depth import refuse_deep
from odfbuild.engine.spark.reading.ndjson_lines import refuse_crowded_lines
from odfbuild.engine.spark.reading.source_text import SourceText, utf8_text
from odfbuild.errors import IngestError

_CHECKS: tuple[Callable[[IngestTask, SourceText], None], ...] = (
    refuse_crowded_lines,
    refuse_half_characters,
    refuse_deep,
)


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
