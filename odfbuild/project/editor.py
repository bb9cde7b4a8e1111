"""The JSON Schema of definitions, where editors find it: in the disposable folder of the project.

It is that of the odfbuild at hand, so it is never committed; `init`, `new` and `validate` put it
there again.
"""

from __future__ import annotations

import os
from pathlib import Path

from odfbuild.project.resources import schema_text
from odfbuild.store.disposable import prepare_cache_folder
from odfbuild.store.files import write_file

_NAME = "DatasetSnapshot.json"
_FOLDER = "schemas"


def schema_comment(root: Path, file: Path) -> str:
    """The line of a definition that tells editors where its schema is, seen from its file."""
    return (
        f"# yaml-language-server: $schema={os.path.relpath(_folder(root) / _NAME, file.parent)}\n"
    )


def provide_schema(root: Path) -> None:
    """Write the schema of definitions, unless it is there and that of this release."""
    file = _folder(root) / _NAME
    text = schema_text(_NAME).encode()
    try:
        if file.read_bytes() == text:
            return
    except OSError:
        pass
    prepare_cache_folder(file.parent.parent)
    file.parent.mkdir(exist_ok=True)
    write_file(file, text)


def _folder(root: Path) -> Path:
    return root / ".odfbuild" / _FOLDER
