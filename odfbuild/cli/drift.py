"""`odfbuild drift`."""

from __future__ import annotations

from typing import Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.exit_codes import EXIT_CHANGES
from odfbuild.cli.options import DetailedExitcodeOption, SelectionOptions
from odfbuild.cli.plan_form import ReportForm, ReportFormOptions


def drift(
    state: Context,
    selection: SelectionOptions,
    *,
    deep: Annotated[
        bool, typer.Option("--deep", help="Hash all objects instead of comparing sizes.")
    ] = False,
    form: ReportFormOptions,
    detailed_exitcode: DetailedExitcodeOption = False,
) -> int:
    """Find what differs from the last definitions and runs.

    Starts no engine, uses no network and changes nothing.
    """
    from odfbuild.inspect.drift import find_drift
    from odfbuild.report.errors import with_errors
    from odfbuild.report.findings.drift import drift_to_data, render_drift, render_drift_markdown

    chosen = state.chosen(selection)
    found = find_drift(state.directory, state.given, chosen, deep=deep)
    if form is ReportForm.json:
        state.console.data(with_errors(drift_to_data(found), found.faults))
    elif form is ReportForm.md:
        state.console.result(render_drift_markdown(found))
    else:
        state.console.result(render_drift(found, color=state.console.color))
    state.console.error(*found.faults)
    if found.faults:
        return 1
    return EXIT_CHANGES if detailed_exitcode and found.drifts else 0
