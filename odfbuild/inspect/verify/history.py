"""A chain in memory: blocks in an interval, and the state at each block."""

from __future__ import annotations

from collections.abc import Iterable

from odfbuild.odf.chain.projection import Projection, advance, start
from odfbuild.odf.chain.step import Interval, Link
from odfbuild.odf.multihash import Multihash


class History:
    """All blocks of a chain, oldest first; `ValueError` when the first one is no seed."""

    def __init__(self, links: Iterable[Link]) -> None:
        self.links = tuple(links)
        self._at = {hash: number for number, (hash, _) in enumerate(self.links)}
        self._states: list[Projection] = []
        for hash, block in self.links:
            last = self._states[-1] if self._states else None
            self._states.append(advance(last, hash, block) if last else start(hash, block))

    def __contains__(self, block: Multihash) -> bool:
        return block in self._at

    def state(self, block: Multihash) -> Projection:
        """What the chain said when `block` was its head; `KeyError` when it is not in it."""
        return self._states[self._at[block]]

    def interval(self, after: Multihash | None, upto: Multihash | None) -> Interval | None:
        """The blocks `(after, upto]`, none without `upto`; `None` when they are no interval of it.

        Without `after` from the seed on.
        """
        if any(block is not None and block not in self._at for block in (after, upto)):
            return None
        first = 0 if after is None else self._at[after] + 1
        last = first - 1 if upto is None else self._at[upto]
        if last < first - 1:
            return None
        before = self.state(after).watermark if after is not None else None
        return Interval(self.links[first : last + 1], before)
