"""How two chains relate (scenarios 40 and 41 of the reference)."""

from __future__ import annotations

import pytest

from odfbuild.exchange.repositories.relation import Kind, Relation, relate
from odfbuild.odf.multihash import Multihash


def chain(text: str) -> list[Multihash]:
    return [Multihash.sha3_256(each.encode()) for each in text]


@pytest.mark.parametrize(
    ("here", "there", "common", "counts", "kind"),
    [
        ("sab", "sab", "b", (0, 0), Kind.EQUAL),
        ("", "", None, (0, 0), Kind.EQUAL),
        ("sab", "s", "s", (2, 0), Kind.AHEAD),
        ("sab", "", None, (3, 0), Kind.AHEAD),
        ("s", "sab", "s", (0, 2), Kind.BEHIND),
        ("", "sab", None, (0, 3), Kind.BEHIND),
        ("sab", "sxy", "s", (2, 2), Kind.DIVERGED),
        ("sa", "sxyz", "s", (1, 3), Kind.DIVERGED),
        ("sab", "tuv", None, (3, 3), Kind.DIVERGED),
    ],
)
def test_two_chains_relate_by_their_last_common_block(
    here: str, there: str, common: str | None, counts: tuple[int, int], kind: Kind
) -> None:
    found = relate(chain(here), chain(there))
    assert found == Relation(chain(common)[0] if common else None, *counts)
    assert found.kind is kind
