"""`odfbuild lock`."""

from __future__ import annotations

import typer

from odfbuild.cli.context import Context, Format, FormatOption, JsonOption

lock = typer.Typer(help="See which processes work on datasets now.", no_args_is_help=True)


@lock.command("list")
def list_(
    context: typer.Context,
    format: FormatOption = Format.text,
    as_json: JsonOption = False,
) -> int:
    """List the processes on this machine that work on datasets of this project."""
    from odfbuild.project.load import load_project
    from odfbuild.report.table import render_table

    state: Context = context.obj
    workspace = state.workspace()
    # Datasets that are just being created have no chain yet.
    names = {d.name for d in load_project(state.directory, state.given).definitions} | {
        *workspace.aliases()
    }
    found = workspace.holders(sorted(names))
    if as_json or format is Format.json:
        state.console.data(
            [{"pid": h.pid, "since": h.since or None, "datasets": list(h.aliases)} for h in found]
        )
    elif not found:
        state.console.result("Nobody works on any dataset.")
    else:
        rows = [(str(h.pid), h.since or "-", ", ".join(h.aliases)) for h in found]
        state.console.result(render_table(("PROCESS", "SINCE", "DATASETS"), rows, frozenset({0})))
    return 0
