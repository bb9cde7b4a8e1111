"""Pages of HTML from templates; everything that they are given is escaped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from odfbuild.project.resources import template_text
from odfbuild.report.forms.visible import visible

if TYPE_CHECKING:
    from jinja2 import Environment


def render_page(template: str, filters: Mapping[str, Callable[..., Any]], **values: Any) -> str:
    """The page that a template of `templates/report` makes of `values`.

    It shows all characters in the order in which they stand in a value.
    """
    environment = _environment()
    environment.filters |= filters
    return visible(environment.get_template(template).render(values))


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    return Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=FunctionLoader(lambda name: template_text(f"report/{name}")),
    )
