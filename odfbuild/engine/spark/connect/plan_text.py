"""An analysed plan as the text of a query, for a server that takes nothing but text.

Every node becomes a subquery whose columns are called after their identity in the plan, so that no
name can mean two things. The text is not trusted: it is analysed again over the same relations, and
has to give the plan that it was made of, after Spark's own optimiser (`sameResult`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from odfbuild.engine.spark.connect.expression_text import Expressions, NotExpressible, column
from odfbuild.engine.spark.internals.catalyst import Catalyst
from odfbuild.engine.spark.internals.node import Node
from odfbuild.engine.spark.results.frames import quote
from odfbuild.values import Value

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PREFIX = "__odf_relation_"
"""How names of the views that a text reads begin."""
OF_TASKS = "MapInArrow"
"""The node of records that tasks give, which no query has: a relation like any other."""


class Relation(Value):
    """A relation of a plan, and under which names a text knows it and its columns."""

    view: str
    leaf: Node
    columns: tuple[str, ...]


class PlanText(Value):
    """A query over `relations`; `plan` is what it was made of."""

    sql: str
    plan: Node
    relations: tuple[Relation, ...]


def text_of_plan(
    catalyst: Catalyst, plan: Node, prefix: str, leaf_of: Callable[[Node], Node]
) -> PlanText:
    """The text for an analysed plan; views that it reads begin with `prefix`.

    `leaf_of` gives for a relation one that a server can read, with the same columns.
    Raises `NotExpressible` for a plan with parts that SQL cannot say.
    """
    writer = _Writer(catalyst, prefix, leaf_of)
    made, sql = writer.plan(catalyst.inline(plan))
    build = catalyst.build
    columns = [(build.called(each, column(each)), each.name) for each in plan.output]
    named = ", ".join(f"{each.name} AS {quote(name)}" for each, name in columns)
    made = build.project([build.alias(each, name) for each, name in columns], made)
    return PlanText(f"SELECT {named} FROM ({sql})", made, tuple(writer.relations))


def check_text(catalyst: Catalyst, text: PlanText, result: DataFrame) -> None:
    """Raise `NotExpressible` unless `result`, of the text, is the same as that of its plan."""
    if not catalyst.are_same(result, catalyst.frame(text.plan)):
        raise NotExpressible("its text would not be read as the same plan")


class _Writer:
    """Gives, for each node, the plan that its text has to give, and the text."""

    def __init__(self, catalyst: Catalyst, prefix: str, leaf_of: Callable[[Node], Node]) -> None:
        self._build = catalyst.build
        self._prefix = prefix
        self._leaf_of = leaf_of
        self._text = Expressions(catalyst, self.plan)
        self.relations: list[Relation] = []

    def plan(self, node: Node) -> tuple[Node, str]:
        """A node and all below it."""
        children = node.children
        if not children or node.kind == OF_TASKS:
            return self._leaf(node)
        made = [self.plan(child) for child in children]
        if node.kind in ("SubqueryAlias", "View"):
            if _names(node) != _names(children[0]):
                raise NotExpressible("a view with columns of its own")
            return made[0]
        below = [plan for plan, _ in made]
        plain = self._text.plain(self._build.with_children(node, below))
        texts = [text for _, text in made]
        if node.kind == "Generate":
            return self._generate(plain, below[0], texts[0])
        if node.kind == "Expand":
            return self._expand(plain, below[0], texts[0])
        if len(texts) > 1:
            return plain, self._over_several(plain, texts)
        return plain, self._over_one(plain, texts[0])

    def _leaf(self, node: Node) -> tuple[Node, str]:
        if node.kind == "OneRowRelation":
            return node, "SELECT 1 AS one"
        leaf = self._leaf_of(node)
        relation = Relation(f"{self._prefix}{len(self.relations)}", leaf, tuple(_names(node)))
        self.relations.append(relation)
        fresh = self._build.fresh(leaf)
        columns = [
            self._build.alias(new, column(old), old)
            for new, old in zip(fresh.output, node.output, strict=True)
        ]
        return self._build.project(columns, fresh), f"SELECT * FROM {relation.view}"

    def _over_one(self, node: Node, child: str) -> str:
        match node.kind:
            case "Project" if node.columns:
                return f"SELECT {self._columns(node.columns)} FROM ({child})"
            case "Filter" if node.condition is not None:
                return f"SELECT * FROM ({child}) WHERE {self._text(node.condition)}"
            case "Aggregate":
                by = ", ".join(map(self._text, node.grouping))
                columns = self._columns(node.columns)
                return f"SELECT {columns} FROM ({child}){f' GROUP BY {by}' * bool(by)}"
            case "Distinct":
                return f"SELECT DISTINCT * FROM ({child})"
            case "Sort":
                order = ", ".join(map(self._text, node.order))
                whole = node.is_global
                return f"SELECT * FROM ({child}) {'ORDER' if whole else 'SORT'} BY {order}"
            case "LocalLimit":  # stands below a global one, which says it
                return child
            case "GlobalLimit":
                return f"SELECT * FROM ({child}) LIMIT {self._text(node.limit)}"
            case "Window":
                return f"SELECT *, {self._columns(node.columns)} FROM ({child})"
            case "LateralJoin":
                return self._joined(node, child, f"LATERAL ({self._text.inner(node.right)})")
        raise NotExpressible(f"{node.kind} in its plan")

    def _over_several(self, node: Node, texts: Sequence[str]) -> str:
        kind = node.kind
        if kind == "Join":
            return self._joined(node, texts[0], f"({texts[1]})")
        if _names(node) != _names(node.children[0]):
            raise NotExpressible("records of several queries under names of their own")
        if kind == "Union" and not node.is_by_name:
            return " UNION ALL ".join(f"({text})" for text in texts)
        if kind in ("Intersect", "Except"):
            word = f" {kind.upper()}{' ALL' * node.is_all} "
            return word.join(f"({text})" for text in texts)
        raise NotExpressible(f"{kind} in its plan")

    def _joined(self, node: Node, left: str, right: str) -> str:
        on = "" if node.condition is None else f" ON {self._text(node.condition)}"
        return f"SELECT * FROM ({left}) {node.join_words} JOIN {right}{on}"

    def _columns(self, columns: list[Node]) -> str:
        return ", ".join(
            f"{self._text(each.child)} AS {column(each)}"
            if each.kind == "Alias"
            else self._text(each)
            for each in columns
        )

    def _generate(self, node: Node, below: Node, child: str) -> tuple[Node, str]:
        outer, columns = node.is_outer, node.generated
        plain = self._build.generate(node.generator, outer, columns, below)
        view = f"LATERAL VIEW{' OUTER' * outer} {self._text(node.generator)} g"
        made = ", ".join(map(column, columns))
        return plain, f"SELECT {', '.join(_names(node))} FROM ({child}) {view} AS {made}"

    def _expand(self, node: Node, below: Node, child: str) -> tuple[Node, str]:
        """Several rows for each one, as generated from an array of structs."""
        outputs = node.output
        rows = node.projections
        made = [
            at
            for at, output in enumerate(outputs)
            if any(not row[at].means(output) for row in rows)
        ]
        values = [[row[at] for at in made] for row in rows]
        plain = self._build.generated(values, [outputs[at] for at in made], below)
        fields = [", ".join(f"'f{n}', {self._text(v)}" for n, v in enumerate(r)) for r in values]
        structs = ", ".join(f"named_struct({each})" for each in fields)
        names = ", ".join(column(outputs[at]) for at in made)
        view = f"LATERAL VIEW inline(array({structs})) g AS {names}"
        shown = ", ".join(map(column, outputs))
        return self._build.project(outputs, plain), f"SELECT {shown} FROM ({child}) {view}"


def _names(plan: Node) -> list[str]:
    return [column(each) for each in plan.output]
