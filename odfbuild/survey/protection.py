"""Protected datasets: by odfbuild.yaml, or by the last apply.

So a single change cannot remove both the protection and the history.
"""

from __future__ import annotations

from odfbuild.errors import PlanError
from odfbuild.plan.model import Action, Plan
from odfbuild.project.model import Config
from odfbuild.project.settings.policy import refusing
from odfbuild.store.protection import is_protected, protect
from odfbuild.store.workspace import Workspace

KIND = "rebuild"


def check_unprotected(
    config: Config, workspace: Workspace, name: str, lies_at: str | None = None
) -> None:
    """Raise `PlanError` E0339 when the history of a dataset must not be given up.

    `lies_at` is where its chain lies until it is renamed to `name`.
    """
    pattern = refusing(config.policies, name, KIND)
    if pattern is not None:
        note = f"`{KIND}: refuse` holds for `{pattern}` in odfbuild.yaml"
        help = "change the policy, run `odfbuild apply`, then repeat the command"
    elif is_protected(workspace.dataset(lies_at or name)):
        note = "the policy of the last apply protects it; the one in odfbuild.yaml no longer does"
        help = "run `odfbuild apply` with the changed policy first, then repeat the command"
    else:
        return
    raise PlanError(
        f"the history of '{name}' is protected",
        code="E0339",
        dataset=name,
        notes=(note,),
        help=help,
    )


def record_protection(plan: Plan, config: Config, workspace: Workspace) -> None:
    """Let the datasets of an applied plan be protected as the policies say now.

    Not from a branch: whoever reads the head knows the policies of the head.
    """
    if workspace.branch is not None:
        return
    for dataset in plan.datasets:
        if Action.FORGET in dataset.actions or dataset.refusal is not None:
            continue
        wanted = refusing(config.policies, dataset.name, KIND) is not None
        store = workspace.dataset(dataset.name)
        if is_protected(store) != wanted and store.head() is not None:
            protect(store, wanted)
