"""The plan of a query from its text, in the form that Spark's optimiser gives it.

DISTINCT is an aggregation, EXCEPT, IN and EXISTS are joins, and conditions of WHERE stand in the
joins that they belong to, as in Spark 4.3. Only what the rules of this folder ask of a plan is
made. What is not followed raises `Unknown`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from odfbuild.sql.functions import TABLE_FUNCTIONS
from odfbuild.sql.increments.text_expressions import (
    Block,
    Tables,
    equal,
    origin,
    parts_of_kind,
    references,
    substituted,
)
from odfbuild.sql.increments.text_groups import Groups
from odfbuild.sql.increments.text_nodes import (
    CORRELATED,
    INTEGERS,
    Files,
    TextNode,
    Unknown,
    common_type,
)
from odfbuild.sql.increments.text_shapes import (
    HALF,
    distinct,
    filtered,
    joined,
    project,
    pushed_down,
)
from odfbuild.sql.query_text import is_call, name_of

if TYPE_CHECKING:
    from sqlglot import exp

Columns = Sequence[tuple[str, str | None]]
"""Names and types of columns."""

_MOST = 300
"""Relations that a query may read, with everything that it names written out."""
_JOINS = {
    ("", ""): "Inner",
    ("", "INNER"): "Inner",
    ("", "CROSS"): "Cross",
    ("LEFT", ""): "LeftOuter",
    ("LEFT", "OUTER"): "LeftOuter",
    ("RIGHT", ""): "RightOuter",
    ("RIGHT", "OUTER"): "RightOuter",
    ("FULL", ""): "FullOuter",
    ("FULL", "OUTER"): "FullOuter",
    ("LEFT", "SEMI"): "LeftSemi",
    ("", "SEMI"): "LeftSemi",
    ("LEFT", "ANTI"): "LeftAnti",
    ("", "ANTI"): "LeftAnti",
}
_CLAUSES = frozenset(
    {"with_", "expressions", "hint", "distinct", "from_", "laterals", "joins", "where", "group"}
    | {"having", "qualify", "order", "limit", "offset", "sort", "distribute", "cluster", "kind"}
)


def plan_of(steps: Sequence[tuple[str, str | None]], inputs: Mapping[str, Columns]) -> TextNode:
    """The plan of queries over `inputs`, by alias; `Unknown` where the text does not tell it."""
    from odfbuild.sql.parsed import parsed

    maker = _Maker(inputs)
    for number, (text, alias) in enumerate(steps):
        tree = parsed(text)
        if tree is None:
            raise Unknown
        made = partial(maker.step, tree, text, number)
        if alias is None or number == len(steps) - 1:
            return made()
        maker.tables[alias.lower()] = made
    raise Unknown


class _Maker(Groups):
    """Makes plans; the columns of each are others, however often a relation is read."""

    def __init__(self, inputs: Mapping[str, Columns]) -> None:
        self.tables: dict[str, Callable[[], TextNode]] = {
            alias.lower(): partial(self._input, alias, columns) for alias, columns in inputs.items()
        }
        super().__init__()
        self._read = 0

    def step(self, tree: exp.Query, text: str, number: int) -> TextNode:
        """The plan of one of the queries."""
        return self.query(tree, Block(tables=dict(self.tables), text=text, step=number))

    def _input(self, alias: str, columns: Columns) -> TextNode:
        self._read += 1
        if self._read > _MOST:
            raise Unknown
        output = [self.column_of(name, kind) for name, kind in columns]
        return TextNode(kind="LogicalRelation", output=output, files=Files((alias,)))

    # --- Queries ---

    def query(self, node: exp.Expression, around: Block) -> TextNode:
        """The plan of a query; `around` is what it stands in, with what it may read."""
        from sqlglot import exp

        block = self._with_named(node, around)
        match node:
            case exp.Subquery():
                return _cut(self.query(node.this, block), node, block)
            case exp.SetOperation():
                left, right = self.query(node.left, block), self.query(node.right, block)
                return _cut(self._united(node, left, right, block), node, block)
            case exp.Select():
                fresh = Block(
                    tables=block.tables, text=block.text, step=block.step, outer=around.outer
                )
                made = self._selected(node, fresh, [])
                return _cut(made, node, block)
        raise Unknown

    def _with_named(self, node: exp.Expression, block: Block) -> Block:
        common = node.args.get("with_")
        if common is None:
            return block
        if common.args.get("recursive"):
            raise Unknown
        for each in common.expressions:
            names = each.args["alias"].args.get("columns")
            made = partial(self._relation_named, each.this, block, names)
            tables: Tables = {**block.tables, each.alias.lower(): made}
            block = replace(block, tables=tables)
        return block

    def _relation_named(
        self, node: exp.Expression, block: Block, names: Sequence[exp.Identifier] | None
    ) -> TextNode:
        return self._renamed(self.query(node, replace(block, outer=None)), names)

    def _renamed(self, plan: TextNode, names: Sequence[exp.Identifier] | None) -> TextNode:
        if not names:
            return plan
        if len(names) != len(plan.output):
            raise Unknown
        pairs = zip(plan.output, names, strict=True)
        return project([self.named(one, name.name) for one, name in pairs], plan)

    def _selected(
        self, node: exp.Select, block: Block, pulled: list[TextNode], *, keys: bool = False
    ) -> TextNode:
        """The plan of a SELECT. Conditions with columns of the outer query are `pulled` out of it.

        With `keys`, it is grouped by the columns of its own that these compare.
        """
        if not {clause for clause, value in node.args.items() if value} <= _CLAUSES:
            raise Unknown
        self._read_relations(node, block)
        where = node.args.get("where")
        for each in _conjuncts(where.this if where else None):
            self._filtered(each, block, pulled)
        if block.uses_outer:
            raise Unknown
        group = node.args.get("group")
        self.name_windows(group, block)
        items = list(self._items(node, block))
        having = node.args.get("having")
        values = [value for _, value in items]
        asked = [self.of(having.this, block)] if having is not None else []
        qualify = node.args.get("qualify")
        asked_later = [self.of(qualify.this, block)] if qualify is not None else []
        calls = parts_of_kind("AggregateExpression", [*values, *asked, *asked_later])
        if group is not None or calls or asked:
            more = _own_columns(pulled, block.plan) if keys else []
            made = self.grouped(node, block, values, calls, asked, more)
            values, asked_later = (
                [substituted(each, made) for each in found] for found in (values, asked_later)
            )
            values += more
        elif keys:
            raise Unknown
        if block.uses_outer:
            raise Unknown
        windows = parts_of_kind("WindowExpression", [*values, *asked_later])
        pairs = self.windowed(block, windows)
        values = [substituted(each, pairs) for each in values]
        for each in asked_later:
            block.plan = filtered(substituted(each, pairs), block.plan)
        names = [name for name, _ in items] + [each.name for each in values[len(items) :]]
        shown = zip(values, names, strict=True)
        plan = project([self.named(value, name) for value, name in shown], block.plan)
        return (
            distinct(plan, origin(node, block, "distinct")) if node.args.get("distinct") else plan
        )

    def _items(self, node: exp.Select, block: Block) -> Iterator[tuple[str, TextNode]]:
        from sqlglot import exp

        for number, item in enumerate(node.expressions):
            if item.is_star:
                star = item.this if isinstance(item, exp.Column) else item
                if star.args.get("replace") or star.args.get("rename"):
                    raise Unknown
                out = {each.name.lower() for each in star.args.get("except_") or ()}
                table = item.table.lower() if isinstance(item, exp.Column) else ""
                found = [
                    each
                    for name, columns in block.relations
                    for each in columns
                    if (name == table if table else each.id not in block.hidden)
                ]
                yield from ((e.name, e) for e in found if e.name.lower() not in out)
                continue
            inner = item.this if isinstance(item, exp.Alias) else item
            if isinstance(item, exp.Aliases):
                raise Unknown
            if is_call(inner, *TABLE_FUNCTIONS):
                made = self._generated(inner, [item.alias or "col"], block)
                yield from ((each.name, each) for each in made)
                continue
            value = self.of(inner, block)
            name = item.alias_or_name or f"#{number}"
            block.aliases.setdefault(name.lower(), value)
            yield name, value

    # --- What is read ---

    def _read_relations(self, node: exp.Select, block: Block) -> None:
        source = node.args.get("from_")
        if source is not None:
            block.plan = self._relation(source.this, block)
        for join in node.args.get("joins") or ():
            self._join(join, block)
        for lateral in node.args.get("laterals") or ():
            alias = lateral.args.get("alias")
            names = [each.name for each in alias.args.get("columns") or ()] if alias else []
            if not lateral.args.get("view"):
                raise Unknown
            made = self._generated(lateral.this, names or ["col"], block)
            block.relations.append((lateral.alias.lower(), made))

    def _relation(self, node: exp.Expression, block: Block) -> TextNode:
        from sqlglot import exp

        if any(node.args.get(each) for each in ("joins", "pivots", "version", "sample")):
            raise Unknown
        alias = node.args.get("alias")
        names = alias.args.get("columns") if alias is not None else None
        match node:
            case exp.Table() if isinstance(node.this, exp.Identifier):
                make = block.tables.get(name_of(node))
                if make is None:
                    raise Unknown
                plan = make()
            case exp.Subquery():
                plan = self.query(node, replace(block, outer=None))
            case exp.Values():
                output = [self.column_of(each.name, None) for each in names or ()]
                plan = TextNode(kind="LocalRelation", output=output)
            case _:
                raise Unknown
        plan = self._renamed(plan, names)
        called = node.alias.lower() or (name_of(node) if isinstance(node, exp.Table) else "")
        block.relations.append((called, plan.output))
        return plan

    def _join(self, node: exp.Join, block: Block) -> None:
        kind = _JOINS.get((node.side or "", node.kind or ""))
        if kind is None or node.args.get("method"):
            raise Unknown
        before = list(block.relations)
        left, right = block.plan, self._relation(node.this, block)
        conditions = [self.of(each, block) for each in _conjuncts(node.args.get("on"))]
        if any(each.inner for each in conditions) or block.plan is not left:
            raise Unknown
        using = [each.name.lower() for each in node.args.get("using") or ()]
        merged = []
        for name in using:
            one = [e for _, columns in before for e in columns if e.id not in block.hidden]
            sides = [[e for e in found if e.name.lower() == name] for found in (one, right.output)]
            if [len(each) for each in sides] != [1, 1]:
                raise Unknown
            (own,), (other,) = sides
            conditions.append(equal(own, other))
            block.hidden |= {other.id} if kind != "RightOuter" else {own.id}
            if kind == "FullOuter":
                block.hidden.add(own.id)
                type = common_type([own.type, other.type])
                both = TextNode(kind="Coalesce", children=[own, other], type=type)
                merged.append(self.named(both, own.name))
        block.plan = joined(left, right, kind, conditions, origin(node, block, "join"))
        if merged:
            block.plan = project([*block.plan.output, *merged], block.plan)
            block.relations.insert(0, ("", block.plan.output[-len(merged) :]))
        if kind in HALF:
            block.relations = before

    def _generated(
        self, call: exp.Expression, names: Sequence[str], block: Block
    ) -> Sequence[TextNode]:
        value = self.of(call, block)
        made = [self.column_of(name, value.type if len(names) == 1 else None) for name in names]
        output = [*block.plan.output, *made]
        block.plan = TextNode(
            kind="Generate", children=[block.plan], output=output, inner=value.inner
        )
        return made

    # --- Conditions ---

    def _filtered(self, node: exp.Expression, block: Block, pulled: list[TextNode]) -> None:
        """Take a condition of WHERE into the plan."""
        from sqlglot import exp

        node = node.unnest()
        negated = isinstance(node, exp.Not)
        asked = node.this.unnest() if negated else node
        is_query = isinstance(asked, exp.Exists) or (
            isinstance(asked, exp.In) and asked.args.get("query")
        )
        kind = "LeftAnti" if negated else "LeftSemi"
        if is_query and self._half_joined(asked, block, kind) is not None:
            return
        condition = self.of(node, block)
        if block.uses_outer:
            block.uses_outer = False
            pulled.append(condition)
            return
        block.plan = pushed_down(condition, block.plan)

    def _half_joined(self, node: exp.Expression, block: Block, kind: str) -> TextNode | None:
        """Join with what EXISTS or IN asks for; `None` where that is the same for all records."""
        from sqlglot import exp

        asked = node.this if isinstance(node, exp.Exists) else node.args["query"]
        conditions: list[TextNode] = []
        right = self._inner_query(asked, block, conditions)
        if isinstance(node, exp.In):
            value = self.of(node.this, block)
            if block.uses_outer or len(right.output) != 1:
                raise Unknown
            same = equal(value, right.output[0])
            if kind == "LeftAnti" or isinstance(node.parent, exp.Not):
                # A NULL on either side makes NOT IN unknown.
                same = TextNode(kind="Or", children=[same], inner=same.inner)
            conditions.append(same)
        elif not conditions:
            return None
        made = joined(block.plan, right, kind, conditions, origin(node, block), CORRELATED)
        if kind == "ExistenceJoin":
            found = self.column_of("exists", "boolean")
            block.plan = replace(made, output=[*made.output, found])
            return found
        block.plan = made
        return made

    def _inner_query(
        self, node: exp.Expression, block: Block, pulled: list[TextNode], *, keys: bool = False
    ) -> TextNode:
        from sqlglot import exp

        node = node.unnest()
        inner = Block(tables=block.tables, text=block.text, step=block.step, outer=block)
        cut = any(node.args.get(each) for each in ("limit", "offset", "with_"))
        if not isinstance(node, exp.Select) or cut:
            return self.query(node, replace(inner, outer=None))
        plan = self._selected(node, inner, pulled)
        lost = frozenset().union(*map(references, pulled)) - {
            each.id for each in (*plan.output, *block.plan.output)
        }
        if lost and plan.kind in ("Project", "Aggregate"):
            # What is compared with the outer query goes with the rows.
            own = [each for each in inner.plan.output if each.id in lost]
            if plan.kind == "Aggregate" or parts_of_kind("AggregateExpression", plan.columns):
                raise Unknown
            plan = project([*plan.columns, *own], plan.child)
        return plan

    def subquery(self, node: exp.Expression, block: Block) -> TextNode:
        """See `Expressions.subquery`."""
        from sqlglot import exp

        if isinstance(node, exp.Exists | exp.In):
            found = self._half_joined(node, block, "ExistenceJoin")
            if found is not None:
                return found
            asked = self.query(node.this, replace(block, outer=None))
            return TextNode(kind="ScalarSubquery", type="boolean", inner=[asked])
        query = node.unnest()
        if not isinstance(query, exp.Select):
            return self._value_of(self.query(query, replace(block, outer=None)))
        try:
            plan = self.query(query, replace(block, outer=None))
        except Unknown:
            return self._value_joined(query, block)
        return self._value_of(plan)

    def _value_of(self, plan: TextNode) -> TextNode:
        kind = plan.output[0].type if len(plan.output) == 1 else None
        return TextNode(kind="ScalarSubquery", type=kind, inner=[plan], tag=f"#{id(plan)}")

    def _value_joined(self, query: exp.Select, block: Block) -> TextNode:
        """Join with the one value that a query gives for each record."""
        if any(query.args.get(each) for each in ("group", "having", "limit", "distinct", "with_")):
            raise Unknown
        inner = Block(tables=block.tables, text=block.text, step=block.step, outer=block)
        conditions: list[TextNode] = []
        plan = self._selected(query, inner, conditions, keys=True)
        if not conditions:
            raise Unknown
        place = origin(query, block)
        block.plan = joined(block.plan, plan, "LeftOuter", conditions, place, CORRELATED)
        return plan.output[0]

    # --- Set operations ---

    def _united(
        self, node: exp.SetOperation, left: TextNode, right: TextNode, block: Block
    ) -> TextNode:
        from sqlglot import exp

        if len(left.output) != len(right.output) or node.args.get("by_name"):
            raise Unknown
        pairs = list(zip(left.output, right.output, strict=True))
        types = [common_type([one.type, other.type]) for one, other in pairs]
        left, right = (self._as(types, each) for each in (left, right))
        place = origin(node, block, node.key)
        is_distinct = bool(node.args.get("distinct"))
        if isinstance(node, exp.Union) or not is_distinct:
            output = [self.column_of(c.name, t) for c, t in zip(left.output, types, strict=True)]
            union = TextNode(kind="Union", children=[left, right], output=output)
            # EXCEPT ALL and INTERSECT ALL count equal records, and repeat as many.
            is_plain = isinstance(node, exp.Union) and not is_distinct
            return union if is_plain else distinct(union, place, repeated=not is_distinct)
        kind = "LeftAnti" if isinstance(node, exp.Except) else "LeftSemi"
        conditions = [
            equal(one, other, null_safe=True)
            for one, other in zip(left.output, right.output, strict=True)
        ]
        return distinct(joined(left, right, kind, conditions, place), place)

    def _as(self, types: Sequence[str | None], plan: TextNode) -> TextNode:
        """A plan whose columns have other types, but for integers."""
        columns = []
        for column, kind in zip(plan.output, types, strict=True):
            same = column.type == kind or {column.type, kind} <= {*INTEGERS}
            value = TextNode(kind="Cast", children=[column], type=kind or "unknown")
            columns.append(column if same else self.named(value, column.name + " "))
        return plan if columns == plan.output else project(columns, plan)


def _cut(plan: TextNode, node: exp.Expression, block: Block) -> TextNode:
    """A plan of which LIMIT and OFFSET keep a part."""
    for clause, kind in (("limit", "GlobalLimit"), ("offset", "Offset")):
        if node.args.get(clause):
            place = origin(node.args[clause], block, clause)
            plan = TextNode(kind=kind, children=[plan], output=plan.output, origin=place)
    return plan


def _conjuncts(node: exp.Expression | None) -> Iterator[exp.Expression]:
    from sqlglot import exp

    node = node.unnest() if node is not None else None
    if isinstance(node, exp.And):
        yield from _conjuncts(node.left)
        yield from _conjuncts(node.right)
    elif node is not None:
        yield node


def _own_columns(conditions: Sequence[TextNode], plan: TextNode) -> list[TextNode]:
    """The columns of a plan that conditions compare."""
    asked = frozenset[int]().union(*map(references, conditions))
    return [each for each in plan.output if each.id in asked]
