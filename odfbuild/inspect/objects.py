"""From the hash of an object, or its last digits, to the file that holds it."""

from __future__ import annotations

from pathlib import Path

from odfbuild.errors import Code, IntegrityError
from odfbuild.odf.multihash import Multihash
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.workspace import Workspace

FEWEST_DIGITS = 6
"""How many digits of a hash have to be given."""

_FOLDERS = ("blocks", "data", "checkpoints")


def find_objects(workspace: Workspace, text: str) -> list[Path]:
    """Files of blocks, data and checkpoints whose hash is `text` or ends with it, sorted.

    A block that several datasets hold is listed once. Empty when there is none, and for texts that
    are no hash.
    """
    whole = _whole(text)
    if whole is None and not _is_end(text):
        return []
    found: dict[str, Path] = {}
    for alias in workspace.aliases():
        for kind in _FOLDERS:
            folder = workspace.dataset(alias).path / kind
            names = [whole] if whole else _ending(folder, text.lower())
            for name in names:
                if (folder / name).is_file():
                    found.setdefault(name, folder / name)
    return sorted(found.values())


def find_stored_block(workspace: Workspace, text: str) -> tuple[bytes, str] | None:
    """The bytes of a block in the storage, by its hash or the end of it, and its hash.

    `None` where that is no hash, or of no block of which a copy is here, or of more than one.
    """
    whole = _whole(text)
    if not workspace.stored_chains or (whole is None and not _is_end(text)):
        return None
    found: dict[Multihash, DatasetStore] = {}
    for alias in workspace.aliases():
        store = workspace.dataset(alias)
        head = store.head()
        known = {*store.stored("blocks"), *((head,) if head is not None else ())}
        found |= {hash: store for hash in known if str(hash).endswith(whole or text.lower())}
    if len(found) != 1:
        return None
    [(hash, store)] = found.items()
    return store.read_raw(hash), str(hash)


_SHOWN = 100
"""How many of the newest blocks are shown at least, if there are so many."""


def newest_blocks(workspace: Workspace, head: Multihash) -> list[tuple[Multihash, bytes]]:
    """The newest blocks of the chain that ends with `head`, oldest first, as they were committed.

    The first one has a round number, so that the lists of two heads mostly begin alike.
    `IntegrityError` E0802 when no dataset here has that block.
    """
    stores = [workspace.dataset(alias) for alias in workspace.aliases()]
    own = [each for each in stores if head in each.references().values()]
    store = next((each for each in own or stores if each.has_block(head)), None)
    if store is None:
        raise IntegrityError(
            f"block {head} is in no chain that can be read here", code=Code.BLOCK_MISSING
        )
    first = max(0, (store.read_block(head).sequence_number // _SHOWN - 1) * _SHOWN)
    found = []
    for hash, block in store.walk(head):
        found.append((hash, store.read_raw(hash)))
        if block.sequence_number <= first:
            break
    return found[::-1]


def _whole(text: str) -> str | None:
    try:
        return str(Multihash.parse(text))
    except ValueError:
        return None


def _is_end(text: str) -> bool:
    return len(text) >= FEWEST_DIGITS and set(text.lower()) <= set("0123456789abcdef")


def _ending(folder: Path, end: str) -> list[str]:
    return [file.name for file in folder.glob(f"*{end}")]
