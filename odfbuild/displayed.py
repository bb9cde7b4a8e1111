"""How values show themselves to people: as text, and as HTML in notebooks.

The rooms that make plans, graphs and verdicts know nothing of reports, which lie above them. Their
classes are `Displayed`; who has reports says how (`api/base.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TEXT: dict[str, Callable[[Any], str]] = {}
"""What makes text of a value, by the name of its class."""
HTML: dict[str, Callable[[Any], str]] = {}


class Displayed:
    """A value with a form of its own in notebooks, where somebody knows one."""

    __slots__ = ()

    def _repr_html_(self) -> str | None:
        form = HTML.get(type(self).__name__)
        return None if form is None else form(self)
