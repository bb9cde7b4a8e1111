"""Check an analysed plan: its result must depend only on the records of the inputs.

The clock, randomness and the environment are errors. What depends on the order of rows, which no
engine keeps, is reported apart, with a form that does not. Spark's own flag for determinism misses
most of it. Sources: Open Data Fabric, "Engine Contract"; measured on Spark 4.3.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from odfbuild.engine.spark.internals.catalyst import Catalyst
from odfbuild.engine.spark.internals.node import Node, ids_of
from odfbuild.engine.spark.queries.findings import Findings, words
from odfbuild.engine.spark.queries.ties import Names, Ties, depends_on_ties, is_collated
from odfbuild.errors import Code
from odfbuild.sql import functions as lists
from odfbuild.sql.mode import SUBQUERY

_FLOATING = {"float", "double"}
_NARROW = {"byte", "short", "integer", "tinyint", "smallint", "int"}
_SUMMED_DIGITS = 28
"""Ten less than a decimal has: sums of fewer than 10^10 such values never overflow."""
_SET_OPERATIONS = frozenset({"Union", "Distinct", "Except", "Intersect"})

_TELLING = (
    frozenset(["AggregateExpression", "SortArray", "ArraySort", "With", "CommonExpressionDef"])
    | lists.CLOCK_EXPRESSIONS
    | lists.ENVIRONMENT_EXPRESSIONS
)
"""Expressions that `_expression` looks at, besides casts."""

Columns = Callable[[], frozenset[int]]
"""Asked for where they matter: to name them takes a question to the JVM for each."""


class Analysed:
    """A walk over an analysed plan that writes down what it finds."""

    def __init__(self, catalyst: Catalyst, findings: Findings) -> None:
        self.catalyst = catalyst
        self.findings = findings
        self._common: dict[str, Node] = {}
        """Expressions that functions use more than once, such as the first argument of nullif()."""
        self._finds_ties = True
        self._names: Names | None = None
        """Of what stands below the window functions that are being looked at."""

    def check(self, plan: Node) -> None:
        """Look at a whole query.

        References to a named subquery have columns of their own, so which columns of it are used,
        and by which its rows differ, shows where it stands in place of them: ties are looked for
        there. Those that nothing refers to stand nowhere, and no result depends on their ties.
        """
        if plan.kind == "WithCTE":
            self._finds_ties = False
            self._plan(plan, partial(_outputs, plan))
            self._finds_ties = True
            plan = self.catalyst.inline(plan)
        self._plan(plan, partial(_outputs, plan))

    def _plan(self, plan: Node, used: Columns) -> None:
        """`used`: the columns of `plan` on which the result depends."""
        kind = plan.kind
        if kind.startswith("View"):
            return  # an input or an earlier step, which is checked already
        children = plan.children
        if kind == "SubqueryAlias" and children[0].kind.startswith("View"):
            return
        if not children and kind not in lists.LEAVES:
            self.findings.error(plan, "E0504", f"a query may not read {words(kind)}")
        if kind not in lists.ROW_WISE:
            self.findings.construct(plan, lists.CONSTRUCTS.get(kind, words(kind)))
        if kind == "Sample":
            self.findings.error(
                plan, Code.NOT_DETERMINISTIC, "TABLESAMPLE depends on how data lies on disk"
            )
        self._names = Names(plan, self.findings.sql) if kind == "Window" else None
        if kind in ("GlobalLimit", "Offset") and self._finds_ties:
            self._limit(plan, used())
        if kind == "Window" and self._finds_ties:
            self._window(plan, used())
        if kind == "Aggregate":
            self._one_of_equals(plan, plan.grouping)
        if kind in ("Distinct", "Except", "Intersect"):
            self._one_of_equals(plan, children[0].output)
        for expression in plan.expressions:
            self._whole_expression(expression)
        for child in children:
            self._plan(child, partial(self._used_of, child, plan, kind, used))
        for inner in self.catalyst.inner_plans(plan):
            self._plan(inner, partial(_outputs, inner))

    def _used_of(self, child: Node, plan: Node, kind: str, used: Columns) -> frozenset[int]:
        outputs = _outputs(child)
        return (
            outputs if kind in _SET_OPERATIONS else outputs & self._used_below(plan, kind, used())
        )

    def _used_below(self, plan: Node, kind: str, used: frozenset[int]) -> frozenset[int]:
        if kind == "Project":
            return frozenset().union(
                *(ids_of(each.references) for each in plan.columns if each.id in used)
            )
        if kind == "Aggregate":
            return ids_of(plan.references)
        return used | ids_of(plan.references)

    def _whole_expression(self, expression: Node) -> None:
        if not self._is_plain(expression):
            self._expression(expression)

    def _is_plain(self, expression: Node) -> bool:
        """Whether neither it nor anything in it has to be looked at; `False`: not known."""
        parts = self.catalyst.parts_of(expression)
        if parts is None:
            return False
        for of, cast_to in parts:
            if of.holds_plan or of.is_replaceable or of.is_random or of.name in _TELLING:
                return False
            if of.name == "Cast" and not _is_no_time(cast_to):
                return False
        self.findings.report.expressions.update(of.name for of, _ in parts)
        return True

    def _expression(self, expression: Node) -> None:
        of = self.catalyst.kind_of(expression)
        kind = of.name
        if not of.is_replaceable:
            self.findings.report.expressions.add(kind)
        if kind in ("AttributeReference", "Literal"):
            return
        if kind in lists.CLOCK_EXPRESSIONS:
            self._refuse(expression, "reads the clock", lists.CLOCK_HELP)
        elif kind in lists.ENVIRONMENT_EXPRESSIONS:
            self._refuse(expression, "depends on the environment")
        elif of.is_random:
            self._refuse(expression, "is not deterministic")
        elif kind == "Cast":
            self._cast(expression)
        elif kind == "AggregateExpression":
            self._aggregate(expression)
        elif kind in ("SortArray", "ArraySort") and self._is_sorted_collection(expression):
            return
        if of.holds_plan:
            inner = expression.plan
            self.findings.construct(expression, SUBQUERY)
            self._plan(inner, partial(_outputs, inner))
        if kind == "CommonExpressionDef":
            self._common[expression.common_id] = expression.child
        replacement = self.catalyst.replacement(expression)
        if replacement is not None:
            self._expression(replacement)
        children = expression.children
        # The definitions stand behind what refers to them.
        for child in reversed(children) if kind == "With" else children:
            self._expression(child)

    def _refuse(self, expression: Node, why: str, help: str | None = None) -> None:
        self.findings.error(expression, Code.NOT_DETERMINISTIC, f"{expression.sql} {why}", help)

    def _cast(self, expression: Node) -> None:
        target = expression.type
        source = expression.child
        if source.kind == "CommonExpressionRef":
            source = self._common.get(source.common_id, source)
        if not target.startswith(("timestamp", "date")):
            return
        if not source.type.startswith(("string", "char", "varchar")):
            return
        value = self.catalyst.constant(source)
        if value is not None and lists.CLOCK_WORD.fullmatch(value):
            self.findings.error(
                expression,
                Code.NOT_DETERMINISTIC,
                f"CAST of '{value}' reads the clock",
                lists.CLOCK_HELP,
            )

    # --- Order of rows ---

    def _aggregate(self, expression: Node) -> None:
        function = expression.function
        kind = function.kind
        if self._names is not None and kind in lists.ORDER_BOUND_WINDOWS:
            return  # the order of its window decides, see `_window`
        types = {child.type for child in function.children}
        name = function.function_name
        argument = next(map(self._spelled, function.children), "x")
        if kind in lists.ORDER_FREE_AGGREGATES:
            if kind not in lists.COUNTS:
                self._one_of_equals(expression, function.children)
            return
        if kind in lists.NUMERIC_AGGREGATES and not _FLOATING & types:
            self._exact_numbers(expression, types, name, argument)
            return
        if kind == "ListAgg" and self._is_ordered_by_itself(function):
            self._one_of_equals(expression, function.children)
            return
        if kind in lists.NUMERIC_AGGREGATES:
            self.findings.order(
                expression,
                f"{name}() of floating point numbers depends on the order of rows",
                f"sum decimals: CAST({name}(CAST({argument} AS DECIMAL(38, 12))) AS DOUBLE)",
            )
        elif kind in lists.FIXES:
            fix = lists.FIXES[kind].format(x=argument, f=name)
            self.findings.order(expression, f"{name}() depends on the order of rows", fix)
        else:
            self.findings.order(
                expression,
                f"{name}() depends on the order of rows",
                "compute it from SUM, COUNT, MIN and MAX of integers or decimals",
            )

    def _spelled(self, expression: Node) -> str:
        return expression.sql if self._names is None else self._names.of(expression)

    def _exact_numbers(self, expression: Node, types: set[str], name: str, argument: str) -> None:
        """Sums of whole numbers and decimals are exact, unless Spark takes a short cut."""
        if name.startswith("try_"):
            precise = types <= _NARROW or all(
                _digits(child) <= _SUMMED_DIGITS for child in expression.function.children
            )
            if not precise:
                self.findings.order(
                    expression,
                    f"whether {name}() gives NULL depends on the order of rows",
                    f"leave room for the sum: {name}(CAST({argument} AS DECIMAL(20, 0)))",
                )
        elif name in ("avg", "mean") and "long" in types:
            self.findings.order(
                expression,
                f"{name}() of BIGINT adds them as floating point numbers, so that a sum beyond "
                "2^53 depends on the order of rows",
                f"divide the exact sum: SUM({argument}) / COUNT({argument})",
            )

    def _one_of_equals(self, node: Node, values: Sequence[Node]) -> None:
        """Texts that are spelled differently and count as equal: which one is given is open."""
        found = next((each for each in values if is_collated(each)), None)
        if found is not None:
            self.findings.order(
                node,
                f"{found.sql} has a collation: which of several spellings stays depends on the "
                "order of rows",
                "bring them to one spelling instead, as lower() does, or compare only",
            )

    def _is_sorted_collection(self, expression: Node) -> bool:
        """`array_sort(collect_list(x))` and `sort_array(collect_list(x))`, without a comparator."""
        child = expression.children[0]
        if child.kind != "AggregateExpression":
            return False
        if expression.position in self.findings.comparators:
            return False
        collected = child.function
        return collected.kind in lists.COLLECTIONS and not is_collated(collected)

    def _is_ordered_by_itself(self, function: Node) -> bool:
        value = function.child
        return any(order.child.means(value) for order in function.order)

    def _window(self, plan: Node, used: frozenset[int]) -> None:
        """Window functions over rows must have an order without ties among rows that differ.

        Rows that agree in all columns that are used are interchangeable, so ordering by those is
        enough.
        """
        rows = plan.child
        names = Names(plan, self.findings.sql)
        beside = _window_outputs(rows)
        for named in plan.columns:
            expression = next(_find(named, "WindowExpression"), None)
            if expression is None or not depends_on_ties(expression):
                continue
            given = _sorted_by(plan.order) | _plain(plan.partitions)
            needed = (used | ids_of(expression.references)) & ids_of(rows.output)
            missing = Ties(rows, given, self.findings.offsets).open(needed)
            if missing:
                function = expression.function
                if function.kind == "AggregateExpression":
                    function = function.function
                nameable = [each for each in missing if each.id not in beside]
                columns = [name for each in nameable for name in names.columns(each)]
                if len(nameable) < len(missing):
                    offsets = self.findings.offsets.values()
                    columns += offsets if len(offsets) == 1 else ["the offset of each input"]
                self.findings.order(
                    expression,
                    f"{function.function_name}() OVER is ambiguous where its ORDER BY has ties",
                    _all_columns([*map(names.order, plan.order), *columns]),
                )

    def _limit(self, plan: Node, used: frozenset[int]) -> None:
        node, needed = plan, used
        while node.kind in ("GlobalLimit", "LocalLimit", "Offset", "Project", "SubqueryAlias"):
            if node.kind == "Project":
                needed = self._used_below(node, "Project", needed)
            node = node.child
        is_sorted = node.kind == "Sort" and node.is_global
        given = _sorted_by(node.order) if is_sorted else frozenset()
        missing = Ties(node, given, self.findings.offsets).open(needed)
        if missing:
            names = Names(node, self.findings.sql)
            order = [names.order(each) for each in node.order] if is_sorted else []
            self.findings.order(
                plan,
                "LIMIT and OFFSET keep any of the rows that tie in their ORDER BY",
                _all_columns([*order, *(name for each in missing for name in names.columns(each))]),
            )


def _is_no_time(kind: object) -> bool:
    """Whether a type, as Spark's JSON has it, is neither a date nor a timestamp."""
    return isinstance(kind, str) and not kind.startswith(("timestamp", "date"))


