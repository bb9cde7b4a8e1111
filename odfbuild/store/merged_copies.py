"""Merged copies: small slices of a dataset in one file, kept beside its chain.

To open a file takes longer than to read the few records in it. A copy names the data files that it
was made from, slices that follow each other in the chain, and holds the same records in the same
order and types. It is read only where all of these are asked for, so it cannot show anything else,
whatever became of the chain. Proofs read slices. `merge_slices` makes copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from odfbuild.store.side_cars import MERGED, SideCarFolder
from odfbuild.values import Value

Notes: TypeAlias = tuple[tuple[str, ...], int, int]
"""What a side-car holds: names of data files, and the first and the last offset in them."""


class MergedCopy(Value):
    """A file with the records of slices, by the names of their data files."""

    file: Path
    slices: tuple[str, ...]


class MergedCopies(Value):
    """Copies of what lies in `folder`, the data files of a dataset with these `side_cars`."""

    folder: Path
    copies: tuple[MergedCopy, ...] = ()
    side_cars: Path | None = None

    def instead_of(self, files: Sequence[Path]) -> tuple[Path, ...]:
        """Fewer files with the records of these, in the same order."""
        first = {str(self.folder / copy.slices[0]): copy for copy in self.copies}
        found: list[Path] = []
        at = 0
        while at < len(files):
            copy = first.get(str(files[at]))
            length = len(copy.slices) if copy else 1
            if copy and tuple(each.name for each in files[at : at + length]) == copy.slices:
                found.append(copy.file)
                at += length
            else:
                found.append(files[at])
                at += 1
        return tuple(found)


NO_COPIES = MergedCopies(Path())


def merged_copies(side_cars: Path | None, folder: Path) -> MergedCopies:
    """The copies among the side-cars of a dataset whose data files are in `folder`."""
    if side_cars is None:
        return NO_COPIES
    found = copies_folder(side_cars)
    kept = found.load()
    files = kept.files if kept else ()
    copies = (MergedCopy(found.path(each), tuple(each.notes[0])) for each in files)
    return MergedCopies(folder, tuple(copies), side_cars)


def copies_folder(side_cars: Path) -> SideCarFolder:
    """Where the copies are among the side-cars of a dataset."""
    return SideCarFolder(side_cars / MERGED, b"merged copies 1")
