"""Expressions of a query as nodes, over the columns of what the query reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from odfbuild.sql.increments.text_nodes import (
    INTEGERS,
    Origin,
    TextNode,
    Unknown,
    common_type,
    type_of_call,
    type_of_part,
)
from odfbuild.sql.query_text import is_aggregate, is_unit, is_window

if TYPE_CHECKING:
    from sqlglot import exp

Pairs = Sequence[tuple[TextNode, TextNode]]
Tables = Mapping[str, Callable[[], TextNode]]
"""What makes the plan of each relation that may be read, by name in lower case."""

_WINDOWS = ("window", "session_window")
"""Functions in GROUP BY that make a column of their name."""
_COALESCE = ("coalesce", "nvl", "ifnull")
_SAME = {"bool_and": "min", "every": "min", "bool_or": "max", "some": "max", "count_if": "count"}
"""Aggregates that Spark's optimiser replaces."""


@dataclass(kw_only=True)
class Block:
    """One SELECT: its plan so far, and the columns that its expressions may name.

    `relations` are columns by what a relation is called there. Columns that are `hidden` are found
    with that name only. `outer` is the SELECT that this one stands in as an expression.
    """

    tables: Tables
    text: str
    step: int
    outer: Block | None = None
    plan: TextNode = field(default_factory=lambda: TextNode(kind="OneRowRelation"))
    relations: list[tuple[str, Sequence[TextNode]]] = field(default_factory=list)
    hidden: set[int] = field(default_factory=set)
    aliases: dict[str, TextNode] = field(default_factory=dict)
    uses_outer: bool = False

    def visible(self) -> Iterator[TextNode]:
        """The columns that `*` stands for."""
        for _, columns in self.relations:
            yield from (each for each in columns if each.id not in self.hidden)

    def column(self, parts: Sequence[str]) -> TextNode | None:
        """A column of a relation, or a field in one; `None` where there is none."""
        *table, name = parts
        if table:
            called = ".".join(table)
            of_table = [c for n, c in self.relations if n in (called, table[-1])]
            found = [each for columns in of_table for each in columns if _is(each, name)]
            if not found:
                found = [each for each in self.visible() if _is(each, parts[0])]
                if len(found) == 1:
                    return TextNode(kind="Field", children=found, tag=".".join(parts[1:]))
        else:
            found = [each for each in self.visible() if _is(each, name)]
        if len(found) > 1:
            raise Unknown
        return found[0] if found else None


def _is(column: TextNode, name: str) -> bool:
    return column.name.lower() == name


def origin(part: exp.Expression, block: Block, word: str = "") -> Origin:
    """Where a part of a query stands."""
    return Origin(part, block.text, block.step, word)


