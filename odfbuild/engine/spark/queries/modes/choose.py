"""Choose the mode for a checked query, with the reason and the properties that the mode needs."""

from __future__ import annotations

from collections.abc import Sequence

from odfbuild.engine.spark.internals.node import Node
from odfbuild.engine.spark.queries.findings import Report
from odfbuild.engine.spark.queries.modes.shape import Joined, Windowed, stands_for
from odfbuild.sql.mode import PAIRS, RECORD_BY_RECORD, WINDOWS, Choice, Mode

_SEE_THROUGH = frozenset({"Project", "Filter", "SubqueryAlias", "View", "Sort"})


def choose(report: Report, shape: Windowed | Joined | None, retracting: Sequence[str]) -> Choice:
    """The mode for a query without errors.

    `retracting` are inputs whose records hold retractions or corrections, now or earlier.
    """
    if report.row_wise:
        return RECORD_BY_RECORD
    if shape is not None and retracting:
        return Choice(Mode.CHANGELOG, f"input '{retracting[0]}' holds retractions")
    if isinstance(shape, Windowed):
        return WINDOWS
    if isinstance(shape, Joined):
        return PAIRS
    return Choice(Mode.CHANGELOG, str(report.not_row_wise[0]))


def key_of(plan: Node) -> tuple[str, ...] | None:
    """Columns of a result that no two of its records share, `None` when none are known.

    They are the columns of the outermost GROUP BY, or a row number with what it is partitioned by.
    """
    top = {attribute.id: attribute.name for attribute in plan.output}
    names: Names = {id: (id,) for id in top}
    node = plan
    while node.kind in _SEE_THROUGH:
        if node.kind == "Project":
            names = _through(node, names)
        node = node.children[0]
    if node.kind == "Aggregate":
        return _group_key(node, names, top)
    if node.kind == "Window":
        return _row_number_key(node, names, top)
    return None


Names = dict[int, tuple[int, ...]]
"""From a column of a node to the columns of the result that it is passed on as."""


def _through(project: Node, names: Names) -> Names:
    below: dict[int, tuple[int, ...]] = {}
    for each in project.columns:
        above = names.get(each.id, ())
        if each.kind == "Alias":
            each = each.child  # noqa: PLW2901
        if each.kind == "AttributeReference":
            id = each.id
            below[id] = below.get(id, ()) + above
    return below


def _group_key(node: Node, names: Names, top: dict[int, str]) -> tuple[str, ...] | None:
    key = []
    outputs = node.columns
    for grouping in node.grouping:
        result = next(
            (
                names[each.id][0]
                for each in outputs
                if names.get(each.id) and stands_for(each, grouping)
            ),
            None,
        )
        if result is None:
            return None
        key.append(top[result])
    return tuple(key)


def _row_number_key(node: Node, names: Names, top: dict[int, str]) -> tuple[str, ...] | None:
    for named in node.columns:
        if named.kind != "Alias" or named.child.kind != "WindowExpression":
            continue
        if named.child.function.kind != "RowNumber":
            continue
        # Every row has the same constant, so that it tells none apart.
        parts = [each for each in node.partitions if not each.is_constant]
        if any(each.kind != "AttributeReference" for each in parts):
            continue
        ids = [each.id for each in (*parts, named)]
        if all(names.get(id) for id in ids):
            return tuple(top[names[id][0]] for id in ids)
    return None
