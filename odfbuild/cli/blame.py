"""`odfbuild blame`."""

from __future__ import annotations

from odfbuild.cli.context import Context
from odfbuild.cli.options import DatasetArgument, JsonOptions, NewestOption
from odfbuild.survey.names import existing


def blame(
    state: Context,
    dataset: DatasetArgument,
    *,
    limit: NewestOption = None,
    as_json: JsonOptions,
) -> int:
    """Show the Git commit that added each block of a dataset, newest block first.

    Uses the notes that `apply` writes after `odfbuild git install`, and otherwise the commits that
    added the files of the chain.
    """
    from odfbuild.report.blame import blame_to_data, render_blame
    from odfbuild.survey.blame import blame as blamed

    workspace = state.workspace()
    store = workspace.dataset(existing(workspace, dataset))
    found = blamed(state.config(), store)[:limit]
    state.console.show(as_json, lambda: blame_to_data(found), lambda: render_blame(found))
    return 0
