"""`odfbuild engine`: releases of the engine that chains name."""

from __future__ import annotations

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.exit_codes import EXIT_MISMATCH
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

engine = typer.Typer(no_args_is_help=True, help="Which release of Spark computed what.")


@engine.callback()
def _group() -> None:
    """Which release of Spark computed what."""


@engine.command()
def deprecate(
    context: typer.Context,
    datasets: SelectionArgument = None,
    select: SelectOption = None,
    exclude: ExcludeOption = None,
    selector: SelectorOption = None,
    format: FormatOption = Format.text,
    as_json: JsonOption = False,
) -> int:
    """Let the installed release answer for what older ones computed.

    Every step is done again; where all records are the same, the chain names the installed release.
    """
    from odfbuild.apply.deprecate import deprecate as carry_out
    from odfbuild.engine.release import engine_version
    from odfbuild.report.findings import render_findings
    from odfbuild.report.releases import deprecated_to_data, render_deprecated

    state: Context = context.obj
    workspace = state.workspace()
    names = state.committed(workspace, selection_of(select, exclude, selector, datasets))
    now = engine_version()
    done, verdict = carry_out(workspace, names, state.start_engine, now)
    if as_json or format is Format.json:
        state.console.data(deprecated_to_data(done, verdict.findings, now))
    else:
        if verdict.findings:
            text = render_findings(
                [each.name for each in done],
                verdict.findings,
                verdict.reproduction,
                color=state.console.color,
            )
            state.console.result(text + "\n")
        state.console.result(render_deprecated(done, now))
    return EXIT_MISMATCH if verdict.findings else 0
