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
    state: Context,
    selection: SelectionOptions,
    *,
    integrity: Annotated[
        bool,
        typer.Option("--integrity", help="Only check hashes, links and rules; start no engine."),
    ] = False,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="BLOCK", help="Recompute only steps after this block (hash or its end)."
        ),
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(min=1, help="Recompute at most N random steps of each dataset."),
    ] = None,
    full: Annotated[
        bool,
        typer.Option("--full", help="Compute each step over all records, not from what changed."),
    ] = False,
    recursive: Annotated[
        bool, typer.Option("--recursive", "-r", help="Also verify all upstream datasets.")
    ] = False,
    logical: Annotated[
        bool, typer.Option("--logical", help="Also recompute the logical hash of every slice.")
    ] = False,
    proof: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Check a proof that `sql --prove` wrote, and the data it read.",
        ),
    ] = None,
    signer: Annotated[
        str | None, typer.Option(metavar="DID", help="Required signer (did:key:…).")
    ] = None,
    as_json: JsonOptions,
) -> int:
    """Check that histories are intact, and that derivatives follow from their inputs.

    First checks the hashes of all blocks and data files, and the rules of the chain. Then
    recomputes every step of every derivative from its inputs, with the query and schemas in force
    at its block, and compares the records. Behind long histories, steps are computed from what they
    change, and the last one with each query over all records. Damaged datasets and those downstream
    are not recomputed. Published tables are compared with their datasets.
    """
    from odfbuild.inspect.verify.check import verify as run_verification
    from odfbuild.inspect.verify.reproduce import Extent, upstream
    from odfbuild.report.findings.verification import render_verdict, verdict_to_data

    if proof is not None:
        if selection or any((integrity, since, sample, full, recursive, logical)):
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
        extent=Extent(since=after, sample=sample, full=full),
        factory=None if integrity else state.start_engine,
        all_of_project=not (selection or recursive),
        settings=state.config().engine,
    )
    if state.config().tables:
        from odfbuild.inspect.tables import with_tables

        verdict = with_tables(verdict, state.config(), workspace, names, records=not integrity)
    if as_json:
        state.console.data(verdict_to_data(names, verdict))
    else:
        state.console.result(render_verdict(names, verdict, color=state.console.color))
    return EXIT_MISMATCH if verdict.findings else 0


def _check(state: Context, file: Path, signer: str | None, as_json: bool) -> int:
    from odfbuild.inspect.proof import check_proof, read_proof
    from odfbuild.report.records.proof import proof_to_data, render_proof

    found = check_proof(
        state.workspace(), read_proof(file), state.start_engine, signer=signer, name=str(file)
    )
    state.console.show(
        as_json, lambda: proof_to_data(found), lambda: render_proof(found, str(file))
    )
    return 0
