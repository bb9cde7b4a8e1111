"""Where each partition of a topic stands, as the source state. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from odfbuild.values import Value

_STATE = re.compile(r"(\S+)((?: \d+:\d+)*)")


class Positions(Value):
    """The next offset to read, by partition, in the cluster with that id."""

    cluster: str
    offsets: Mapping[int, int]

    def state(self) -> str:
        """As it is recorded in the chain, such as `MkU3OEVB 0:15 1:7`."""
        pairs = [f"{each}:{self.offsets[each]}" for each in sorted(self.offsets)]
        return " ".join([self.cluster, *pairs])


def parse_positions(text: str) -> Positions | None:
    """The positions that a chain recorded; `None`: it is no such state."""
    found = _STATE.fullmatch(text)
    if found is None:
        return None
    pairs = (each.split(":") for each in found[2].split())
    return Positions(found[1], {int(partition): int(offset) for partition, offset in pairs})
