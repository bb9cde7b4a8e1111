"""Find JSON that is nested too deeply for Spark, whose JVM would overflow its stack."""

from __future__ import annotations

import re

from odfbuild.engine.contract import IngestTask
from odfbuild.engine.spark.reading.source_text import SourceText
from odfbuild.errors import IngestError, Location

DEEPEST = 100
"""Objects and arrays in one another."""
_BLOCK = 1 << 20
_OTHERS = bytes(set(range(256)) - set(b"[]{}\n"))
_OPENINGS = re.compile(rb"[\[{]{%d}" % DEEPEST)
"""So many openings without a closing between them: what is deep has that nearly always."""
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"')


def refuse_deep(task: IngestTask, text: SourceText) -> None:
    """Raise `IngestError` E0623 with the place of the first record that is nested too deep."""
    before = 0
    with text.file.open("rb") as source:
        while block := source.read(_BLOCK) + source.readline():
            # Looking at lines costs a hundred times as much, and hardly any file needs it.
            if _OPENINGS.search(block.translate(None, _OTHERS)):
                for number, line in enumerate(block.split(b"\n"), before + 1):
                    if _depth(line) > DEEPEST:
                        row = line.decode("utf-8", "replace").rstrip("\r")
                        raise too_deep(task, text.place(task.source_name, number, None, row))
            before += block.count(b"\n")


def too_deep(task: IngestTask, place: Location) -> IngestError:
    """The error for a record that is nested too deep."""
    return IngestError(
        f"a record of '{task.source_name}' is nested deeper than {DEEPEST} levels",
        code="E0623",
        location=place,
        help="take it apart in a `prepare` step before it is read",
        dataset=task.dataset,
    )


def _depth(line: bytes) -> int:
    depth = deepest = 0
    for byte in _STRING.sub(b"", line):
        if byte in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif byte in b"]}":
            depth -= 1
    return deepest
