"""`odfbuild graph`."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.options import (
    AsOfOption,
    ExcludeOption,
    SelectionArgument,
    SelectOption,
    SelectorOption,
    selection_of,
)

if TYPE_CHECKING:
    from odfbuild.graph.selection import Selection
    from odfbuild.report.graph import GraphView


class GraphForm(StrEnum):
    """A tree for people, a language of pictures, or events for catalogues."""

    text = "text"
    dot = "dot"
    mermaid = "mermaid"
    openlineage = "openlineage"


def graph(
    context: typer.Context,
    datasets: SelectionArgument = None,
    select: SelectOption = None,
    exclude: ExcludeOption = None,
    selector: SelectorOption = None,
    as_of: AsOfOption = None,
    format: Annotated[
        GraphForm, typer.Option("--format", envvar="ODFBUILD_FORMAT", help="Form of the output.")
    ] = GraphForm.text,
    as_dot: Annotated[bool, typer.Option("--dot", help="Short for --format dot.")] = False,
    as_mermaid: Annotated[
        bool, typer.Option("--mermaid", help="Short for --format mermaid.")
    ] = False,
) -> int:
    """Show which datasets derive from which.

    As openlineage, what the newest step of each dataset read and gave: a JSON event a line. With
    --as-of what the chains said then.
    """
    from odfbuild.report.graph import render_dot, render_mermaid, render_tree, view_of_chains

    state: Context = context.obj
    selection = selection_of(select, exclude, selector, datasets)
    if format is GraphForm.openlineage and not (as_dot or as_mermaid):
        if as_of is not None:
            raise typer.BadParameter("openlineage tells of the newest steps", param_hint="--as-of")
        return _events(state, selection)
    if as_of is not None:
        view = view_of_chains(state.states_at(selection, as_of))
    else:
        view = _defined(state, selection)
    form = GraphForm.dot if as_dot else GraphForm.mermaid if as_mermaid else format
    render = {
        GraphForm.text: render_tree,
        GraphForm.dot: render_dot,
        GraphForm.mermaid: render_mermaid,
    }[form]
    state.console.result(render(view))
    return 0


def _defined(state: Context, selection: Selection) -> GraphView:
    from odfbuild.report.graph import GraphView
    from odfbuild.survey.definitions import read_definitions

    chosen = state.chosen(selection)
    read = read_definitions(state.directory, state.given)
    kinds = {each.name: each.snapshot.kind for each in read.project.definitions}
    shown = [name for name in read.graph.order if chosen is None or name in chosen]
    return GraphView(kinds={name: kinds[name] for name in shown}, inputs=read.graph.inputs)


def _events(state: Context, selection: Selection) -> int:
    import json

    from odfbuild.inspect.steps import newest_steps
    from odfbuild.report.openlineage import run_events

    workspace = state.workspace()
    steps = newest_steps(workspace, state.committed(workspace, selection))
    for event in run_events(steps, state.config().name):
        state.console.result(json.dumps(event, ensure_ascii=False))
    return 0
