"""What a dataset is going to bring to those that read it."""

from __future__ import annotations

from odfbuild.plan.model import Reason
from odfbuild.values import dataclass


@dataclass(frozen=True, slots=True)
class ExpectedInput:
    """A dataset that will run (`certain`) or that will run if a source has news.

    `records` is how many new records are to be expected, `None` when that cannot be told; unless
    `exact` it is an upper bound. `causes` say why it runs, each down to a root cause.
    """

    certain: bool
    records: int | None
    exact: bool
    causes: tuple[Reason, ...]
