"""A plan as one HTML page. Pure."""

from __future__ import annotations

from odfbuild.inspect.data_diff.model import Comparison
from odfbuild.plan.saved import SavedPlan
from odfbuild.report.errors import render_error
from odfbuild.report.forms.html import render_page
from odfbuild.report.plan.view import view
from odfbuild.report.records.data_diff.html import page_values


def render_html(saved: SavedPlan, records: Comparison | None = None) -> str:
    """The page; with `records`, also what the plan does to these."""
    return render_page(
        "plan.html.j2",
        {"error_text": lambda error: render_error(error).rstrip()},
        plan=view(saved.plan),
        saved=saved,
        records=None if records is None else page_values(records),
    )
