"""The readme of a dataset as HTML. It may come from anybody, so it can contain nothing but text."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt


def rendered(text: str) -> str:
    """Markdown as HTML; tags are shown as text, images as links."""
    return str(_renderer().render(text))


@cache
def _renderer() -> MarkdownIt:
    from markdown_it import MarkdownIt

    # Links that run scripts are left as text by the library; what is no link stays as it is.
    return MarkdownIt("js-default", {"html": False, "maxNesting": 20}).disable("image")
