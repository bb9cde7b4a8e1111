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
    for part in (("code", error.code), ("message", error.message), ("help", error.help or "")):
        print(json.dumps(part), file=sys.stderr)
    for note in error.notes:
        print(json.dumps(("note", note)), file=sys.stderr)
    return FAILED


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]))
