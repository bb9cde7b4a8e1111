"""Protected datasets: by odfbuild.yaml, or by the last apply.

So a single change cannot remove both the protection and the history. A file beside the alias says
what the last apply found, not the chain: it binds whoever builds here, not the peers of the
dataset. It travels with the chain, so that no edit of a project takes protection away by itself.
"""

from __future__ import annotations

import contextlib
import os

from odfbuild.errors import PlanError
from odfbuild.plan.model import Action, Plan
from odfbuild.project.model import Config
from odfbuild.project.settings.policy import refusing
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.files import sync, write_file
from odfbuild.store.workspace import Workspace

KIND = "rebuild"
_FILE = "odfbuild.protected"
_TEXT = b"The history of this dataset is protected: see `policies` of odfbuild.yaml.\n"


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


def is_protected(store: DatasetStore) -> bool:
    """Whether the last apply protected the dataset."""
    # Not by `pathlib`: apply asks for each of thousands.
    return os.path.exists(f"{store.folder}/info/{_FILE}")  # noqa: PTH110


def protect(store: DatasetStore, wanted: bool) -> None:
    """Protect the dataset, or end that; nothing when it is so already."""
    if is_protected(store) == wanted:
        return
    file = store.path / "info" / _FILE
    if wanted:
        write_file(file, _TEXT)
        return
    with contextlib.suppress(FileNotFoundError):
        file.unlink()
    sync(file.parent)
