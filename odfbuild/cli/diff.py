"""`odfbuild diff`."""

from __future__ import annotations

from typing import Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.options import (
    AsOfOption,
    ExcludeOption,
    Format,
    FormatOption,
    JsonOption,
    SelectOption,
    SelectorOption,
    selection_of,
)


def diff(
    context: typer.Context,
    revision: Annotated[
        str | None,
        typer.Argument(
            metavar="[REV]", help="A revision in Git, or two as OLD..NEW (default: the chains)."
        ),
    ] = None,
    as_of: AsOfOption = None,
    select: SelectOption = None,
    exclude: ExcludeOption = None,
    selector: SelectorOption = None,
    format: FormatOption = Format.text,
    as_json: JsonOption = False,
    detail: Annotated[
        bool, typer.Option("--full", help="Show every detail, also of many datasets.")
    ] = False,
) -> int:
    """Compare definitions with what is committed in Git, or to the chains.

    Files that are renamed or reformatted differ in nothing. Datasets whose new names are declared
    (`moved:` in odfbuild.yaml) are the same datasets. With --as-of they are compared to what the
    chains said then.
    """
    from odfbuild.graph.selection import Selection
    from odfbuild.report.definitions import differences_to_data, render_differences
    from odfbuild.survey.compare import compare_revisions, compare_with_chains

    state: Context = context.obj
    old, _, new = (revision or "").partition("..")
    if revision is None:
        then = None if as_of is None else state.states_at(Selection(), as_of)
        changes = compare_with_chains(state.directory, state.given, then)
        old = "chains" if as_of is None else f"chains as of {as_of}"
    elif as_of is not None:
        raise typer.BadParameter("a revision is in Git, not in the chains", param_hint="--as-of")
    else:
        changes = compare_revisions(state.config(), old or "HEAD", new or None)
    chosen = state.chosen(selection_of(select, exclude, selector))
    if chosen is not None:
        changes = tuple(change for change in changes if change.present_name in chosen)
    if as_json or format is Format.json:
        state.console.data(differences_to_data(changes, old or "HEAD", new or "files"))
    else:
        color = state.console.color
        state.console.result(render_differences(changes, color=color, full=detail))
    return 0
