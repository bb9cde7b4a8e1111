"""Refuse to change chains of others here: their histories would go apart.

Source: reference behaviour, which refuses to ingest into what was pulled.
"""

from __future__ import annotations

from odfbuild.errors import PlanError
from odfbuild.store.workspace import Workspace


def check_own(workspace: Workspace, name: str) -> None:
    """`PlanError` E1067 for a dataset of others."""
    owner = workspace.elsewhere and workspace.elsewhere.owner(workspace.dataset(name))
    if owner is None:
        return
    raise PlanError(
        f"'{name}' is a dataset of others, from {owner}: nothing is appended to it here",
        code="E1067",
        dataset=name,
        notes=("its history would no longer be that of its owner",),
        help=f"`odfbuild pull {name}` brings its news; to add records or change it, make a "
        "derivative that reads it",
    )
