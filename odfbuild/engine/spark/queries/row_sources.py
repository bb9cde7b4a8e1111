"""Extend a plan so that every result row lists the input records that it was made from.

An analysed plan is put in other terms: behind the columns of each node stands one more, a list of
the records that a row needs to come out as it does (its why-provenance). A row of a join needs
those of both sides, a group those of all its rows, a row with window functions those of its
partition. Of what no such rule is known, such as LIMIT or a subquery in a condition, the inputs are
named instead: all of what is read of them counts. Nothing is left out that a row needs. Sources:
Open Data Fabric, "Provenance"; Green, Karvounarakis, Tannen, "Provenance Semirings".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from odfbuild.engine.spark.internals.catalyst import Catalyst, plan_of
from odfbuild.engine.spark.internals.node import Node
from odfbuild.engine.spark.queries.hidden_columns import PREFIX
from odfbuild.engine.spark.results.frames import quote

if TYPE_CHECKING:
    pass

_COLUMN = PREFIX + "from_"
_NONE = "CAST(array() AS array<bigint>)"
_PASSED_ON = frozenset({"Filter", "Sort", "SubqueryAlias", "View", "Generate"})
"""Nodes that give rows of their child, with other columns perhaps."""
_HALF_JOINS = frozenset({"LeftSemi", "LeftAnti"})
_WORDS = {
    "GlobalLimit": "LIMIT",
    "LocalLimit": "LIMIT",
    "Offset": "OFFSET",
    "Except": "EXCEPT",
    "Intersect": "INTERSECT",
}


class RowSources:
    """Puts plans over the views of inputs in terms of where rows come from.

    `views` are the names of views and, for each, the number of the input whose records it shows
    and the name of its column of offsets. A record is told by one number, its offset times
    `inputs` plus the number of its input: Spark compares lists of numbers by hash, and lists of
    pairs each with each. `whole` are the inputs, by number, of which no single records can be told,
    and why; it is known when plans have been rewritten.
    """

    def __init__(
        self, catalyst: Catalyst, inputs: int, views: Mapping[str, tuple[int, str]]
    ) -> None:
        self._catalyst = catalyst
        self._build = catalyst.build
        self._views = {name.lower(): view for name, view in views.items()}
        self._inputs = inputs
        self._made = 0
        self.whole: dict[int, str] = {}

    def traced(self, plan: Node) -> tuple[Node, str]:
        """`plan`, without named subqueries, with the list of records in a column behind its own.

        The name of that column stands beside it.
        """
        below, name = self._traced(plan)
        return self._build.project([*plan.output, _column(below, name)], below), name

    def _traced(self, plan: Node) -> tuple[Node, str]:
        """`plan` with the list in some column, and the name of that column."""
        kind = plan.kind
        self._subqueries(plan)
        view = self._views.get(plan.view) if kind == "View" else None
        if view is not None:
            number, offset = view
            return self._with(plan, f"array({quote(offset)} * {self._inputs} + {number})")
        match kind:
            case "Project":
                child, name = self._traced(plan.child)
                columns = [*plan.columns, _column(child, name)]
                return self._build.project(columns, child), name
            case "Expand":
                child, name = self._traced(plan.child)
                return self._build.expand(plan, [_column(child, name)], child), name
            case "Union":
                return self._union(plan)
            case "Join":
                return self._join(plan)
            case "LateralJoin":
                return self._lateral(plan)
            case "Aggregate":
                return self._group(plan.grouping, plan.columns, plan)
            case "Distinct":
                return self._group(plan.output, plan.output, plan)
            case "Window":
                return self._window(plan)
        if kind in _PASSED_ON:
            child, name = self._traced(plan.child)
            return self._build.with_children(plan, [child]), name
        self._all_of(plan, _WORDS.get(kind, kind))
        return self._with(plan, _NONE)

    # --- Nodes with rules of their own ---

    def _union(self, plan: Node) -> tuple[Node, str]:
        branches = [(old, *self._traced(old)) for old in plan.children]
        projected = [
            self._build.project([*old.output, _column(new, name)], new)
            for old, new, name in branches
        ]
        return self._build.with_children(plan, projected), branches[0][2]

    def _join(self, plan: Node) -> tuple[Node, str]:
        left, left_name = self._traced(plan.left)
        if plan.join_type in _HALF_JOINS:
            self._all_of(plan.right, "a join that only asks whether there is a record")
            return self._build.with_children(plan, [left, plan.right]), left_name
        right, right_name = self._traced(plan.right)
        return self._both(self._build.with_children(plan, [left, right]), left_name, right_name)

    def _lateral(self, plan: Node) -> tuple[Node, str]:
        left, left_name = self._traced(plan.left)
        right, right_name = self._traced(plan.right.plan)
        return self._both(self._build.lateral(plan, left, right), left_name, right_name)

    def _both(self, plan: Node, left: str, right: str) -> tuple[Node, str]:
        """The side that an outer join fills with nulls brings no record."""
        return self._with(plan, f"concat(coalesce({left}, {_NONE}), coalesce({right}, {_NONE}))")

    def _group(self, keys: Sequence[Node], columns: Sequence[Node], plan: Node) -> tuple[Node, str]:
        child, name = self._traced(plan.child)
        all_of_group, new_name = self._collected(child, name)
        return self._build.aggregate(keys, [*columns, all_of_group], child), new_name

    def _window(self, plan: Node) -> tuple[Node, str]:
        """Every row with the records of its partition, which are collected beside it.

        A window function that collects them would copy them for every row.
        """
        child, name = self._traced(plan.child)
        keys = plan.partitions
        named = [self._build.alias(key, self._new_name()) for key in keys]
        collected, new_name = self._collected(child, name)
        partitions = self._build.aggregate(keys, [*named, collected], child)
        same = [
            self._build.same(key, _column(partitions, each.name))
            for key, each in zip(keys, named, strict=True)
        ]
        return self._build.join(plan, partitions, same), new_name

    # --- Lists of records ---

    def _with(self, plan: Node, sql: str) -> tuple[Node, str]:
        """`plan` with a list, in terms of its columns, behind its own."""
        name = self._new_name()
        frame = self._catalyst.frame(plan).selectExpr(f"{sql} AS {name}")
        [value] = plan_of(frame).columns
        return self._build.project([*plan.output, value], plan), name

    def _collected(self, child: Node, name: str) -> tuple[Node, str]:
        """All records of a group of rows of `child`, as an aggregate, and its name."""
        from pyspark.sql.functions import expr

        new_name = self._new_name()
        value = f"array_sort(array_distinct(flatten(collect_list({name}))))"
        frame = self._catalyst.frame(child).groupBy().agg(expr(f"{value} AS {new_name}"))
        [aggregate] = plan_of(frame).columns
        return aggregate, new_name

    def _new_name(self) -> str:
        self._made += 1
        return f"{_COLUMN}{self._made}"

    # --- Where no single records can be told ---

    def _subqueries(self, plan: Node) -> None:
        for expression in plan.expressions:
            if expression.kind == "LateralSubquery":
                continue  # the right side of a join, which has a rule
            for inner in self._inside(expression):
                self._all_of(inner, "a subquery in an expression")

    def _inside(self, expression: Node) -> Iterable[Node]:
        """The plans that an expression holds."""
        if self._catalyst.kind_of(expression).holds_plan:
            yield expression.plan
        for child in expression.children:
            yield from self._inside(child)

    def _all_of(self, plan: Node, why: str) -> None:
        """All that `plan` reads counts."""
        view = self._views.get(plan.view) if plan.kind == "View" else None
        if view is not None:
            self.whole.setdefault(view[0], why)
            return
        if plan.kind == "CTERelationRef":  # what it stands for is not to be seen from here
            for number, _ in self._views.values():
                self.whole.setdefault(number, why)
        for child in (*plan.children, *self._catalyst.inner_plans(plan)):
            self._all_of(child, why)


def _column(plan: Node, name: str) -> Node:
    return next(each for each in plan.output if each.name == name)
