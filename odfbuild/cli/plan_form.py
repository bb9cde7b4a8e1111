"""The forms in which plans and other reports are shown."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

from odfbuild.cli.console import Console
from odfbuild.cli.options import form_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odfbuild.inspect.data_diff.model import Comparison
    from odfbuild.plan.saved import SavedPlan
    from odfbuild.project.settings.owners import Ownership


class PlanForm(StrEnum):
    """Text for a terminal, JSON for programs, Markdown for a pull request, a page for a browser."""

    text = "text"
    json = "json"
    md = "md"
    html = "html"


PlanFormOptions = Annotated[PlanForm, form_options(PlanForm, "json", "md")]


class ReportForm(StrEnum):
    """Text for a terminal, JSON for programs, Markdown for a comment."""

    text = "text"
    json = "json"
    md = "md"


ReportFormOptions = Annotated[ReportForm, form_options(ReportForm, "json", "md")]


def show_plan(
    console: Console,
    saved: SavedPlan,
    form: PlanForm,
    *,
    full: bool,
    owners: Sequence[Ownership] = (),
    records: Comparison | None = None,
    shown: Comparison | None = None,
) -> None:
    """Print a plan in one of its forms; `owners` are whom to ask, in Markdown.

    With `records`, also what it does to these: on a terminal. Other forms have what may be `shown`.
    """
    if form is PlanForm.json:
        from odfbuild.report.plan.json import plan_to_data

        data = plan_to_data(saved)
        if shown is not None:
            from odfbuild.report.records.data_diff.json import data_diff_to_data

            data["records"] = data_diff_to_data(shown)
        console.data(data)
    elif form is PlanForm.md:
        from odfbuild.report.plan.markdown import render_markdown

        console.result(render_markdown(saved, owners=owners, records=shown))
    elif form is PlanForm.html:
        from odfbuild.report.plan.html import render_html

        console.result(render_html(saved, shown))
    else:
        from odfbuild.report.plan.text import render_plan

        text = render_plan(saved.plan, color=console.color, full=full)
        if records is not None:
            from odfbuild.report.records.data_diff.text import render_data_diff

            text += f"\n{render_data_diff(records, color=console.color)}"
        console.result(text)
