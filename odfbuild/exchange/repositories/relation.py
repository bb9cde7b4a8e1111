"""How two chains of one dataset relate: which blocks they share, and how many only one has.

Pure: chains are given as the hashes of their blocks. Source: reference behaviour, "metadata chain
comparator".
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from odfbuild.odf.multihash import Multihash
from odfbuild.values import Value


class Kind(StrEnum):
    """What a relation is called, seen from here."""

    EQUAL = "equal"
    AHEAD = "ahead"
    BEHIND = "behind"
    DIVERGED = "diverged"


class Relation(Value):
    """A chain here beside one there.

    `common` is the last block of both (`None`: they share none); behind it, `here` blocks are only
    here, and `there` blocks only there.
    """

    common: Multihash | None
    here: int
    there: int

    @property
    def kind(self) -> Kind:
        """What this relation is called."""
        match self.here > 0, self.there > 0:
            case False, False:
                return Kind.EQUAL
            case True, False:
                return Kind.AHEAD
            case False, True:
                return Kind.BEHIND
        return Kind.DIVERGED


def relate(here: Sequence[Multihash], there: Sequence[Multihash]) -> Relation:
    """The relation of two whole chains, each oldest first."""
    shared = 0
    for mine, other in zip(here, there, strict=False):
        if mine != other:
            break
        shared += 1
    common = here[shared - 1] if shared else None
    return Relation(common, len(here) - shared, len(there) - shared)
