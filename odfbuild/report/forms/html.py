"""Pages of HTML that need nothing else: no scripts, no fonts, no network."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from odfbuild.project.resources import template_text


def render_page(template: str, filters: Mapping[str, Callable[..., Any]], **values: Any) -> str:
    """The page that a template of `templates/report` makes of `values`, all of them escaped."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= filters
    return environment.from_string(template_text(f"report/{template}")).render(values)


def style() -> Any:
    """The style of pages of plans and differences, as it stands in a page."""
    from markupsafe import Markup

    return Markup(template_text("report/page.css").rstrip())
