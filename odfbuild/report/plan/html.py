"""A plan as one HTML page. Pure."""

from __future__ import annotations

from collections.abc import Set

from odfbuild.inspect.data_diff.model import Comparison
from odfbuild.plan.model import Action, DatasetPlan, Plan
from odfbuild.plan.saved import SavedPlan
from odfbuild.report.errors import render_error
from odfbuild.report.forms.drawing import Node, draw
from odfbuild.report.forms.html import render_page
from odfbuild.report.plan.unseen import is_unseen
from odfbuild.report.plan.view import view
from odfbuild.report.records.data_diff.html import page_values

_DRAWN = 60
"""The graph of a plan that affects more datasets is not drawn: nobody could read it."""


def render_html(saved: SavedPlan, records: Comparison | None = None) -> str:
    """The page; with `records`, also what the plan does to these."""
    rows = view(saved.plan)
    return render_page(
        "plan.html.j2",
        {"error_text": lambda error: render_error(error).rstrip()},
        plan=rows,
        drawing=_drawing(saved.plan, {row.name for row in rows.rows}),
        legend=[each for each in Action if each in {d.actions[0] for d in _affected(saved.plan)}],
        saved=saved,
        records=None if records is None else page_values(records),
    )


def _affected(plan: Plan) -> list[DatasetPlan]:
    """The datasets that something is known to happen to."""
    return [each for each in plan.datasets if each.actions and not is_unseen(each)]


def _drawing(plan: Plan, rows: Set[str]) -> str | None:
    """The datasets that something happens to, with their inputs; `None` for one, or too many.

    Those that have a row of their own lead to it.
    """
    drawn = {each.name: each for each in _affected(plan)}
    if not 1 < len(drawn) <= _DRAWN:
        return None
    inputs = {name: each.inputs for name, each in drawn.items()}
    around = [name for names in inputs.values() for name in names if name not in drawn]
    nodes = [
        Node(
            name=name,
            href=f"#p-{name}" if name in rows else None,
            classes=each.actions[0].name.lower(),
            note=", ".join(action.name.lower() for action in each.actions),
        )
        for name, each in drawn.items()
    ]
    nodes += [Node(name=name, note="nothing happens to it") for name in dict.fromkeys(around)]
    if len(nodes) > 2 * _DRAWN:
        return None
    return draw(nodes, inputs, "Datasets that the plan affects, with their inputs")
