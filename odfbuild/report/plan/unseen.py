"""What a plan cannot see: sources elsewhere, and the datasets that run if these have new data.

They are told apart from changes, in one line: in a project with many of them they would be in each
plan, whatever changes. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from odfbuild.plan.model import Action, DatasetPlan, Plan, ReasonCode
from odfbuild.report.forms.rows import Row
from odfbuild.values import Value
from odfbuild.wording import count


class Unseen(Value, kw_only=True):
    """`sources` that apply asks for new data, and datasets `downstream` that run if there is any.

    `unanswered` are sources whose server was asked for this plan and did not tell.
    """

    sources: Sequence[Row] = ()
    downstream: Sequence[Row] = ()
    unanswered: Sequence[Row] = ()
    refreshed: bool = False

    def __bool__(self) -> bool:
        return bool(self.sources or self.downstream)

    @property
    def line(self) -> str:
        """All of it in one sentence; empty when there is none."""
        if not self:
            return ""
        silent = len(self.unanswered)
        told = f" ({silent:,} did not tell)" if silent else ""
        roots = count(len(self.sources), "source") + told
        readers = count(len(self.downstream), "dataset")
        if not self.downstream:
            return f"Not checked by plan: {roots}."
        if not self.sources:
            return f"Not checked by plan: the sources of {readers}."
        return f"Not checked by plan: {roots}, and {readers} downstream."

    @property
    def hint(self) -> str:
        """How to see more of it; empty when there is none."""
        if not self:
            return ""
        ask = "" if self.refreshed else ", and `odfbuild plan --refresh` asks web servers"
        return f"`odfbuild plan --full` lists all{ask}; apply checks them all."


NOTHING_UNSEEN = Unseen()


def is_unseen(dataset: DatasetPlan) -> bool:
    """Whether nothing is known to happen to it, and something may."""
    return dataset.actions == (Action.POLL,)


def unseen_of(plan: Plan, rows: Callable[[Sequence[DatasetPlan]], Sequence[Row]]) -> Unseen:
    """What apply has to look at; `rows` shows datasets."""
    found = [each for each in plan.datasets if is_unseen(each)]
    if not found:
        return NOTHING_UNSEEN
    sources = [each for each in found if not each.inputs]
    return Unseen(
        sources=rows(sources),
        downstream=rows([each for each in found if each.inputs]),
        unanswered=rows([each for each in sources if _was_asked(each)]),
        refreshed=plan.news is not None,
    )


def _was_asked(dataset: DatasetPlan) -> bool:
    return any(each.code is ReasonCode.SOURCE_NOT_ANSWERED for each in dataset.reasons)
