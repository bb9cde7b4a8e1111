"""Columns in which rows that tie in an ORDER BY may differ.

A column is settled when rows that tie agree in it: it is sorted by, it is computed of columns that
are settled, or no two rows tie at all, because the offset of an input or all that is grouped by is
settled. Looks at analysed plans, runs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from functools import cached_property

from odfbuild.engine.spark.internals.node import Node, ids_of
from odfbuild.engine.spark.queries.modes.shape import stands_for
from odfbuild.engine.spark.results.frames import quote
from odfbuild.sql import functions as lists

_OF_ONE_ROW = frozenset({"Project", "Filter", "SubqueryAlias", "Sort", "Window"})
"""Each of their rows is made of one row below."""
_OUTER = ("LeftOuter", "RightOuter", "FullOuter")
_ONE_SIDED = ("LeftSemi", "LeftAnti")
_DIRECTIONS = {("ASC", "NULLS FIRST"): "", ("DESC", "NULLS LAST"): " DESC"}


class Ties:
    """Rows of `rows` that tie in the columns `given` (their ids).

    `offsets` names the column of each view whose values are all different.
    """

    def __init__(self, rows: Node, given: Iterable[int], offsets: Mapping[str, str]) -> None:
        self._rows = rows
        self._offsets = offsets
        self._made = dict(_made(rows))
        self._given = set(given)
        for id in list(self._given):
            _see_through(id, self._given, self._made)
        self._joined = self._through_joins()

    def open(self, needed: frozenset[int]) -> list[Node]:
        """The columns among `needed` in which such rows may differ."""
        found = [a for a in self._rows.output if not self._is_settled(a.id)]
        found = [a for a in found if a.id in needed]
        return [] if found and self._are_no_two(self._rows) else found

    def _through_joins(self) -> set[int]:
        """The given columns, and those that joins make equal to them.

        On the side that an outer join may leave empty this is true of rows that are there, so it
        tells which of them can come together, and not that a column is settled.
        """
        equal = list(_equal_in_joins(self._rows))
        found, before = set(self._given), -1
        if not equal:
            return found
        made = dict(_made(self._rows, through=_JOINS_OF_ROWS))
        for id in self._given:
            _see_through(id, found, made)
        while len(found) > before:
            before = len(found)
            for one, other in equal:
                if one in found and other not in found:
                    found.add(other)
                    _see_through(other, found, made)
        return found

    def _is_settled(self, id: int) -> bool:
        if id in self._given:
            return True
        made = self._made.get(id)
        if made is None:
            return False
        if any(made.means(self._made[each]) for each in self._given & self._made.keys()):
            return True
        return not _is_of_many(made) and all(map(self._is_settled, ids_of(made.references)))

    def _are_no_two(self, plan: Node) -> bool:
        """Whether no two rows of a plan tie."""
        kind = plan.kind
        if kind == "View":
            offset = self._offsets.get(plan.view, "").lower()
            return any(
                each.name.lower() == offset and each.id in self._joined for each in plan.output
            )
        if kind in _OF_ONE_ROW:
            return self._are_no_two(plan.child)
        if kind == "Aggregate":
            return all(self._is_settled_group(each, plan) for each in plan.grouping)
        if kind == "Join":
            sides = [plan.left] if plan.join_type in _ONE_SIDED else plan.children
            return all(map(self._are_no_two, sides))
        return False

    def _is_settled_group(self, grouping: Node, aggregate: Node) -> bool:
        if grouping.kind == "AttributeReference" and grouping.id in self._joined:
            return True
        return any(
            each.id in self._joined and stands_for(each, grouping) for each in aggregate.columns
        )


class Names:
    """What the columns that an ORDER BY may name are called in the text of the query.

    Below window functions Spark puts a projection, which computes what their arguments are made of,
    under names of its own.
    """

    def __init__(self, plan: Node, sql: str) -> None:
        while plan.kind == "Window":
            plan = plan.child
        self._rows = plan
        self._sql = sql

    @cached_property
    def _computed(self) -> dict[int, Node]:
        return dict(_made_by(self._rows))

    @cached_property
    def _often(self) -> list[str]:
        scope = self._rows.child if self._rows.kind == "Project" else self._rows
        return [each.name.lower() for each in scope.output]

    def of(self, expression: Node) -> str:
        """An expression as it stands in the query, where that is known."""
        if expression.kind == "AttributeReference":
            made = self._computed.get(expression.id)
            if made is None:
                return self._column(expression)
            expression = made
        return expression.text_in(self._sql) or expression.sql

    def columns(self, column: Node) -> list[str]:
        """The columns that an ORDER BY has to name to settle one of the rows."""
        made = self._computed.get(column.id)
        if made is None:
            return [self._column(column)]
        if self._rows.kind != "Project":
            return [self.of(column)]  # an aggregate, which only its own words name
        return [self._column(each) for each in made.references]

    def order(self, order: Node) -> str:
        """A part of ORDER BY."""
        how = order.direction
        return self.of(order.child) + _DIRECTIONS.get(how, " " + " ".join(how))

    def _column(self, column: Node) -> str:
        name = column.name
        text = name if re.fullmatch(r"[A-Za-z_]\w*", name) else quote(name)
        if self._often.count(name.lower()) > 1:
            text = column.sql
        # Spellings that count as equal are told apart by their bytes.
        return f"{text} COLLATE UTF8_BINARY" if is_collated(column) else text


def is_collated(expression: Node) -> bool:
    """Whether equal values of an expression may be spelled differently."""
    kind = expression.full_type.lower()
    return re.search(r" collate (?!utf8_binary\b)", kind) is not None


def depends_on_ties(expression: Node) -> bool:
    """Whether a window function tells rows apart that tie in its ORDER BY."""
    function = expression.function
    kind = function.kind
    if kind == "AggregateExpression":
        kind = function.function.kind
    if kind in lists.ORDER_BOUND_WINDOWS:
        return True
    if kind in lists.RANKS:
        return False
    return expression.has_row_frame


def _see_through(id: int, given: set[int], made: Mapping[int, Node]) -> None:
    """Whoever sorts by a column under another name sorts by that column."""
    found = made.get(id)
    if found is None or is_collated(found):
        return
    column = found.child if found.kind == "Collate" else found
    if column.kind == "AttributeReference" and column.id not in given:
        given.add(column.id)
        _see_through(column.id, given, made)


def _made(plan: Node, through: Container[str] = ()) -> Iterator[tuple[int, Node]]:
    """The columns that a plan and those below it compute of a row, and of what.

    Outer joins are looked through if their type is in `through`: what they leave empty was not
    computed.
    """
    yield from _made_by(plan)
    kind = plan.kind
    if kind in _OF_ONE_ROW or (
        kind == "Join" and (plan.join_type not in _OUTER or plan.join_type in through)
    ):
        for child in plan.children:
            yield from _made(child, through)


_JOINS_OF_ROWS = ("LeftOuter", "RightOuter")
_SEEN_FROM = {"Inner": "both", "Cross": "both", "LeftOuter": "left", "RightOuter": "right"}
"""From which side of a join a column tells the other one."""


def _equal_in_joins(plan: Node) -> Iterator[tuple[int, int]]:
    """Columns by which joins take their rows, and columns of the other side that are equal then."""
    if plan.kind == "Join":
        side = _SEEN_FROM.get(plan.join_type)
        lefts = ids_of(plan.left.output) if side else frozenset()
        for each in _conjuncts(plan.condition) if side else ():
            if each.kind != "EqualTo" or any(map(_is_no_key, each.children)):
                continue
            one, other = each.left.id, each.right.id
            left, right = (one, other) if one in lefts else (other, one)
            if side != "right":
                yield left, right
            if side != "left":
                yield right, left
    if plan.kind in _OF_ONE_ROW or plan.kind == "Join":
        for child in plan.children:
            yield from _equal_in_joins(child)


def _conjuncts(condition: Node | None) -> Iterator[Node]:
    if condition is not None and condition.kind == "And":
        yield from _conjuncts(condition.left)
        yield from _conjuncts(condition.right)
    elif condition is not None:
        yield condition


def _is_no_key(expression: Node) -> bool:
    """Whether it is no plain column, or one whose equal values may be spelled differently."""
    return expression.kind != "AttributeReference" or is_collated(expression)


def _made_by(plan: Node) -> Iterator[tuple[int, Node]]:
    for each in plan.columns:
        if each.kind == "Alias":
            yield each.id, each.child


def _is_of_many(expression: Node) -> bool:
    """Whether rows that agree in all that it refers to may differ in it."""
    match expression.kind:
        case "AggregateExpression":
            return True
        case "WindowExpression":
            return depends_on_ties(expression)
    return any(map(_is_of_many, expression.children))
