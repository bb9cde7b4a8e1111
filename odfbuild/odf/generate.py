"""Generate files from the event types: `python -m odfbuild.odf.generate [--check] [FOLDER]`.

JSON Schemas and a FlatBuffers schema in `schemas/`, tables in `docs/reference/`, below FOLDER (the
project's own by default). With `--check` nothing is written; the exit code is 1 when a file differs
from what would be.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections.abc import Mapping
from pathlib import Path

from odfbuild.odf.flatbuffers.schema_text import fbs_text
from odfbuild.odf.json_schema import manifest_schema
from odfbuild.odf.object_tables import tables_text
from odfbuild.odf.yaml_form import MANIFEST_VERSIONS

COMMAND = "python -m odfbuild.odf.generate"
NONE: Mapping[str, str] = {}
DEFAULT_FOLDER = Path(__file__).resolve().parents[2]


def generated_files() -> dict[str, str]:
    """Text of each file, by its path."""
    files = {
        f"schemas/{kind}.json": json.dumps(manifest_schema(kind), indent=2) + "\n"
        for kind in MANIFEST_VERSIONS
    }
    return {**files, "schemas/odf.fbs": fbs_text(), "docs/reference/objects.md": tables_text()}


def differences(folder: Path, files: Mapping[str, str] = NONE) -> list[str]:
    """Paths of the files below `folder` that are missing or not as generated."""
    return [
        name
        for name, text in {**generated_files(), **files}.items()
        if not (folder / name).is_file() or (folder / name).read_text("utf-8") != text
    ]


def main(arguments: list[str], command: str = COMMAND, more: Mapping[str, str] = NONE) -> int:
    """Write or check the files, and those that a command knows beside them: the exit code."""
    parser = ArgumentParser(prog=command, description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if files differ")
    parser.add_argument("folder", nargs="?", type=Path, default=DEFAULT_FOLDER)
    given = parser.parse_args(arguments)
    folder: Path = given.folder
    if given.check:
        stale = differences(folder, more)
        for name in stale:
            print(f"{folder / name} is not up to date: run `{command}`")
        return 1 if stale else 0
    for name, text in {**generated_files(), **more}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
