"""`odfbuild drift`."""

from __future__ import annotations

from typing import Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.exit_codes import EXIT_CHANGES
from odfbuild.cli.options import (
    DetailedExitcodeOption,
    ExcludeOption,
    JsonOption,
    SelectionArgument,
    SelectOption,
    SelectorOption,
    selection_of,
)
from odfbuild.cli.plan_form import (
    MarkdownOption,
    ReportForm,
    ReportFormOption,
    report_form_of,
)


def drift(
    context: typer.Context,
    datasets: SelectionArgument = None,
    select: SelectOption = None,
    exclude: ExcludeOption = None,
    selector: SelectorOption = None,
    deep: Annotated[
        bool, typer.Option("--deep", help="Hash all objects, instead of looking at sizes.")
    ] = False,
    format: ReportFormOption = ReportForm.text,
    as_json: JsonOption = False,
    as_markdown: MarkdownOption = False,
    detailed_exitcode: DetailedExitcodeOption = False,
) -> int:
    """Tell what is not as definitions and runs left it: definitions, histories, bytes.

    Starts no engine, asks no network and changes nothing.
    """
    from odfbuild.inspect.drift import find_drift
    from odfbuild.report.drift import drift_to_data, render_drift, render_drift_markdown

    state: Context = context.obj
    chosen = state.chosen(selection_of(select, exclude, selector, datasets))
    found = find_drift(state.directory, state.given, chosen, deep=deep)
    form = report_form_of(format, as_json, as_markdown)
    if form is ReportForm.json:
        state.console.data(drift_to_data(found))
    elif form is ReportForm.md:
        state.console.result(render_drift_markdown(found))
    else:
        state.console.result(render_drift(found, color=state.console.color))
    return EXIT_CHANGES if detailed_exitcode and found.drifts else 0
