"""A difference of records as HTML: a page, or a part of one. Without scripts. Pure.

Only for what may leave the machine: see `inspect.data_diff.shown`. An error is told by its code,
because its text may quote values.
"""

from __future__ import annotations

from typing import Any

from odfbuild.inspect.data_diff.model import Comparison
from odfbuild.report.forms.html import render_page
from odfbuild.report.records.data_diff.view import closing, views


def page_values(found: Comparison) -> dict[str, Any]:
    """What the template of the part calls `records`."""
    return {
        "notes": found.notes,
        "views": views(found),
        "errors": found.errors,
        "closing": closing(found),
    }


def render_data_diff_html(found: Comparison, project: str) -> str:
    """A page of its own."""
    return render_page("data-diff-page.html.j2", {}, project=project, records=page_values(found))
