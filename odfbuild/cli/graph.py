"""`odfbuild graph`."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.exit_codes import exit_code_of
from odfbuild.cli.options import AsOfOption, SelectionOptions, form_options

if TYPE_CHECKING:
    from odfbuild.errors import OdfbuildError
    from odfbuild.plan.graph.selection import Selection
    from odfbuild.report.graph import GraphView


class GraphForm(StrEnum):
    """A tree for people, JSON for programs, a language of pictures, or events for catalogues."""

    text = "text"
    json = "json"
    dot = "dot"
    mermaid = "mermaid"
    openlineage = "openlineage"


GraphFormOptions = Annotated[GraphForm, form_options(GraphForm, "json", "dot", "mermaid")]


def graph(
    state: Context,
    selection: SelectionOptions,
    *,
    as_of: AsOfOption = None,
    form: GraphFormOptions,
) -> int:
    """Show which datasets derive from which.

    --format openlineage prints the inputs and outputs of the newest step of each dataset, one JSON
    event per line. --as-of shows the graph of an earlier time.
    """
    from odfbuild.report.graph import (
        graph_to_data,
        render_dot,
        render_mermaid,
        render_tree,
        view_of_chains,
    )

    if form is GraphForm.openlineage:
        if as_of is not None:
            raise typer.BadParameter("openlineage tells of the newest steps", param_hint="--as-of")
        return _events(state, selection)
    wrong: list[OdfbuildError] = []
    if as_of is not None:
        view = view_of_chains(state.states_at(selection, as_of))
    else:
        view, wrong = _defined(state, selection)
    if form is GraphForm.json:
        state.console.data(graph_to_data(view))
    else:
        render = {
            GraphForm.text: render_tree,
            GraphForm.dot: render_dot,
            GraphForm.mermaid: render_mermaid,
        }[form]
        state.console.result(render(view))
    state.console.error(*wrong)
    return exit_code_of(wrong)


def _defined(state: Context, selection: Selection) -> tuple[GraphView, list[OdfbuildError]]:
    """The graph of what is defined, and what is wrong with the rest."""
    from odfbuild.project.tables import declared_tables
    from odfbuild.report.graph import GraphView
    from odfbuild.survey.definitions import look_at_definitions

    chosen = state.chosen(selection)
    read = look_at_definitions(state.directory, state.given)
    kinds = {each.name: each.snapshot.kind for each in read.project.definitions}
    shown = [n for n in read.graph.order if n in kinds and (chosen is None or n in chosen)]
    external = read.external() if chosen is None else read.external() & {*chosen}
    view = GraphView(
        kinds={
            **{name: read.kind_of(name) for name in sorted(external)},
            **{name: kinds[name] for name in shown},
        },
        inputs=read.graph.inputs,
        checks=read.graph.checks,
        external=external,
        tables=declared_tables(read.project.config, [*sorted(external), *shown]),
    )
    return view, read.faults_of(chosen)


def _events(state: Context, selection: Selection) -> int:
    import json

    from odfbuild.exchange.tables.remembered import published_tables
    from odfbuild.inspect.steps import newest_steps
    from odfbuild.report.openlineage import run_events, table_events

    workspace, config = state.workspace(), state.config()
    names = state.committed(workspace, selection)
    steps = newest_steps(workspace, names)
    events = run_events(steps, config.name)
    published = published_tables(config, workspace, names)
    for event in (*events, *table_events(published, config.name)):
        state.console.result(json.dumps(event, ensure_ascii=False))
    return 0
