"""`odfbuild graph`."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.options import (
    ExcludeOption,
    SelectionArgument,
    SelectOption,
    SelectorOption,
    selection_of,
)

if TYPE_CHECKING:
    from odfbuild.graph.selection import Selection


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
    format: Annotated[
        GraphForm, typer.Option("--format", envvar="ODFBUILD_FORMAT", help="Form of the output.")
    ] = GraphForm.text,
    as_dot: Annotated[bool, typer.Option("--dot", help="Short for --format dot.")] = False,
    as_mermaid: Annotated[
        bool, typer.Option("--mermaid", help="Short for --format mermaid.")
    ] = False,
) -> int:
    """Show which datasets derive from which.

    As openlineage, what the newest step of each dataset read and gave: a JSON event a line.
    """
    from odfbuild.apply.survey import read_definitions
    from odfbuild.report.graph import GraphView, render_dot, render_mermaid, render_tree

    state: Context = context.obj
    selection = selection_of(select, exclude, selector, datasets)
    if format is GraphForm.openlineage and not (as_dot or as_mermaid):
        return _events(state, selection)
    chosen = state.chosen(selection)
    read = read_definitions(state.directory, state.given)
    found = read.graph
    kinds = {each.name: each.snapshot.kind for each in read.project.definitions}
    shown = [name for name in found.order if chosen is None or name in chosen]
    view = GraphView(kinds={name: kinds[name] for name in shown}, inputs=found.inputs)
    form = GraphForm.dot if as_dot else GraphForm.mermaid if as_mermaid else format
    render = {
        GraphForm.text: render_tree,
        GraphForm.dot: render_dot,
        GraphForm.mermaid: render_mermaid,
    }[form]
    state.console.result(render(view))
    return 0


def _events(state: Context, selection: Selection) -> int:
    import json

    from odfbuild.apply.steps import newest_steps
    from odfbuild.report.openlineage import run_events

    workspace = state.workspace()
    steps = newest_steps(workspace, state.committed(workspace, selection))
    for event in run_events(steps, state.config().name):
        state.console.result(json.dumps(event, ensure_ascii=False))
    return 0
