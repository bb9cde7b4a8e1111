"""What people see of plans, graphs, verdicts and traced records when they work with Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odfbuild.displayed import HTML, TEXT

if TYPE_CHECKING:
    from odfbuild.inspect.verify.check import Verdict
    from odfbuild.inspect.verify.provenance import TracedRecords
    from odfbuild.plan.graph.dag import Graph
    from odfbuild.plan.model import Plan


def _plan_as_text(plan: Plan) -> str:
    """The plan as `odfbuild plan` prints it."""
    from odfbuild.report.forms.visible import visible
    from odfbuild.report.plan.text import render_plan

    return visible(render_plan(plan))


def _plan(plan: Plan) -> str:
    from odfbuild.report.notebook import plan_html

    return plan_html(plan)


def _graph(graph: Graph) -> str:
    from odfbuild.report.notebook import graph_html

    return graph_html(graph)


def _verdict(verdict: Verdict) -> str:
    from odfbuild.report.notebook import verdict_html

    return verdict_html(verdict)


def _traced(tree: TracedRecords) -> str:
    from odfbuild.report.notebook import provenance_html

    return provenance_html(tree)


def register() -> None:
    """Let such values show themselves; what makes their forms is loaded when one is shown."""
    TEXT.update(Plan=_plan_as_text)
    HTML.update(Plan=_plan, Graph=_graph, Verdict=_verdict, TracedRecords=_traced)
