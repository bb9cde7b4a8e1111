"""Write the JSON Schemas of a project's files into its disposable folder, for editors.

They are those of the odfbuild at hand, so they are never committed; `init`, `new` and `validate`
put them there again.
"""

from __future__ import annotations

import os
from pathlib import Path

from odfbuild.errors import EnvironmentProblem
from odfbuild.project.config import FILE
from odfbuild.project.resources import schema_text
from odfbuild.store.disposable import is_linked, prepare_cache_folder
from odfbuild.store.files import make_folder, write_file

GITIGNORE = """\
# Disposable: caches and scratch files of odfbuild.
/.odfbuild/
# What sources handed over and no chain holds yet: keep it until the next apply.
/.odfbuild-inbox/
# Private keys of datasets: keep them, but never here.
/.odfbuild-keys/
"""
"""What a new project keeps out of Git."""

_DATASET = "DatasetSnapshot.json"
_PROJECT = "Project.json"
_UNIT_TESTS = "UnitTests.json"


def schema_comment(root: Path, file: Path) -> str:
    """The line of a file that tells editors where its schema is, seen from the file."""
    name = _PROJECT if file.name == FILE else _DATASET
    schema = os.path.relpath(_folder(root) / name, file.parent)
    return f"# yaml-language-server: $schema={schema}\n"


def write_definition(root: Path, file: Path, text: str) -> None:
    """Put a file of definitions into a project, and the schemas there that it names.

    `EnvironmentProblem` E0910 when it cannot be written.
    """
    try:
        make_folder(file.parent)
        write_file(file, text.encode())
        provide_schemas(root)
    except OSError as error:
        raise EnvironmentProblem(
            f"{os.path.relpath(file, root)} cannot be written: {error.strerror}",
            code="E0910",
            help="check that you may write to the folder of definitions",
        ) from None


def provide_schemas(root: Path) -> None:
    """Write the schemas, unless they are there and those of this release."""
    folder = _folder(root)
    if is_linked(folder):
        return
    for name in (_DATASET, _PROJECT, _UNIT_TESTS):
        file, text = folder / name, schema_text(name)
        if file.is_file() and file.read_bytes() == text.encode():
            continue
        prepare_cache_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        write_file(file, text.encode())


def _folder(root: Path) -> Path:
    return root / ".odfbuild" / "schemas"
