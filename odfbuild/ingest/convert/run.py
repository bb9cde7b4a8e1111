"""Convert a file in a process of its own, which has little memory and no private keys."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from odfbuild.errors import EnvironmentProblem, IngestError, OdfbuildError
from odfbuild.ingest.convert.words import conversion_of
from odfbuild.ingest.process import Finished, run_to_file
from odfbuild.ingest.settings import IngestSettings
from odfbuild.limits import CONVERT_MEMORY

_MODULE = "odfbuild.ingest.convert"
_FAILED = 65


def run_conversion(
    words: Sequence[str], file: Path, target: Path, name: str, settings: IngestSettings
) -> None:
    """Convert `file`, which messages call `name`, to `target`. Raises `OdfbuildError`.

    `words` are those behind `odfbuild convert`.
    """
    conversion_of(words)
    limit = settings.max_unpacked_bytes
    finished = run_to_file(
        # Nothing is imported from where it runs, which may be a project of others.
        (sys.executable, "-P", "-m", _MODULE, str(CONVERT_MEMORY), str(limit), *words),
        target,
        source=file,
        folder=target.parent,
        seconds=settings.total_seconds,
        most_bytes=limit,
    )
    if finished.stopped:
        raise IngestError(
            f"converting '{name}' was stopped: {finished.stopped}",
            code="E0409",
            help="raise `ingest.totalSeconds` or `ingest.maxUnpackedBytes` in odfbuild.yaml",
        )
    if finished.status:
        raise _failed(name, finished)


def _failed(name: str, finished: Finished) -> OdfbuildError:
    told: dict[str, str] = {}
    notes: list[str] = []
    for line in finished.complaints if finished.status == _FAILED else ():
        try:
            part, text = json.loads(line)
        except ValueError:  # a warning of a library, or a line that was cut
            continue
        if part == "note":
            notes.append(text)
        else:
            told[part] = text
    if "code" not in told or "message" not in told:
        return IngestError(
            f"'{name}' cannot be converted: the process ended with status {finished.status}",
            code="E0475",
            notes=finished.complaints[-3:],
            help="open the file in the program that made it, and save it again",
        )
    kind = EnvironmentProblem if told["code"].startswith("E09") else IngestError
    message = f"'{name}' cannot be converted: {told['message']}"
    return kind(message, code=told["code"], notes=tuple(notes), help=told.get("help"))
