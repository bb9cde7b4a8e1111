"""Protected datasets, as recorded by the last apply.

A file beside the alias says so, not the chain: it binds whoever builds here, not the peers of the
dataset. It travels with the chain, so that no edit of a project takes protection away by itself.
"""

from __future__ import annotations

import contextlib
import os

from odfbuild.store.dataset import DatasetStore
from odfbuild.store.files import sync_folder, write_file

_FILE = "odfbuild.protected"
_TEXT = b"The history of this dataset is protected: see `policies` of odfbuild.yaml.\n"


def is_protected(store: DatasetStore) -> bool:
    """Whether the last apply protected the dataset."""
    # Not by `pathlib`: apply asks for each of thousands.
    return os.path.exists(f"{store.folder}/info/{_FILE}")  # noqa: PTH110


def protect(store: DatasetStore, wanted: bool) -> None:
    """Protect the dataset, or end that; nothing when it is so already."""
    if is_protected(store) == wanted:
        return
    file = store.path / "info" / _FILE
    if wanted:
        write_file(file, _TEXT)
        return
    with contextlib.suppress(FileNotFoundError):
        file.unlink()
    sync_folder(file.parent)
