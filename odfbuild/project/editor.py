"""The JSON Schemas of a project's files, where editors find them: in its disposable folder.

They are those of the odfbuild at hand, so they are never committed; `init`, `new` and `validate`
put them there again.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from odfbuild.project.config import FILE, SCHEMA
from odfbuild.project.resources import schema_text
from odfbuild.store.disposable import prepare_cache_folder
from odfbuild.store.files import write_file

_DATASET = "DatasetSnapshot.json"
_PROJECT = "Project.json"


def schema_comment(root: Path, file: Path) -> str:
    """The line of a file that tells editors where its schema is, seen from the file."""
    name = _PROJECT if file.name == FILE else _DATASET
    schema = os.path.relpath(_folder(root) / name, file.parent)
    return f"# yaml-language-server: $schema={schema}\n"


def provide_schemas(root: Path) -> None:
    """Write the schemas, unless they are there and those of this release."""
    folder = _folder(root)
    texts = {_DATASET: schema_text(_DATASET), _PROJECT: json.dumps(SCHEMA, indent=2) + "\n"}
    for name, text in texts.items():
        file = folder / name
        if file.is_file() and file.read_bytes() == text.encode():
            continue
        prepare_cache_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        write_file(file, text.encode())


def _folder(root: Path) -> Path:
    return root / ".odfbuild" / "schemas"
