"""Delete a dataset for good: head first, in one step, and then what nobody can reach any more."""

from __future__ import annotations

import contextlib
from pathlib import Path

from odfbuild.odf.identity import DatasetId
from odfbuild.odf.multihash import Multihash
from odfbuild.store.creation import MARKER, clear_unfinished
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.files import folder_lock, sync_folder, write_file


def delete_dataset(
    state: Path, keys: Path, store: DatasetStore, head: Multihash, dataset_id: DatasetId
) -> None:
    """Delete the dataset in `store`, with its private key; see `Workspace.delete`."""
    refs = store.path / "refs"
    with folder_lock(state), folder_lock(store.path):
        with folder_lock(refs):
            store.check_head(head)
            # Whoever is killed from here on leaves what looks like an unfinished creation, which
            # the next creation and `gc` clear away.
            write_file(store.path / MARKER, dataset_id.multibase.encode())
            (refs / "head").unlink()
            sync_folder(refs)
        clear_unfinished(store.path, keys)
    if store.path.parent != state:
        with contextlib.suppress(OSError):
            store.path.parent.rmdir()  # the last one of an account
