"""What a plan says of the branch that it is made in."""

from __future__ import annotations

from typing import Any

from odfbuild.odf.multihash import Multihash
from odfbuild.store.branches import Limit
from odfbuild.values import Value


class Start(Value, kw_only=True):
    """The block that a dataset goes on from: of the branch, or of the head that it leaves now."""

    dataset: str
    block: Multihash
    sequence_number: int
    in_branch: bool

    def __str__(self) -> str:
        """In words."""
        return f"after {self.place}"

    @property
    def place(self) -> str:
        """The block, and whose it is."""
        owner = "branch" if self.in_branch else "head"
        return f"block #{self.sequence_number} {self.block.short} of the {owner}"


class Waiting(Value, kw_only=True):
    """A dataset whose change is not made in a branch, and why."""

    dataset: str
    why: str


class InBranch(Value, kw_only=True):
    """The branch of a plan: where its datasets go on, and what waits for the head.

    With a `limit` derivatives are computed over part of their inputs.
    """

    name: str
    starts: tuple[Start, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    limit: Limit | None = None

    def to_data(self) -> dict[str, Any]:
        """As the document of a plan has it."""
        return {
            "name": self.name,
            "limit": None if self.limit is None else self.limit.to_data(),
            "starts": [
                {
                    "dataset": each.dataset,
                    "block": str(each.block),
                    "sequence_number": each.sequence_number,
                    "of": "branch" if each.in_branch else "head",
                }
                for each in self.starts
            ],
            "waiting": [{"dataset": each.dataset, "why": each.why} for each in self.waiting],
        }

    @classmethod
    def of(cls, data: Any) -> InBranch | None:
        """From a document; `None` for a plan outside of branches."""
        if data is None:
            return None
        return cls(
            name=data["name"],
            limit=Limit.of(data["limit"]),
            starts=tuple(
                Start(
                    dataset=each["dataset"],
                    block=Multihash.parse(each["block"]),
                    sequence_number=each["sequence_number"],
                    in_branch=each["of"] == "branch",
                )
                for each in data["starts"]
            ),
            waiting=tuple(
                Waiting(dataset=each["dataset"], why=each["why"]) for each in data["waiting"]
            ),
        )
