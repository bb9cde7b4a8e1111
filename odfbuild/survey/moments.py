"""A dataset as it was at a block, at a time, or in a revision of Git."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odfbuild.errors import PlanError, RecordsError
from odfbuild.store.as_of import PointInTime, states_at
from odfbuild.store.cache import project
from odfbuild.survey.names import block_in, moment_in

if TYPE_CHECKING:
    from odfbuild.odf.chain.projection import Projection
    from odfbuild.odf.timestamp import Timestamp
    from odfbuild.project.model import Config
    from odfbuild.store.workspace import Workspace


def state_at(config: Config, workspace: Workspace, name: str, at: str | Timestamp) -> Projection:
    """The state of a dataset at a moment.

    A text is a time, a date (midnight UTC), a block of the dataset, or else what Git knows as a
    revision: a tag, a branch, a commit. `RecordsError` E1205 where the dataset did not exist then,
    `PlanError` E0661 for a text that is none of these.
    """
    if not isinstance(at, str):
        moment = PointInTime(at)
    else:
        try:
            moment = moment_in(workspace, at, name)
        except PlanError as error:
            found = _in_revision(config, workspace, name, at)
            if found is not None:
                return found
            raise PlanError(
                f"'{at}' is no time, no block of '{name}' and no revision of Git",
                code="E0661",
                dataset=name,
                notes=error.notes,
                help=f"`odfbuild log {name}` lists blocks, with their times",
            ) from None
    state = states_at(workspace, moment, [name]).get(name)
    if state is None:
        raise did_not_exist(name, f"at {moment}")
    return state


def state_at_block(workspace: Workspace, name: str, block: str) -> Projection:
    """The state of a dataset at a block of its chain; `PlanError` E0332 when there is none."""
    store = workspace.dataset(name)
    return project(store, block_in(store, block), None)


def did_not_exist(name: str, when: str) -> RecordsError:
    """E1205."""
    return RecordsError(
        f"'{name}' did not exist {when}",
        code="E1205",
        dataset=name,
        help=f"`odfbuild log {name}` shows when it began",
    )


def _in_revision(
    config: Config, workspace: Workspace, name: str, revision: str
) -> Projection | None:
    """The state at the head that a revision of Git has; `None` where there is no such revision."""
    from odfbuild.project.git.at_revision import file_at, is_revision
    from odfbuild.store.references import parse_head

    if not is_revision(config.root, revision):
        return None
    store = workspace.dataset(name)
    file = store.path / "refs" / "head"
    text = file_at(config.root, revision, file)
    if text is None:
        raise did_not_exist(name, f"in the revision '{revision}'")
    return project(store, parse_head(text, name, f"{revision}:{file}"), None)
