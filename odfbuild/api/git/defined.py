"""Check that the definitions of chains are committed before the chains are pushed.

A teammate who gets a chain without its definition plans the old one against it, and is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from odfbuild.errors import PlanError
from odfbuild.plan.changes.definitions import ChangeKind, compare_definitions
from odfbuild.project.git.at_revision import sides
from odfbuild.survey.compare import differences
from odfbuild.wording import named

if TYPE_CHECKING:
    from odfbuild.project.model import Config
    from odfbuild.store.workspace import Workspace

_HARMLESS = (ChangeKind.COSMETIC, ChangeKind.MOVED)


def check_defined(
    config: Config, workspace: Workspace, moved: Iterable[str], gone: Iterable[str]
) -> None:
    """`PlanError` E0394 when the commit that is checked out does not define what chains follow.

    `moved` are datasets whose chains it does not have yet, `gone` those that were removed since.
    """
    projections = workspace.projections()
    with sides(config, "HEAD", None) as both:
        then, now = both.before, both.after
        edited = {
            change.present_name: change
            for change in compare_definitions(then.definitions, now.definitions, now.config.moved)
            if change.kind not in _HARMLESS
        }
        other = {e.present_name for e in differences(then, projections) if _counts(e.kind)}
        waiting = {e.present_name for e in differences(now, projections) if _counts(e.kind)}
        # Whoever edits a definition after an apply shares nothing of that edit.
        missing = (other & edited.keys() & projections.keys()) - (waiting - {*moved})
        missing |= {each.name for each in then.definitions} & {*gone} & edited.keys()
        files = {each.name: each.file for each in (*then.definitions, *now.definitions)}
    if missing:
        raise PlanError(
            f"the commit does not have the definitions that these chains follow: "
            f"{named(sorted(missing))}",
            code="E0394",
            notes=tuple(f"not committed: {files[name]}" for name in sorted(missing)),
            help="commit the definitions first, or what they depend on (git add, git commit); then "
            "run this again",
        )


def _counts(kind: ChangeKind) -> bool:
    return kind not in _HARMLESS
