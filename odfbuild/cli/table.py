"""`odfbuild table`."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.defaults import Group
from odfbuild.cli.exit_codes import exit_code_of
from odfbuild.cli.options import ApproveOption, JsonOptions, SelectionOptions, approved

if TYPE_CHECKING:
    from odfbuild.plan.graph.selection import Selection
    from odfbuild.project.tables import Table
    from odfbuild.survey.survey import Survey

table = Group(help="List, show, rebuild and clean up published tables.")


@table.command("ls")
def ls(state: Context, selection: SelectionOptions, as_json: JsonOptions) -> int:
    """List the tables of the selected datasets; a selection can also name tables.

    Uses no network: the status is what this machine knows.
    """
    from odfbuild.report.tables import render_tables, tables_to_data

    found, chosen = _chosen(state, selection)
    steps = {each.name: each for each in found.plan.tables}
    listed = [(each, steps.get(each.name)) for each in chosen]
    state.console.show(as_json, lambda: tables_to_data(listed), lambda: render_tables(listed))
    return 0


@table.command("show")
def show(state: Context, selection: SelectionOptions, as_json: JsonOptions) -> int:
    """Show what tables hold: partitions, files, records, and the block of the dataset.

    Reads the metadata of the tables where they are.
    """
    from odfbuild.errors import OdfbuildError
    from odfbuild.extras import require_pyarrow
    from odfbuild.report.tables import facts_to_data, render_facts

    require_pyarrow("`odfbuild table show`")
    from odfbuild.exchange.tables.planned import located
    from odfbuild.inspect.tables import look_at

    found, chosen = _chosen(state, selection)
    looked, errors = [], []
    for each in chosen:
        try:
            looked.append(look_at(found.project.config, found.workspace, each))
        except OdfbuildError as error:
            errors += [located(found.project.config, part) for part in error.apart()]
    if as_json:
        state.console.data({"tables": [facts_to_data(each) for each in looked]})
    elif looked:
        state.console.result("\n\n".join(map(render_facts, looked)))
    state.console.error(*errors)
    return exit_code_of(errors)


@table.command("rebuild")
def rebuild(
    state: Context,
    selection: SelectionOptions,
    *,
    auto_approve: ApproveOption = False,
    as_json: JsonOptions,
) -> int:
    """Write all of the selected tables anew from their datasets.

    Readers keep the present state until the new one is complete. Asks before a table is replaced
    that somebody else changed.
    """
    from odfbuild.extras import require_pyarrow
    from odfbuild.report.outcome import render_tables as render_outcomes
    from odfbuild.report.outcome import tables_to_data

    require_pyarrow("`odfbuild table rebuild`")
    from odfbuild.apply.tables import publish_table
    from odfbuild.inspect.tables import changed_by_others
    from odfbuild.survey.outcome import ApplyOutcome

    found, chosen = _chosen(state, selection)
    config, workspace = found.project.config, found.workspace
    changed = changed_by_others(config, workspace, chosen)
    if changed and not auto_approve:
        for name, how in changed.items():
            state.console.note(f"Table {name}: {how}")
        refusal = f"nothing was written: somebody else changed {', '.join(changed)}"
        if not approved(state.console, auto_approve, "Replace this?", refusal):
            return 1
    done = tuple(publish_table(config, workspace, each, anew="it was asked for") for each in chosen)
    if as_json:
        state.console.data({"tables": tables_to_data(done)})
    elif done:
        state.console.result(render_outcomes(done, color=state.console.color))
    outcome = ApplyOutcome(datasets=(), tables=done)
    state.console.error(*outcome.errors)
    return outcome.exit_code


@table.command("gc")
def gc(
    state: Context,
    selection: SelectionOptions,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", "-n", help="Show what would be removed; remove nothing.")
    ] = False,
    grace: Annotated[
        int | None,
        typer.Option(
            metavar="HOURS",
            min=0,
            help="Keep states that were current in the last HOURS hours (default: `keep` of each "
            "table).",
        ),
    ] = None,
    as_json: JsonOptions,
) -> int:
    """Remove files of tables that only old states need.

    `keep` in odfbuild.yaml says how long readers can use a state after it was replaced.
    """
    from odfbuild.extras import require_pyarrow
    from odfbuild.report.tables import collected_to_data, render_collected

    require_pyarrow("`odfbuild table gc`")
    from odfbuild.inspect.tables import collect_tables

    found, chosen = _chosen(state, selection)
    config, workspace = found.project.config, found.workspace
    keep = None if grace is None else timedelta(hours=grace)
    done = collect_tables(config, workspace, chosen, keep, dry_run=dry_run)
    if as_json:
        state.console.data({"tables": collected_to_data(done), "removed": not dry_run})
    else:
        state.console.result(render_collected(done, removed=not dry_run))
    errors = [each.error for each in done if each.error is not None]
    state.console.error(*errors)
    return exit_code_of(errors)


def _chosen(state: Context, selection: Selection) -> tuple[Survey, list[Table]]:
    """The project, and its tables that are named or whose datasets are selected; all by default."""
    from odfbuild.project.tables import declared_tables
    from odfbuild.survey.survey import choose

    found = state.survey()
    datasets = [*found.plan.names]
    tables = declared_tables(found.project.config, datasets)
    called = {each.name.lower() for each in tables}
    named = {each.lower() for each in selection.select if each.lower() in called}
    rest = replace(
        selection, select=tuple(each for each in selection.select if each.lower() not in named)
    )
    selected = frozenset(() if named else datasets)
    if rest:
        selected, _ = choose(state.directory, rest, state.given)
    return found, [
        each for each in tables if each.name.lower() in named or each.dataset in selected
    ]
