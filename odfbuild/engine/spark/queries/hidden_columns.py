"""Carry hidden columns of inputs through the row-wise part of an analysed plan.

A query sees only the columns of its inputs, also with `SELECT *`. What a mode has to know about the
record behind a row (its offset, whether it is new, whether it came late) stands in further columns
below the view, and is passed up here, past every projection, to where the mode needs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from odfbuild.engine.spark.internals.catalyst import Catalyst
from odfbuild.engine.spark.internals.node import Node
from odfbuild.engine.spark.results.frames import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PREFIX = "__odf_"
"""How names of hidden columns begin."""


def hide(frame: DataFrame, alias: str) -> None:
    """Make `frame` the view `alias`, without showing its hidden columns."""
    shown = [quote(name) for name in frame.columns if not name.startswith(PREFIX)]
    Catalyst(frame.sparkSession).show(frame.selectExpr(*shown), alias)


def is_input(plan: Node, inputs: Sequence[str]) -> bool:
    """Whether a node is the view of an input."""
    return plan.kind == "View" and plan.view in (alias.lower() for alias in inputs)


class Carrier:
    """Passes the hidden columns `hidden` up through plans over `inputs`."""

    def __init__(self, catalyst: Catalyst, inputs: Sequence[str], hidden: Sequence[str]) -> None:
        self._build = catalyst.build
        self._inputs = inputs
        self._hidden = hidden

    def carry(self, plan: Node) -> Node:
        """`plan` with the hidden columns behind its own."""
        kind = plan.kind
        if is_input(plan, self._inputs):
            shown = plan.child
            return self._build.project([*shown.output, *self._of(shown.child)], shown.child)
        children = [self.carry(child) for child in plan.children]
        if kind == "Project":
            [child] = children
            return self._build.project([*plan.columns, *self._of(child)], child)
        if kind == "Union":
            children = [
                self._build.project([*old.output, *self._of(new)], new)
                for old, new in zip(plan.children, children, strict=True)
            ]
        if kind == "Expand":
            [child] = children
            return self._build.expand(plan, self._of(child), child)
        if kind == "Aggregate" or not children:
            raise AssertionError(f"{kind} does not handle each record alone")
        return self._build.with_children(plan, children)

    def _of(self, plan: Node) -> list[Node]:
        """The hidden columns in the output of a plan, in order."""
        found = {column.name: column for column in plan.output}
        return [found[name] for name in self._hidden]
