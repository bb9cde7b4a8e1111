"""What a plan says of published tables: values only. `table/planned.py` finds them out."""

from __future__ import annotations

from enum import StrEnum

from odfbuild.errors import OdfbuildError
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
