"""`odfbuild show`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.options import DetailOption
from odfbuild.cli.plan_form import PlanForm, PlanFormOptions, show_plan


def show(
    state: Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File saved by `plan -o`.")],
    form: PlanFormOptions,
    detail: DetailOption = False,
) -> int:
    """Show a saved plan. Needs neither the project nor its chains."""
    from odfbuild.survey.approved import load_plan

    saved = load_plan(file)
    owners = state.owners() if form is PlanForm.md else ()
    show_plan(state.console, saved, form, full=detail, owners=owners)
    return 0
