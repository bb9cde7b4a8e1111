"""The catalogue of a project as one HTML page. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from odfbuild.inspect.ages import DatasetAge
from odfbuild.odf.model import SetPollingSource, SetTransform
from odfbuild.odf.yaml_form import to_data
from odfbuild.report.forms.html import render_page
from odfbuild.report.forms.words import size
from odfbuild.report.forms.yaml_text import yaml_lines
from odfbuild.report.freshness import spelled
from odfbuild.report.outcome import result_word
from odfbuild.wording import count

if TYPE_CHECKING:
    from odfbuild.inspect.pages import Page


def render_pages(
    project: str,
    pages: Sequence[Page],
    status: Mapping[str, str],
    ages: Mapping[str, DatasetAge],
    at: str,
) -> str:
    """The page; `status` says how datasets stand by a plan, `ages` how old they are at `at`."""
    filters: dict[str, Any] = {
        "count": count,
        "size": size,
        "age": spelled,
        "made_by": _made_by,
        "result_word": result_word,
    }
    return render_page(
        "pages.html.j2", filters, project=project, pages=pages, status=status, ages=ages, at=at
    )


def _made_by(page: Page) -> str | None:
    """The source or transformation of a dataset as YAML, as it is defined or else committed."""
    events = page.definition.snapshot.metadata if page.definition else ()
    kinds = (SetPollingSource, SetTransform)
    found = next((event for event in events if isinstance(event, kinds)), None)
    if found is None and page.state is not None:
        found = page.state.polling_source or page.state.transform
    if found is None:
        return None
    return "\n".join(yaml_lines({k: v for k, v in to_data(found).items() if k != "kind"}))
