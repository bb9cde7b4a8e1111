"""`odfbuild diff`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from odfbuild.cli import complete
from odfbuild.cli.context import Context
from odfbuild.cli.option_groups import Together
from odfbuild.cli.options import (
    AsOfOption,
    DetailOption,
    JsonOptions,
    selecting,
    selection_of,
)

if TYPE_CHECKING:
    from odfbuild.graph.selection import Selection

RevisionOrSelection = Annotated[
    "tuple[list[str], Selection]",
    Together(
        selecting(
            Annotated[
                list[str] | None,
                typer.Argument(
                    metavar="REV|SELECTION",
                    autocompletion=complete.selections,
                    help="A revision in Git, or two as OLD..NEW (default: the chains), and names "
                    "or selections.",
                ),
            ]
        ),
        lambda words, *options: (words or [], selection_of(None, *options)),
    ),
]


def diff(
    context: typer.Context,
    of: RevisionOrSelection,
    *,
    as_of: AsOfOption = None,
    as_json: JsonOptions,
    detail: DetailOption = False,
) -> int:
    """Compare definitions with the chains or with a Git revision.

    Renaming or reformatting a file is no difference. A dataset renamed by `moved:` in odfbuild.yaml
    is the same dataset. --as-of compares with the chains of an earlier time.
    """
    from dataclasses import replace

    from odfbuild.graph.selection import Selection
    from odfbuild.report.definitions import differences_to_data, render_differences
    from odfbuild.report.errors import with_errors
    from odfbuild.survey.compare import compare_revisions, compare_with_chains

    state: Context = context.obj
    words, selection = of
    revision = words[0] if words and _is_revision(state, words[0]) else None
    named = words if revision is None else words[1:]
    selection = replace(selection, select=(*named, *selection.select))
    old, _, new = (revision or "").partition("..")
    if revision is None:
        then = None if as_of is None else state.states_at(Selection(), as_of)
        found = compare_with_chains(state.directory, state.given, then)
        old = "chains" if as_of is None else f"chains as of {as_of}"
    elif as_of is not None:
        raise typer.BadParameter("a revision is in Git, not in the chains", param_hint="--as-of")
    else:
        found = compare_revisions(state.config(), old or "HEAD", new or None)
    chosen = state.chosen(selection)
    changes = [e for e in found.changes if chosen is None or e.present_name in chosen]
    wrong = found.faults_of(chosen)
    if as_json:
        told = differences_to_data(changes, old or "HEAD", new or "files")
        state.console.data(with_errors(told, wrong))
    else:
        color = state.console.color
        state.console.result(render_differences(changes, color=color, full=detail))
    state.console.error(*wrong)
    return 1 if wrong else 0


def _is_revision(state: Context, word: str) -> bool:
    """Whether the first word is a revision: one that Git knows, or nothing that selects."""
    from odfbuild.project.git.at_revision import is_revision

    if ".." in word or is_revision(state.config().root, word):
        return True
    selects = any(sign in word for sign in "+*:,@")
    return not selects and word not in state.names()
