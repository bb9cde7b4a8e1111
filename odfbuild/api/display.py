"""How notebooks show values: `_repr_html_` of plans, graphs, verdicts and traced records.

Rooms that make such values know nothing of reports, which lie above them; their classes get the
method here, when the first value is handed to somebody who works with Python.
"""

from __future__ import annotations

from typing import Any


def shown(form: type) -> None:
    """Let notebooks show values of a class."""
    form._repr_html_ = _HTML[form.__name__]  # type: ignore[attr-defined]


def _plan(plan: Any) -> str:
    from odfbuild.report.notebook import plan_html

    return plan_html(plan)


def _graph(graph: Any) -> str:
    from odfbuild.report.notebook import graph_html

    return graph_html(graph)


def _verdict(verdict: Any) -> str:
    from odfbuild.report.notebook import verdict_html

    return verdict_html(verdict)


def _traced(tree: Any) -> str:
    from odfbuild.report.notebook import provenance_html

    return provenance_html(tree)


_HTML = {"Plan": _plan, "Graph": _graph, "Verdict": _verdict, "TracedRecords": _traced}
