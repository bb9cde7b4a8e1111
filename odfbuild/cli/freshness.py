"""`odfbuild freshness`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.exit_codes import EXIT_MISMATCH
from odfbuild.cli.options import JsonOptions, SelectionOptions, parse_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odfbuild.inspect.ages import DatasetAge
    from odfbuild.project.model import Config


def freshness(
    state: Context,
    selection: SelectionOptions,
    *,
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="TIME", help="Compute ages as of this time (default: now)."),
    ] = None,
    prometheus: Annotated[
        Path | None,
        typer.Option(
            "--prometheus",
            metavar="FILE",
            help="Also write ages, records and last runs to this file, for node_exporter.",
        ),
    ] = None,
    deep: Annotated[
        bool,
        typer.Option(
            "--deep", help="Also ask databases how much of their log waits for changes to be read."
        ),
    ] = False,
    as_json: JsonOptions,
) -> int:
    """Show how old datasets are by their watermarks."""
    from odfbuild.inspect.ages import ages_of
    from odfbuild.odf.timestamp import Timestamp
    from odfbuild.report.freshness import ages_to_data, render_ages

    now = parse_time(at, "--at") if at else Timestamp.now()
    chosen = state.chosen(selection)
    declared = state.config().freshness
    ages = ages_of(state.directory, state.given, state.workspace(), declared, now, chosen)
    state.console.show(as_json, lambda: ages_to_data(ages), lambda: render_ages(ages))
    state.console.error(*(each.error for each in ages if each.error is not None))
    if deep:
        from odfbuild.api.sources import held_logs

        for said in held_logs(state.directory, state.given, chosen):
            if isinstance(said, str):
                state.console.note(f"warning: {said}")
            else:
                state.console.error(said)
    config = state.config()
    if prometheus is not None:
        _write(prometheus, state, config, ages)
    if config.notify and at is None:
        from odfbuild.api.alerting import tell_of_ages

        state.console.error(*tell_of_ages(config, ages))
    return EXIT_MISMATCH if any(each.status in ("stale", "damaged") for each in ages) else 0


def _write(file: Path, state: Context, config: Config, ages: Sequence[DatasetAge]) -> None:
    """Replace the file at once: it may be read at any moment."""
    from odfbuild.cli.output_file import write_output
    from odfbuild.report.prometheus import prometheus_text
    from odfbuild.survey.runs import runs_in

    workspace = state.workspace()
    sound = [each.name for each in ages if each.error is None]
    records = {name: each.records for name, each in workspace.projections(sound).items()}
    runs = runs_in(config.cache, workspace.branch)
    text = prometheus_text(config.qualified_name, ages, records, runs)
    write_output(file, lambda to: to.write(text.encode()))
