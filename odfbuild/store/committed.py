"""The data slices that a dataset has committed up to a head."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.errors import ChainError
from odfbuild.store.merged_copies import NO_COPIES, MergedCopies, merged_copies
from odfbuild.values import Value

if TYPE_CHECKING:
    from odfbuild.odf.model import DataSlice
    from odfbuild.odf.multihash import Multihash
    from odfbuild.store.dataset import DatasetStore
    from odfbuild.store.side_cars import SideCarFolder, SideCars


class CommittedSlice(Value):
    """A slice of the dataset in `store`, and what its block says about it."""

    store: DatasetStore
    data: DataSlice

    @property
    def file(self) -> Path:
        """The data file, brought from the storage if need be; `IntegrityError` as `bring`."""
        return self.store.bring("data", self.data.physical_hash)

    @property
    def records(self) -> int:
        """Number of records in the file."""
        return self.data.offset_interval.end - self.data.offset_interval.start + 1


class Committed(Value):
    """What the dataset in `store` has committed up to `head` (`None`: nothing yet).

    `side_cars` is the folder for side-cars of the dataset (see `side_cars`), `None` for none.
    """

    store: DatasetStore
    head: Multihash | None
    side_cars: Path | None = None

    def slices(self, after: Multihash | None = None) -> tuple[CommittedSlice, ...]:
        """Slices of the blocks in `(after, head]`, or of the whole chain, oldest first.

        Those that were withdrawn are left out. Reads these blocks only. `ChainError` E0610 when
        `after` is not in the history of `head`.
        """
        return self.since(after)[1]

    def since(self, after: Multihash | None) -> tuple[int, tuple[CommittedSlice, ...]]:
        """The number of blocks in `(after, head]`, and their slices, as `slices` gives them."""
        if self.head is None or self.head == after:
            return 0, ()
        from odfbuild.odf.model import AddData, ExecuteTransform

        events = [block.event for _, block in self.store.walk(self.head, after)]
        withdrawn = self.store.withdrawn()
        found = [
            CommittedSlice(self.store, event.new_data)
            for event in reversed(events)
            if isinstance(event, AddData | ExecuteTransform) and event.new_data
            if ("data", event.new_data.physical_hash) not in withdrawn
        ]
        return len(events), tuple(found)

    def is_short(self, records: int, blocks: int) -> bool:
        """Whether there are at most so many records and blocks; reads the newest blocks only."""
        for _, block in self.store.walk(self.head) if self.head is not None else ():
            if block.sequence_number >= blocks:
                return False
            data = getattr(block.event, "new_data", None)
            if data is not None:
                end: int = data.offset_interval.end
                return end < records
        return True

    def behind(self, folder: SideCarFolder) -> tuple[SideCars | None, tuple[CommittedSlice, ...]]:
        """What a folder holds of this chain, and the slices that this does not cover."""
        kept = folder.load()
        if kept is not None:
            try:
                return kept, self.slices(kept.covered)
            except ChainError:  # the chain was rewritten
                pass
        return None, self.slices()

    def copies(self) -> MergedCopies:
        """Files that stand in for several slices each."""
        return merged_copies(self.side_cars, self.store.path / "data")

    def files(self) -> tuple[Path, ...]:
        """Files with all records, oldest first: slices, and copies in place of small ones."""
        return files_of(self.slices(), self.copies())


def files_of(
    slices: Sequence[CommittedSlice], copies: MergedCopies = NO_COPIES
) -> tuple[Path, ...]:
    """Files of slices of one dataset, or `copies`; what is not here is fetched, several at once."""
    if not slices:
        return ()
    store = slices[0].store
    data = {
        store.object_path("data", each): each for each in (s.data.physical_hash for s in slices)
    }
    found = copies.instead_of(tuple(data))
    store.bring_all("data", (data[file] for file in found if file in data))
    return found
