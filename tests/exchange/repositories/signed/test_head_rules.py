"""Which heads are accepted, by what was signed, seen and pinned: a table."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from odfbuild.exchange.repositories.head_rules import Doubt, Line, Refusal, Vouched, judge
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.signed_head import SignedHead, Statement
from odfbuild.odf.timestamp import Timestamp

KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))


def block(name: str) -> Multihash:
    return Multihash.sha3_256(name.encode())


def line(*names: str) -> Line:
    return Line({block(name): number for number, name in enumerate(names, 1)})


def said(name: str, blocks: int, time: int = 0) -> SignedHead:
    owner = DatasetId(KEY.public_key().public_bytes_raw())
    statement = Statement(dataset_id=owner, head=block(name), blocks=blocks, time=Timestamp(time))
    return SignedHead.sign(statement, KEY)


A1, A2, A3, A4 = (said(f"a{n}", n, n) for n in range(1, 5))
B2, B3, B4 = said("a1b2", 2, 9), said("a1b3", 3, 9), said("a1b4", 4, 9)
CHAIN = line("a1", "a2", "a3")
OTHER = line("a1", "a1b2", "a1b3")


@pytest.mark.parametrize(
    ("served", "offered", "given", "expected"),
    [
        pytest.param(CHAIN, None, {}, (None, 3), id="unsigned"),
        pytest.param(CHAIN, A3, {}, (A3, 0), id="signed"),
        pytest.param(CHAIN, A2, {}, (A2, 1), id="moved on unsigned"),
        pytest.param(CHAIN, A3, {"seen": A2}, (A3, 0), id="signed again since"),
        pytest.param(CHAIN, None, {"seen": A3}, (A3, 0), id="a statement of earlier counts"),
        pytest.param(CHAIN, A1, {"seen": A2, "news": False}, (A2, 1), id="the newer one counts"),
        pytest.param(CHAIN, A1, {"seen": A2}, Doubt.NO_LONGER_SIGNED, id="was signed, goes on"),
        pytest.param(CHAIN, None, {"seen": A2}, Doubt.NO_LONGER_SIGNED, id="no statement now"),
        pytest.param(CHAIN, None, {"seen": A2, "unsigned": True}, (A2, 1), id="consented"),
        pytest.param(
            CHAIN,
            None,
            {"seen": A2, "unsigned": True, "required": True},
            Doubt.UNSIGNED,
            id="no consent where it is required",
        ),
        pytest.param(CHAIN, A4, {}, Doubt.ROLLBACK, id="the repository hides what it signed"),
        pytest.param(CHAIN, B3, {}, Doubt.FORK, id="signed is another head"),
        pytest.param(CHAIN, B2, {}, Doubt.FORK, id="signed is another head, of before"),
        pytest.param(CHAIN, said("a2", 3), {}, Doubt.MISCOUNTED, id="signed with a wrong number"),
        pytest.param(CHAIN, A3, {"seen": A4}, Doubt.ROLLBACK, id="an old head, well signed"),
        pytest.param(CHAIN, None, {"seen": A4}, Doubt.ROLLBACK, id="an old head, unsigned"),
        pytest.param(CHAIN, A3, {"seen": B3}, Doubt.FORK, id="two heads signed"),
        pytest.param(CHAIN, None, {"seen": B2}, Doubt.FORK, id="unsigned, and not what was signed"),
        pytest.param(CHAIN, A3, {"required": True}, (A3, 0), id="required, and signed"),
        pytest.param(CHAIN, None, {"required": True}, Doubt.UNSIGNED, id="required, unsigned"),
        pytest.param(CHAIN, A2, {"required": True}, Doubt.UNSIGNED, id="required, moved on"),
        pytest.param(
            CHAIN, None, {"required": True, "seen": A3}, (A3, 0), id="required, signed earlier"
        ),
        pytest.param(CHAIN, None, {"pinned": line("a1", "a2")}, (None, 3), id="goes on"),
        pytest.param(CHAIN, None, {"pinned": CHAIN}, (None, 3), id="nothing new"),
        pytest.param(
            CHAIN,
            None,
            {"pinned": line("a1", "a2", "a3", "a4")},
            Doubt.ROLLBACK,
            id="unsigned rollback",
        ),
        pytest.param(CHAIN, None, {"pinned": OTHER}, Doubt.FORK, id="unsigned fork"),
        pytest.param(
            CHAIN, None, {"pinned": line("a1", "a1b2")}, (None, 3), id="rewritten: not our say"
        ),
        pytest.param(
            CHAIN, None, {"pinned": line(*"abcd")}, (None, 3), id="rewritten, and shorter: nor that"
        ),
        pytest.param(
            OTHER, B3, {"seen": A3, "pinned": CHAIN}, Doubt.FORK, id="rewritten by the owner"
        ),
        pytest.param(
            OTHER,
            B3,
            {"seen": A3, "pinned": CHAIN, "reset": True},
            (B3, 0),
            id="rewritten by the owner, and allowed",
        ),
        pytest.param(
            CHAIN, A3, {"seen": B3, "reset": True}, Doubt.FORK, id="an older statement is no reset"
        ),
        pytest.param(CHAIN, A3, {"seen": A4, "reset": True}, Doubt.ROLLBACK, id="nor a rollback"),
        pytest.param(
            OTHER, None, {"seen": A3, "reset": True}, Doubt.FORK, id="another one, and unsigned"
        ),
        pytest.param(
            OTHER,
            None,
            {"seen": A3, "reset": True, "unsigned": True},
            (None, 3),
            id="another one and unsigned, both allowed",
        ),
        pytest.param(
            OTHER,
            None,
            {"seen": A3, "reset": True, "unsigned": True, "required": True},
            Doubt.FORK,
            id="allowed, but has to be signed",
        ),
        pytest.param(
            CHAIN, A4, {"reset": True}, Doubt.ROLLBACK, id="no reset excuses a hidden head"
        ),
    ],
)
def test_a_head_is_accepted_or_refused_by_what_is_known_of_it(
    served: Line, offered: SignedHead | None, given: dict[str, object], expected: object
) -> None:
    found = judge(served, offered, **given)  # type: ignore[arg-type]
    if isinstance(found, Refusal):
        assert found.doubt == expected
    else:
        assert (found.signed, found.since) == expected


def test_older_blocks_are_looked_up_only_when_the_newer_ones_do_not_tell() -> None:
    asked = []

    def older(hash: Multihash) -> int | None:
        asked.append(hash)
        return 1 if hash == block("a1") else None

    served = Line({block("a2"): 2, block("a3"): 3}, older)
    assert judge(served, A3, seen=A2, pinned=line("a1", "a2")) == Vouched(A3, 0)
    assert asked == []
    assert judge(served, A1) == Vouched(A1, 2)
