"""A plan as one HTML page. Pure."""

from __future__ import annotations

from odfbuild.plan.saved import SavedPlan
from odfbuild.report.errors import render_error
from odfbuild.report.forms.html import render_page
from odfbuild.report.plan.view import view


def render_html(saved: SavedPlan) -> str:
    """The page."""
    return render_page(
        "plan.html.j2",
        {"error_text": lambda error: render_error(error).rstrip()},
        plan=view(saved.plan),
        saved=saved,
    )