def _outputs(plan: Node) -> frozenset[int]:
    return ids_of(plan.output)


def _find(expression: Node, kind: str) -> Iterator[Node]:
    if expression.kind == kind:
        yield expression
    for child in expression.children:
        yield from _find(child, kind)


def _digits(expression: Node) -> int:
    """Digits that a value of this type may have; endless when it is no decimal."""
    found = re.fullmatch(r"decimal\((\d+),\d+\)", expression.full_type)
    return int(found.group(1)) if found else sys.maxsize


def _sorted_by(order: Iterable[Node]) -> frozenset[int]:
    return _plain(each.child for each in order)


def _plain(expressions: Iterable[Node]) -> frozenset[int]:
    """Ids of those expressions that are columns themselves, and whose equal values are the same."""
    return frozenset(
        each.id
        for each in expressions
        if each.kind == "AttributeReference" and not is_collated(each)
    )


def _window_outputs(rows: Node) -> frozenset[int]:
    """Results of window functions of the same SELECT, which no ORDER BY in it can name.

    Spark computes them one below another.
    """
    found: frozenset[int] = frozenset()
    while rows.kind == "Window":
        found |= frozenset(each.id for each in rows.columns)
        rows = rows.child
    return found


def _all_columns(order: Iterable[str]) -> str:
    return f"name every column that is used: ORDER BY {', '.join(dict.fromkeys(order))}"
