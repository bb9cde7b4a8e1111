"""`odfbuild verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.exit_codes import EXIT_MISMATCH
from odfbuild.cli.options import JsonOptions, SelectionOptions
from odfbuild.survey.names import block_in


def verify(
    context: typer.Context,
    selection: SelectionOptions,
    *,
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
    proof: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Check an answer that `sql --prove` wrote, and what it was read from.",
        ),
    ] = None,
    signer: Annotated[
        str | None, typer.Option(metavar="DID", help="Who must have signed it (did:key:…).")
    ] = None,
    as_json: JsonOptions,
) -> int:
    """Check that histories are intact, and that derivatives follow from their inputs.

    First every block, link, rule and data file against its hash; then every step of every
    derivative is done again from its inputs, with what was in force at its block, and the records
    are compared. What is damaged, or reads what is damaged, is not done again.
    """
    from odfbuild.report.findings.verification import findings_to_data, render_findings
    from odfbuild.verify.check import verify as run_verification
    from odfbuild.verify.reproduce import Extent, upstream

    state: Context = context.obj
    if proof is not None:
        if selection or any((integrity, since, sample, recursive, logical)):
            raise typer.BadParameter(
                "it says itself which datasets it is about", param_hint="--proof"
            )
        return _check(state, proof, signer, as_json)
    if signer is not None:
        raise typer.BadParameter("it is about a --proof", param_hint="--signer")
    workspace = state.workspace()
    names = state.committed(workspace, selection)
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
    if as_json:
        state.console.data(findings_to_data(names, verdict.findings, verdict.reproduction))
    else:
        text = render_findings(
            names, verdict.findings, verdict.reproduction, color=state.console.color
        )
        state.console.result(text)
    return EXIT_MISMATCH if verdict.findings else 0


def _check(state: Context, file: Path, signer: str | None, as_json: bool) -> int:
    from odfbuild.inspect.proof import check_proof, read_proof
    from odfbuild.report.records.proof import proof_to_data, render_proof

    found = check_proof(
        state.workspace(), read_proof(file), state.start_engine, signer=signer, name=str(file)
    )
    if as_json:
        state.console.data(proof_to_data(found))
    else:
        state.console.result(render_proof(found, str(file)))
    return 0
