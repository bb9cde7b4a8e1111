"""What a plan says of published tables: values only. `table/planned.py` finds them out."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from odfbuild.errors import OdfbuildError
from odfbuild.plan.refusal import refusal_from_data, refusal_to_data
from odfbuild.values import Value


class TableStep(StrEnum):
    """What apply does with a table: a closed list, part of the output format.

    `FOLLOW`: it is up to date, and its dataset may get new records in this run. `LOOK`: what it
    holds is not known on this machine, so apply asks it.
    """

    CREATE = "create"
    UPDATE = "update"
    REWRITE = "rewrite"
    FOLLOW = "follow"
    LOOK = "look"
    REFUSE = "refuse"


CERTAIN = frozenset({TableStep.CREATE, TableStep.UPDATE, TableStep.REWRITE})
"""Steps that certainly change something."""


class TablePlan(Value, kw_only=True):
    """What apply does with one table, and why.

    `location` is as odfbuild.yaml says it. `partitions` is how many a run writes where that is
    known without reading data; `anew` is why all of them are written. A refused table has a
    `refusal`, and is not touched.
    """

    name: str
    dataset: str
    format: str
    location: str
    step: TableStep
    because: str = ""
    anew: str | None = None
    partitions: int | None = None
    refusal: OdfbuildError | None = None

    def to_data(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "name": self.name,
            "dataset": self.dataset,
            "format": self.format,
            "location": self.location,
            "step": self.step.value,
            "because": self.because,
            "anew": self.anew,
            "partitions": self.partitions,
            "refusal": refusal_to_data(self.refusal),
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> TablePlan:
        """The values that `to_data` gave."""
        plain = {**data, "step": TableStep(data["step"])}
        refusal = refusal_from_data(data["dataset"], plain.pop("refusal"))
        return cls(**plain, refusal=refusal)
