"""`odfbuild gc`."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.options import (
    ExcludeOption,
    Format,
    FormatOption,
    JsonOption,
    SelectionArgument,
    SelectOption,
    SelectorOption,
    selection_of,
)

_HOUR = 3600


def gc(
    context: typer.Context,
    datasets: SelectionArgument = None,
    select: SelectOption = None,
    exclude: ExcludeOption = None,
    selector: SelectorOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", "-n", help="Say what would go; remove nothing.")
    ] = False,
    grace: Annotated[
        int,
        typer.Option(
            metavar="HOURS",
            min=0,
            envvar="ODFBUILD_GRACE",
            help="Leave what is younger: it may belong to a commit that is going on.",
        ),
    ] = 24,
    format: FormatOption = Format.text,
    as_json: JsonOption = False,
) -> int:
    """Remove files that no history refers to: of killed runs, resets and rebuilds."""
    from odfbuild.apply.collect import collect
    from odfbuild.report.garbage import collection_to_data, render_collection

    state: Context = context.obj
    workspace = state.workspace()
    selection = selection_of(select, exclude, selector, datasets)
    names = state.committed(workspace, selection) if selection else None
    found = collect(workspace, names, before=time.time() - grace * _HOUR, dry_run=dry_run)
    if as_json or format is Format.json:
        state.console.data(collection_to_data(found, removed=not dry_run))
    else:
        state.console.result(render_collection(found, removed=not dry_run))
    state.console.error(*found.damaged)
    return 1 if found.damaged else 0
