"""`odfbuild plan`."""

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
    UncacheableOption,
    selection_of,
)

EXIT_CHANGES = 2


def plan(
    context: typer.Context,
    select: SelectOption = None,
    exclude: ExcludeOption = None,
    selector: SelectorOption = None,
    fetch_uncacheable: UncacheableOption = False,
    format: FormatOption = Format.text,
    as_json: JsonOption = False,
    detail: Annotated[
        bool, typer.Option("--full", help="Show every detail, also of many datasets.")
    ] = False,
    detailed_exitcode: Annotated[
        bool,
        typer.Option(
            "--detailed-exitcode",
            envvar="ODFBUILD_DETAILED_EXITCODE",
            help="Exit with 2 when there are changes, 0 when there are none.",
        ),
    ] = False,
) -> int:
    """Show what apply would do and why. Starts no JVM, uses no network, changes nothing."""
    state: Context = context.obj
    made = state.survey(
        selection_of(select, exclude, selector), fetch_uncacheable=fetch_uncacheable
    ).plan
    if as_json or format is Format.json:
        from odfbuild.report.plan_json import plan_to_data

        state.console.data(plan_to_data(made))
    else:
        from odfbuild.report.plan_text import render_plan

        state.console.result(render_plan(made, color=state.console.color, full=detail))
    if not made.applyable:
        return 1
    return EXIT_CHANGES if detailed_exitcode and made.has_changes else 0
