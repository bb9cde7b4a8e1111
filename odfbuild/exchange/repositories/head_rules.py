"""Decide whether the head that a repository serves can be the newest, by what vouches for it.

Compared are the chain that is served, the statement that lies beside it, the newest statement that
was seen before, and the chain that an earlier pull pinned. A head older than what was seen is a
rollback, another one of the same age a fork. Pure: signatures were checked before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from enum import StrEnum

from odfbuild.odf.multihash import Multihash
from odfbuild.odf.signed_head import SignedHead, Statement
from odfbuild.values import Value


class Line(Value):
    """A history: the numbers of its newest blocks, the seed being 1, and what knows the older.

    The head is the last of `numbers`.
    """

    numbers: dict[Multihash, int]
    older: Callable[[Multihash], int | None] = field(default=lambda _: None)

    @property
    def head(self) -> Multihash:
        """The newest block."""
        return next(reversed(self.numbers))

    @property
    def blocks(self) -> int:
        """How many there are."""
        return self.numbers[self.head]

    def number(self, block: Multihash) -> int | None:
        """Which of its blocks this is; `None`: it is not part of the history."""
        return self.numbers.get(block) or self.older(block)


class Doubt(StrEnum):
    """Why a head is refused."""

    UNSIGNED = "unsigned"
    """The policy asks for a statement about the head, and there is none."""
    NO_LONGER_SIGNED = "no longer signed"
    """A signed head was seen before, and nobody has signed what came since."""
    MISCOUNTED = "miscounted"
    """A statement gives its head another number than the chain does."""
    ROLLBACK = "rollback"
    """A newer head was seen, or signed."""
    FORK = "fork"
    """Another head of that age, or a younger one, was seen or signed."""


class Refusal(Value):
    """A head that is refused; `seen` contradicts it: a statement, or the head pinned here."""

    doubt: Doubt
    seen: Statement | Multihash | None = None


class Vouched(Value):
    """A head that is accepted: the newest statement about its history, if there is one.

    `since` counts the blocks after that statement's head, which nobody has signed.
    """

    signed: SignedHead | None
    since: int


def judge(
    served: Line,
    offered: SignedHead | None,
    *,
    seen: SignedHead | None = None,
    pinned: Line | None = None,
    required: bool = False,
    reset: bool = False,
    unsigned: bool = False,
    news: bool = True,
) -> Vouched | Refusal:
    """Decide about the head of `served`, beside which lies the statement `offered`.

    `seen` is the newest statement of earlier; `pinned` the history of earlier, where nothing but a
    pull moves it. With `required` the head itself has to be signed. What was signed once has to
    stay so, unless `unsigned` consents, or `served` brings no `news`. With `reset` the history may
    be another one than was seen, if its owner signed it later, or need not sign it.
    A history of another length that leaves the pinned one somewhere is no doubt of ours.
    """
    if offered is not None and (refusal := _contradiction(served, offered)):
        return refusal  # the repository contradicts itself
    free = not required and (unsigned or seen is None)
    excused = reset and (free if offered is None else _later(offered, seen))
    if seen is not None and not excused and (refusal := _contradiction(served, seen)):
        return refusal
    if pinned is not None and not reset and served.head != pinned.head:
        if served.blocks == pinned.blocks:
            return Refusal(Doubt.FORK, pinned.head)
        if served.blocks < pinned.blocks and pinned.number(served.head) is not None:
            return Refusal(Doubt.ROLLBACK, pinned.head)
    # Of two about one head that which is kept here: nothing changes then.
    statements = [each for each in (seen, offered) if each and _number(served, each) is not None]
    newest = max(statements, key=lambda each: each.statement.blocks, default=None)
    since = served.blocks - (newest.statement.blocks if newest else 0)
    if since and not free and (required or news):
        doubt = Doubt.UNSIGNED if required else Doubt.NO_LONGER_SIGNED
        return Refusal(doubt, newest.statement if newest else None)
    return Vouched(newest, since)


def _contradiction(served: Line, signed: SignedHead) -> Refusal | None:
    said, number = signed.statement, _number(served, signed)
    if number == said.blocks:
        return None
    if number is not None:
        return Refusal(Doubt.MISCOUNTED, said)
    return Refusal(Doubt.ROLLBACK if served.blocks < said.blocks else Doubt.FORK, said)


def _number(served: Line, signed: SignedHead) -> int | None:
    return served.number(signed.statement.head)


def _later(offered: SignedHead, seen: SignedHead | None) -> bool:
    return seen is None or offered.statement.time > seen.statement.time
