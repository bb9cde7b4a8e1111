"""A plan as one HTML page that needs nothing else: no scripts, no fonts, no network. Pure."""

from __future__ import annotations

from odfbuild.plan.saved import SavedPlan
from odfbuild.project.resources import template_text
from odfbuild.report.errors import render_error
from odfbuild.report.plan_view import NO_CHANGES, view


def render_html(saved: SavedPlan) -> str:
    """The page."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["error_text"] = lambda error: render_error(error).rstrip()
    page = environment.from_string(template_text("report/plan.html.j2"))
    return page.render(plan=view(saved.plan), saved=saved, no_changes=NO_CHANGES)
