"""From the hash of an object, or its last digits, to the file that holds it."""

from __future__ import annotations

from pathlib import Path

from odfbuild.odf.multihash import Multihash
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


def _whole(text: str) -> str | None:
    try:
        return str(Multihash.parse(text))
    except ValueError:
        return None


def _is_end(text: str) -> bool:
    return len(text) >= FEWEST_DIGITS and set(text.lower()) <= set("0123456789abcdef")


def _ending(folder: Path, end: str) -> list[str]:
    return [file.name for file in folder.glob(f"*{end}")]
