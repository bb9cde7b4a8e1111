"""Groups and window functions of a SELECT, as Spark's optimiser leaves them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from odfbuild.sql.increments.text_expressions import (
    Block,
    Expressions,
    origin,
    parts_of_kind,
    substituted,
)
from odfbuild.sql.increments.text_nodes import TextNode, Unknown
from odfbuild.sql.increments.text_shapes import filtered, inner_of, project, shown
from odfbuild.sql.query_text import is_call

if TYPE_CHECKING:
    from sqlglot import exp


class Groups(Expressions):
    """Makes columns, and the plans that compute aggregates and window functions."""

    def __init__(self) -> None:
        self._ids = 0

    def column_of(self, name: str, kind: str | None) -> TextNode:
        """A column that is no other one."""
        self._ids += 1
        return TextNode(kind="AttributeReference", id=self._ids, name=name, type=kind)

    def named(self, value: TextNode, name: str) -> TextNode:
        """An entry of a projection: a column as it is, or a value with a name."""
        if value.kind == "AttributeReference" and value.name == name:
            return value
        column = self.column_of(name, value.type)
        return replace(column, kind="Alias", children=[value], inner=value.inner)

    def grouped(
        self,
        node: exp.Select,
        block: Block,
        values: Sequence[TextNode],
        calls: Sequence[TextNode],
        having: Sequence[TextNode],
        more: Sequence[TextNode],
    ) -> list[tuple[TextNode, TextNode]]:
        """Group the plan; what stands for keys and aggregates above."""
        keys, sets = self._keys(node, block, values)
        keys = [*keys, *more]
        stands: list[tuple[TextNode, TextNode]] = []
        if sets is not None:
            keys, stands = self._expanded(block, keys, sets)
        if having and not parts_of_kind("AggregateExpression", having) and sets is None:
            block.plan, having = filtered(having[0], block.plan), []
        columns = [self.named(key, key.name or f"#key{n}") for n, key in enumerate(keys)]
        columns += [self.named(call, f"#call{n}") for n, call in enumerate(calls)]
        output = [shown(each) for each in columns]
        place = origin(node.args.get("group") or node, block, "group")
        if not keys and calls:
            place = calls[0].origin or place
        block.plan = TextNode(
            kind="Aggregate",
            children=[block.plan],
            grouping=keys,
            columns=columns,
            output=output,
            inner=inner_of(columns),
            origin=place,
        )
        pairs = [*stands, *zip([*keys, *calls], output, strict=True)]
        for each in having:
            block.plan = filtered(substituted(each, pairs), block.plan)
        return pairs

    def name_windows(self, group: exp.Group | None, block: Block) -> None:
        """Let entries name the columns `window` and `session_window` that GROUP BY makes."""
        for each in group.expressions if group is not None else ():
            if is_call(each, "window", "session_window"):
                block.aliases[each.name.lower()] = self.of(each, block)

    def _keys(
        self, node: exp.Select, block: Block, values: Sequence[TextNode]
    ) -> tuple[list[TextNode], list[list[TextNode]] | None]:
        """What a SELECT groups by, and which of it in each grouping set, if it has several."""
        from sqlglot import exp

        group = node.args.get("group")
        if group is None:
            return [], None
        several = exp.Rollup | exp.Cube | exp.GroupingSets
        if group.args.get("all") and not group.expressions:
            is_total = [parts_of_kind("AggregateExpression", [each]) for each in values]
            plain = [e for e, t in zip(values, is_total, strict=True) if not t]
            return [each for each in plain if not each.is_constant], None
        if any(value for clause, value in group.args.items() if clause != "expressions"):
            raise Unknown
        special = [each for each in group.expressions if isinstance(each, several)]
        plain = [
            self._key_of(each, node, block)
            for each in group.expressions
            if not isinstance(each, several)
        ]
        if not special:
            return plain, None
        if len(special) > 1:
            raise Unknown
        given = [
            [self._key_of(one, node, block) for one in _members(each)]
            for each in special[0].expressions
        ]
        every = [key for each in given for key in each]
        keys: list[TextNode] = []
        for key in (*plain, *every):
            if not any(key.means(each) for each in keys):
                keys.append(key)
        if isinstance(special[0], exp.GroupingSets):
            return keys, [[*plain, *each] for each in given]
        return keys, [plain, keys]  # of the others, the emptiest and the fullest tell all

    def _key_of(self, node: exp.Expression, select: exp.Select, block: Block) -> TextNode:
        from sqlglot import exp

        if isinstance(node, exp.Literal) and not node.is_string:
            number = int(node.name)
            items = select.expressions
            if not 1 <= number <= len(items) or any(each.is_star for each in items):
                raise Unknown
            node = items[number - 1].unalias()
        return self.of(node, block)

    def _expanded(
        self, block: Block, keys: Sequence[TextNode], sets: Sequence[Sequence[TextNode]]
    ) -> tuple[list[TextNode], list[tuple[TextNode, TextNode]]]:
        """Make each row once for each grouping set, with NULL for what that has not."""
        below = [self.named(key, f"#set{n}") for n, key in enumerate(keys)]
        child = project([*block.plan.output, *below], block.plan)
        shown = child.output[len(child.output) - len(below) :]
        made = [self.column_of(each.name, each.type) for each in shown]
        number = self.column_of("#grouping", "bigint")
        null = TextNode(kind="Literal", tag="NULL", type="void", is_constant=True)
        rows = []
        for n, each in enumerate(sets):
            has = [any(key.means(one) for one in each) for key in keys]
            values = [one if there else null for one, there in zip(shown, has, strict=True)]
            place = TextNode(kind="Literal", tag=str(n), type="bigint", is_constant=True)
            rows.append([*block.plan.output, *values, place])
        output = [*block.plan.output, *made, number]
        block.plan = TextNode(kind="Expand", children=[child], projections=rows, output=output)
        return [*made, number], list(zip(keys, made, strict=True))

    def windowed(
        self, block: Block, windows: Sequence[TextNode]
    ) -> list[tuple[TextNode, TextNode]]:
        """Compute window functions, those with other keys above each other."""
        pairs = []
        for each in windows:
            keys = [self.named(key, key.name or "#part") for key in each.partitions]
            if any(key.kind == "Alias" for key in keys):
                block.plan = project([*block.plan.output, *keys], block.plan)
            made = self.column_of("#window", each.type)
            block.plan = TextNode(
                kind="Window",
                children=[block.plan],
                partitions=[shown(key) for key in keys],
                output=[*block.plan.output, made],
                inner=each.inner,
                origin=each.origin,
            )
            pairs.append((each, made))
        return pairs


def _members(node: exp.Expression) -> Sequence[exp.Expression]:
    """The expressions of one grouping set."""
    from sqlglot import exp

    found: Sequence[exp.Expression] = (
        node.expressions if isinstance(node, exp.Tuple) else [node.unnest()]
    )
    return found
