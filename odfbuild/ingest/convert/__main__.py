"""The process that converts one file, from standard input to standard output.

`python -m odfbuild.ingest.convert MEMORY BYTES WORDS...`; an error is told in lines of JSON.
"""

from __future__ import annotations

import json
import os
import sys

from odfbuild.errors import OdfbuildError
from odfbuild.ingest.convert.convert import convert
from odfbuild.ingest.convert.problems import too_large
from odfbuild.ingest.convert.words import conversion_of

FAILED = 65
"""The exit status of an error that is told."""

_PIECE = 70
"""Characters in a line: who listens cuts lines of 500 bytes, and a character may take six."""


def main(memory: int, most_bytes: int, words: list[str]) -> int:
    """Convert with at most `memory` bytes of memory; returns the exit status."""
    # Whichever libraries for XML are installed, the same one is used.
    os.environ |= {"OPENPYXL_LXML": "False", "OPENPYXL_DEFUSEDXML": "False"}
    try:
        _bound(memory)
        convert(sys.stdin.buffer, sys.stdout.buffer, conversion_of(words), most_bytes)
    except MemoryError:
        return _tell(
            too_large(
                f"converting it needs more than {memory >> 20:,} MiB of memory",
                "split the file; one made to fill memory looks like this too",
            )
        )
    except OdfbuildError as error:
        return _tell(error)
    return 0


def _bound(memory: int) -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def _tell(error: OdfbuildError) -> int:
    # The last lines are kept where there are too many, so what matters most comes last.
    parts = [("note", each) for each in error.notes]
    parts += [("help", error.help or ""), ("message", error.message), ("code", error.code)]
    for part, text in parts:
        for at in range(0, max(1, len(text)), _PIECE):
            print(json.dumps((part if at == 0 else "", text[at : at + _PIECE])), file=sys.stderr)
    return FAILED


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]))
