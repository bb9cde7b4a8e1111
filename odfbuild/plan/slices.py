"""New blocks and records of a dataset since a block.

The one question that planning asks about the inside of a chain. Blocks are handed in by a function,
so that nothing here knows where they are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Protocol

from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.model import MetadataBlock
from odfbuild.odf.multihash import Multihash

if TYPE_CHECKING:
    from odfbuild.odf.chain.step import Interval


class SliceIndex(Protocol):
    """Answers where data was added to the datasets of a workspace."""

    def since(self, dataset: str, block: Multihash | None) -> Interval | None:
        """The blocks after `block` up to the head of `dataset` (an alias).

        `None` as `block` means from the start of the chain; `None` as result that `block` is not in
        the chain: its history was rewritten.
        """
        ...


class ChainSlices:
    """A `SliceIndex` that walks chains; `read(alias, hash)` gives a block."""

    def __init__(
        self,
        projections: Mapping[str, Projection],
        read: Callable[[str, Multihash], MetadataBlock],
    ) -> None:
        # Names of datasets are compared without regard to case.
        self._aliases = {alias.lower(): alias for alias in projections}
        self._projections = projections
        self._read = read

    def since(self, dataset: str, block: Multihash | None) -> Interval | None:
        """See `SliceIndex.since`; costs one read for every block in between."""
        from odfbuild.odf.chain.step import interval_between

        alias = self._aliases[dataset.lower()]
        head = self._projections[alias].head
        return interval_between(head, block, partial(self._read, alias))