class Expressions:
    """Makes nodes of expressions; subqueries become plans by `subquery`."""

    def subquery(self, node: exp.Expression, block: Block) -> TextNode:
        """The node of an expression that is a query, or asks one."""
        raise NotImplementedError

    def of(self, node: exp.Expression, block: Block) -> TextNode:  # noqa: PLR0912  # one a kind
        """The node of an expression."""
        from sqlglot import exp

        match node:
            case exp.Paren() | exp.Alias() | exp.Ordered():
                return self.of(node.this, block)
            case exp.Column():
                if isinstance(node.this, exp.Star):
                    return TextNode(kind="Star", is_constant=True)
                return self._column(node, block)
            case exp.Subquery() | exp.Exists() | exp.Query():
                return self.subquery(node, block)
            case exp.In() if node.args.get("query"):
                return self.subquery(node, block)
            case exp.Lambda() | exp.Any() | exp.All():
                raise Unknown
            case exp.Star() | exp.Identifier() | exp.DataType() | exp.Var():
                return TextNode(kind=type(node).__name__, tag=node.sql(), is_constant=True)
            case exp.Literal():
                return _literal(node)
            case exp.Null() | exp.Boolean():
                kind = "void" if isinstance(node, exp.Null) else "boolean"
                return TextNode(kind="Literal", tag=node.sql(), type=kind, is_constant=True)
            case exp.Cast():
                to = node.to.sql(dialect="spark").lower().replace(" ", "")
                return cast_to(self.of(node.this, block), to)
            case exp.Window():
                return self._window(node, block)
            case exp.Anonymous():
                return self._call(node, block)
            case exp.Filter() if is_aggregate(node.this):
                called = self.of(node.this, block)
                condition = self.of(node.expression.this, block)
                where = TextNode(kind="Where", children=[condition], inner=condition.inner)
                inner = (*called.inner, *condition.inner)
                return replace(called, children=(*called.children, where), inner=inner)
        if isinstance(node, exp.AggFunc) and not is_window(node):
            return self._made("AggregateExpression", self._inside(node, block), tag=node.sql())
        return self._operator(node, block)

    def _operator(self, node: exp.Expression, block: Block) -> TextNode:
        from sqlglot import exp

        children = self._inside(node, block)
        kind = type(node).__name__
        if isinstance(node, exp.EQ | exp.NullSafeEQ):
            return equal(*children, null_safe=isinstance(node, exp.NullSafeEQ))
        types = [each.type for each in children]
        if isinstance(node, exp.Case):
            values = [*(each.args["true"] for each in node.args["ifs"]), node.args.get("default")]
            made = [self.of(each, block).type for each in values if each is not None]
            return self._made(kind, children, kind=common_type(made) or type_of_part("Add", made))
        return self._made(kind, children, kind=type_of_part(kind, types))

    def _inside(self, node: exp.Expression, block: Block) -> list[TextNode]:
        return [self.of(each, block) for each in node.iter_expressions()]

    def _made(
        self, name: str, children: Sequence[TextNode], *, kind: str | None = None, tag: str = ""
    ) -> TextNode:
        is_constant = bool(children) and all(each.is_constant for each in children)
        return TextNode(
            kind=name,
            children=children,
            type=kind,
            tag=tag,
            is_constant=is_constant and name != "AggregateExpression",
            inner=[plan for each in children for plan in each.inner],
        )

    def _call(self, node: exp.Anonymous, block: Block) -> TextNode:
        from sqlglot import exp

        name = node.name.lower()
        given = node.expressions
        is_distinct = len(given) == 1 and isinstance(given[0], exp.Distinct)
        given = given[0].expressions if is_distinct else given
        children = [
            TextNode(kind="Unit", tag=each.name.lower(), is_constant=True)
            if isinstance(each, exp.Column) and is_unit(each)
            else self.of(each, block)
            for each in given
        ]
        types = [each.type for each in children]
        kind = type_of_call(name, types)
        if is_aggregate(node):
            made = self._made("AggregateExpression", children, kind=kind, tag=_SAME.get(name, name))
            return replace(made, is_distinct=is_distinct, origin=origin(node, block, name))
        match name, children:
            case "date_trunc", [unit, time]:
                time = time if time.type != "date" else cast_to(time, "timestamp")
                return self._made("TruncTimestamp", [unit, time], kind=kind)
            case "trunc", [time, unit]:
                time = time if time.type != "timestamp" else cast_to(time, "date")
                return self._made("TruncDate", [time, unit], kind=kind)
            case ("date" | "to_date", [time]):
                return cast_to(time, "date")
            case (("int" | "bigint" | "string" | "timestamp" | "double" | "boolean"), [value]):
                return cast_to(value, name)
            case "if", [_, *values]:
                kind = common_type([each.type for each in values])
        kind_of_node = "Coalesce" if name in _COALESCE else "Call"
        tag = "" if name in _COALESCE else name
        return self._made(kind_of_node, children, kind=kind, tag=tag)

    def _window(self, node: exp.Window, block: Block) -> TextNode:
        if node.args.get("alias") or node.args.get("first") is not None:
            raise Unknown
        called = self.of(node.this, block)
        order = node.args.get("order")
        ordered = self._inside(order, block) if order is not None else []
        parts = [self.of(each, block) for each in node.args.get("partition_by") or ()]
        made = self._made("WindowExpression", [called, *ordered], kind=called.type, tag=node.sql())
        inner = [*made.inner, *(plan for each in parts for plan in each.inner)]
        place = origin(node, block, "over")
        return replace(made, partitions=parts, is_constant=False, inner=inner, origin=place)

    def _column(self, node: exp.Column, block: Block) -> TextNode:
        parts = [each.name.lower() for each in node.parts]
        found = block.column(parts) or block.aliases.get(parts[0])
        if found is not None and (len(parts) == 1 or parts[0] not in block.aliases):
            return found
        if parts[0] in _WINDOWS and parts[0] in block.aliases:
            kind = "timestamp" if parts[1:] in (["start"], ["end"]) else None
            window = block.aliases[parts[0]]
            return TextNode(kind="Field", children=[window], tag=".".join(parts[1:]), type=kind)
        of_outer = block.outer.column(parts) if block.outer is not None else None
        if of_outer is None:
            raise Unknown
        block.uses_outer = True
        return of_outer


