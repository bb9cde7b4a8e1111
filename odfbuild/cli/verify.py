"""`odfbuild verify`."""

from __future__ import annotations

from typing import Annotated

import typer

from odfbuild.cli.context import (
    Context,
    ExcludeOption,
    Format,
    FormatOption,
    JsonOption,
    SelectOption,
    SelectorOption,
    existing,
    selection_of,
)

EXIT_MISMATCH = 3


def verify(
    context: typer.Context,
    datasets: Annotated[
        list[str] | None,
        typer.Argument(metavar="[DATASET]...", help="Names of datasets (default: all)."),
    ] = None,
    logical: Annotated[
        bool, typer.Option("--logical", help="Recompute the logical hash of every slice, too.")
    ] = False,
    select: SelectOption = None,
    exclude: ExcludeOption = None,
    selector: SelectorOption = None,
    format: FormatOption = Format.text,
    as_json: JsonOption = False,
) -> int:
    """Check that history is whole: every block, link, rule and data file against its hash."""
    from odfbuild.report.listing import findings_to_data, render_findings
    from odfbuild.verify.integrity import verify_integrity

    state: Context = context.obj
    workspace = state.workspace()
    chosen = state.chosen(selection_of(select, exclude, selector))
    names = [existing(workspace, name) for name in datasets] if datasets else workspace.aliases()
    if chosen is not None:
        names = [name for name in names if name in chosen]
    findings = verify_integrity(workspace, names, logical=logical)
    if as_json or format is Format.json:
        state.console.data(findings_to_data(names, findings))
    else:
        state.console.result(render_findings(names, findings, color=state.console.color))
    return EXIT_MISMATCH if findings else 0
