"""`odfbuild show`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.options import JsonOption
from odfbuild.cli.plan_form import MarkdownOption, PlanForm, PlanFormOption, form_of, show_plan


def show(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `plan -o` saved.")],
    format: PlanFormOption = PlanForm.text,
    as_json: JsonOption = False,
    as_markdown: MarkdownOption = False,
    detail: Annotated[
        bool, typer.Option("--full", help="Show every detail, also of many datasets.")
    ] = False,
) -> int:
    """Show a saved plan. Needs neither the project nor its chains."""
    from odfbuild.survey.approved import load_plan

    state: Context = context.obj
    saved = load_plan(file)
    form = form_of(format, as_json, as_markdown)
    owners = state.owners() if form is PlanForm.md else ()
    show_plan(state.console, saved, form, full=detail, owners=owners)
    return 0
