"""A difference of records as HTML: a page, or a part of one. Without scripts. Pure.

Only for what may leave the machine: see `inspect.data_diff.shown`. An error is told by its code,
because its text may quote values.
"""

from __future__ import annotations

from typing import Any

from odfbuild.inspect.data_diff.model import Comparison
from odfbuild.report.forms.html import render_page, style
from odfbuild.report.records.data_diff.view import closing, views


def data_diff_part(found: Comparison) -> Any:
    """The part of a page that has the style of pages; as Jinja takes it without escaping."""
    from markupsafe import Markup

    part = render_page(
        "data-diff.html.j2", {}, found=found, seen=views(found), closing=closing(found)
    )
    return Markup(part)


def render_data_diff_html(found: Comparison, project: str) -> str:
    """A page of its own."""
    return render_page(
        "data-diff-page.html.j2", {}, project=project, style=style(), records=data_diff_part(found)
    )
