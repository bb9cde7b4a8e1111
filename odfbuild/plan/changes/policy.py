"""Changes that the policies of a project refuse."""

from __future__ import annotations

from collections.abc import Sequence

from odfbuild.errors import PlanError
from odfbuild.plan.changes.classify import Category, category
from odfbuild.plan.changes.diff import Diff
from odfbuild.plan.model import DatasetPlan, Reason, ReasonCode
from odfbuild.plan.places import Place, path_of
from odfbuild.project.settings.policy import Policy, refusing

_REASONS = {
    Category.ADDITIVE: ReasonCode.POLICY_ADDITIVE,
    Category.FORWARD_ONLY: ReasonCode.POLICY_FORWARD_ONLY,
}


def refused_by_policy(made: DatasetPlan, policies: Sequence[Policy], place: Place) -> Diff | None:
    """No difference but the refusal of one; `None` when the change may be, or there is none."""
    if not policies or not made.changes or made.snapshot is None:
        return None
    kind = category(made)
    if kind not in _REASONS:
        return None
    pattern = refusing(policies, made.name, kind)
    if pattern is None:
        return None
    refusal = PlanError(
        f"the change of '{made.name}' is {kind.value}, and a policy of this project refuses that",
        code="E0316",
        location=place.of(path_of(made.snapshot, made.changes[-1].after)),
        notes=(f"`{kind.value}: refuse` holds for `{pattern}` in odfbuild.yaml",),
        help=f"give the result a new name, such as '{made.name}.v2', or change the policy first",
        dataset=made.name,
    )
    reason = Reason(code=_REASONS[kind], message=refusal.message)
    return Diff(reasons=(reason,), refusal=refusal)
