"""Which data slices a dataset gained since a block.

The one question that planning asks about the inside of a chain. Blocks are handed in by a function,
so that nothing here knows where they are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from odfbuild.odf.model import AddData, DataSlice, ExecuteTransform, MetadataBlock
from odfbuild.odf.multihash import Multihash


class SliceIndex(Protocol):
    """Answers where data was added to the datasets of a workspace."""

    def since(self, dataset: str, block: Multihash | None) -> tuple[DataSlice, ...] | None:
        """Slices of the blocks after `block` up to the head of `dataset` (an alias), oldest first.

        `None` as `block` means from the start of the chain; `None` as result that `block` is not in
        the chain: its history was rewritten.
        """
        ...


class ChainSlices:
    """A `SliceIndex` that walks chains: `heads` by alias, `read(alias, hash)` gives a block."""

    def __init__(
        self, heads: Mapping[str, Multihash], read: Callable[[str, Multihash], MetadataBlock]
    ) -> None:
        # Names of datasets are compared without regard to case.
        self._heads = {alias.lower(): (alias, head) for alias, head in heads.items()}
        self._read = read

    def since(self, dataset: str, block: Multihash | None) -> tuple[DataSlice, ...] | None:
        """See `SliceIndex.since`; costs one read for every block in between."""
        found: list[DataSlice] = []
        alias, head = self._heads[dataset.lower()]
        at: Multihash | None = head
        while at != block:
            if at is None:
                return None
            current = self._read(alias, at)
            if isinstance(current.event, AddData | ExecuteTransform) and current.event.new_data:
                found.append(current.event.new_data)
            at = current.prev_block_hash
        return tuple(reversed(found))
