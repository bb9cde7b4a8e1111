"""`odfbuild verify`."""

from __future__ import annotations

from typing import Annotated

import typer

from odfbuild.apply.names import block_in
from odfbuild.cli.context import (
    Context,
    ExcludeOption,
    Format,
    FormatOption,
    JsonOption,
    SelectionArgument,
    SelectOption,
    SelectorOption,
    selection_of,
)

EXIT_MISMATCH = 3


def verify(
    context: typer.Context,
    datasets: SelectionArgument = None,
    select: SelectOption = None,
    exclude: ExcludeOption = None,
    selector: SelectorOption = None,
    integrity: Annotated[
        bool,
        typer.Option("--integrity", help="Check hashes, links and rules only; start no engine."),
    ] = False,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="BLOCK", help="Do only steps after this block again (hash or end of it)."
        ),
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(min=1, help="Do at most so many steps of each dataset again, drawn anew."),
    ] = None,
    recursive: Annotated[
        bool, typer.Option("--recursive", "-r", help="Verify all that is upstream, too.")
    ] = False,
    logical: Annotated[
        bool, typer.Option("--logical", help="Recompute the logical hash of every slice, too.")
    ] = False,
    format: FormatOption = Format.text,
    as_json: JsonOption = False,
) -> int:
    """Check that history is whole, and that derivatives follow from their inputs.

    First every block, link, rule and data file against its hash; then every step of every
    derivative is done again from its inputs, with what was in force at its block, and the records
    are compared. What is damaged, or reads what is damaged, is not done again.
    """
    from odfbuild.report.listing import findings_to_data, render_findings
    from odfbuild.verify.check import verify as run_verification
    from odfbuild.verify.reproduce import Extent, upstream

    state: Context = context.obj
    workspace = state.workspace()
    names = state.committed(workspace, selection_of(select, exclude, selector, datasets))
    if recursive:
        names = upstream(workspace, names)
    if since is not None and len(names) != 1:
        raise typer.BadParameter("it needs exactly one dataset", param_hint="--since")
    after = block_in(workspace.dataset(names[0]), since) if since else None
    verdict = run_verification(
        workspace,
        names,
        logical=logical,
        extent=Extent(since=after, sample=sample),
        factory=None if integrity else state.start_engine,
    )
    if as_json or format is Format.json:
        state.console.data(findings_to_data(names, verdict.findings, verdict.reproduction))
    else:
        text = render_findings(
            names, verdict.findings, verdict.reproduction, color=state.console.color
        )
        state.console.result(text)
    return EXIT_MISMATCH if verdict.findings else 0
