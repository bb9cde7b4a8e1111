"""The forms in which plans and other reports are shown."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from odfbuild.cli.console import Console

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odfbuild.plan.saved import SavedPlan
    from odfbuild.project.settings.owners import Ownership


class PlanForm(StrEnum):
    """Text for a terminal, JSON for programs, Markdown for a pull request, a page for a browser."""

    text = "text"
    json = "json"
    md = "md"
    html = "html"


PlanFormOption = Annotated[
    PlanForm, typer.Option("--format", envvar="ODFBUILD_FORMAT", help="Form of the output.")
]
MarkdownOption = Annotated[bool, typer.Option("--md", help="Short for --format md.")]


class ReportForm(StrEnum):
    """Text for a terminal, JSON for programs, Markdown for a comment."""

    text = "text"
    json = "json"
    md = "md"


ReportFormOption = Annotated[
    ReportForm, typer.Option("--format", envvar="ODFBUILD_FORMAT", help="Form of the output.")
]


def report_form_of(format: ReportForm, as_json: bool, as_markdown: bool) -> ReportForm:
    """The form that these options ask for."""
    return ReportForm(form_of(PlanForm(format), as_json, as_markdown))


def form_of(format: PlanForm, as_json: bool, as_markdown: bool) -> PlanForm:
    """The form that these options ask for."""
    if as_json:
        return PlanForm.json
    return PlanForm.md if as_markdown else format


def show_plan(
    console: Console,
    saved: SavedPlan,
    form: PlanForm,
    *,
    full: bool,
    owners: Sequence[Ownership] = (),
) -> None:
    """Print a plan in one of its forms; `owners` are whom to ask, in Markdown."""
    if form is PlanForm.json:
        from odfbuild.report.plan.json import plan_to_data

        console.data(plan_to_data(saved))
    elif form is PlanForm.md:
        from odfbuild.report.plan.markdown import render_markdown

        console.result(render_markdown(saved, owners=owners))
    elif form is PlanForm.html:
        from odfbuild.report.plan.html import render_html

        console.result(render_html(saved))
    else:
        from odfbuild.report.plan.text import render_plan

        console.result(render_plan(saved.plan, color=console.color, full=full))