def _literal(node: exp.Literal) -> TextNode:
    kind = "string"
    if not node.is_string:
        number = node.name.lower()
        is_whole = number.isdigit()
        kind = ("int" if int(number) < 1 << 31 else "bigint") if is_whole else "decimal(38,38)"
        kind = "double" if "e" in number or number.endswith("d") else kind
    return TextNode(kind="Literal", tag=node.name, type=kind, is_constant=True)


def cast_to(value: TextNode, kind: str) -> TextNode:
    """A value as another type."""
    if value.type == kind:
        return value
    return TextNode(
        kind="Cast",
        children=[value],
        type=kind,
        is_constant=value.is_constant,
        inner=value.inner,
    )


def equal(left: TextNode, right: TextNode, *, null_safe: bool = False) -> TextNode:
    """That two values are equal, of types as Spark compares them."""
    kinds = {left.type, right.type}
    if kinds == {"date", "timestamp"}:
        left, right = (cast_to(e, "timestamp") for e in (left, right))
    elif len(kinds) > 1 and None not in kinds and not kinds <= {*INTEGERS}:
        left, right = (e if e.is_constant else cast_to(e, "compared") for e in (left, right))
    kind = "EqualNullSafe" if null_safe else "EqualTo"
    inner = [*left.inner, *right.inner]
    constant = left.is_constant and right.is_constant
    return TextNode(
        kind=kind, children=[left, right], type="boolean", inner=inner, is_constant=constant
    )


def substituted(node: TextNode, pairs: Pairs) -> TextNode:
    """An expression in which parts gave way to what stands for them."""
    for part, instead in pairs:
        if node.means(part):
            return instead
    if not node.children and not node.partitions:
        return node
    children = [substituted(each, pairs) for each in node.children]
    parts = [substituted(each, pairs) for each in node.partitions]
    inner = [plan for each in (*children, *parts) for plan in each.inner]
    return replace(node, children=children, partitions=parts, inner=inner)


def parts_of_kind(kind: str, nodes: Sequence[TextNode]) -> list[TextNode]:
    """The parts of expressions that are of a kind, each meaning once."""
    found: list[TextNode] = []
    for node in nodes:
        for part in _all_parts(node):
            if part.kind == kind and not any(part.means(each) for each in found):
                found.append(part)
    return found


def _all_parts(node: TextNode) -> Iterator[TextNode]:
    yield node
    for each in (*node.children, *node.partitions):
        yield from _all_parts(each)


def references(node: TextNode) -> frozenset[int]:
    """Identities of the columns in an expression."""
    return frozenset(each.id for each in _all_parts(node) if each.kind == "AttributeReference")
