"""Interfaces of what a dataset has outside of its blocks' folder with `chains: storage`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from odfbuild.odf.chain.summary import ChainSummary, SignedSummary
    from odfbuild.odf.multihash import Multihash


class BlocksElsewhere(Protocol):
    """Blocks of a chain that its folder need not have."""

    @property
    def address(self) -> str:
        """Where they are, for messages."""

    @property
    def folder(self) -> Path:
        """Where copies of single blocks lie, by their hashes."""

    def here(self) -> Iterator[Multihash]:
        """The blocks of which a copy is here, sorted."""

    def opened(self, block: Multihash) -> bytes | None:
        """The bytes of a block, if it is in memory."""

    def read(self, block: Multihash) -> bytes | None:
        """The bytes of a block, where it is easily found."""

    def search(self, block: Multihash, heads: Iterable[Multihash]) -> bytes | None:
        """The bytes of a block in the history of one of `heads`."""

    def pack(self, end: Multihash) -> bytes | None:
        """The bytes of the pack that ends with a block, where there is one."""

    def put(self, blocks: Sequence[bytes]) -> None:
        """Store blocks of one chain, oldest first."""

    def anchor(self, head: Multihash, data: bytes) -> None:
        """See to it that a block, which becomes a head, is found by its name."""


class Summaries(Protocol):
    """What is known of histories without reading them."""

    def known(self, head: Multihash) -> ChainSummary | None:
        """A summary at that head, or at a block that probably lies before it."""

    def read(self, reference: str) -> SignedSummary | None:
        """The summary of a reference, whose signature is not checked."""

    def recent(self, block: Multihash) -> bytes | None:
        """The bytes of a block that a summary holds."""

    def follow(self, reference: str, head: Multihash) -> None:
        """Write the summary at the head that a reference was moved to."""

    def remove(self, reference: str) -> None:
        """Remove the summary of a reference that is gone."""
