"""`odfbuild convert`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def convert(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="KIND [OPTIONS]",
            help="What standard input is, such as `spreadsheet`, and options of that kind.",
        ),
    ],
) -> int:
    """Convert standard input, such as a spreadsheet, as a step of `prepare` does."""
    from odfbuild.ingest.convert.convert import convert as converted
    from odfbuild.ingest.convert.words import conversion_of
    from odfbuild.ingest.settings import IngestSettings

    wanted = conversion_of(words)
    converted(sys.stdin.buffer, sys.stdout.buffer, wanted, IngestSettings().max_unpacked_bytes)
    return 0
