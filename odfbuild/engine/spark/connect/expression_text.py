"""Resolved expressions as SQL: Spark's own text, or ours if Spark cannot read it back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from odfbuild.engine.spark.internals.catalyst import Catalyst
from odfbuild.engine.spark.internals.node import NAMING, Node
from odfbuild.engine.spark.results.frames import UUID_MARK

_HELD = "__odf_held_"
_JAVA = frozenset({"Invoke", "StaticInvoke", "NewInstance"})
_HELD_NAME = re.compile(f"`?{_HELD}(\\d+)`?")


class NotExpressible(Exception):
    """A plan cannot be said in SQL; the message is a noun phrase, or says why."""


def column(named: Node) -> str:
    """What a column is called in the text of a plan: after its identity, as no other is."""
    return f"c{named.id}"


class Expressions:
    """Texts of expressions; `query` gives plan and text of a plan inside of one."""

    def __init__(self, catalyst: Catalyst, query: Callable[[Node], tuple[Node, str]]) -> None:
        self._catalyst = catalyst
        self._build = catalyst.build
        self._query = query
        self._queries: dict[Node, str] = {}
        self._common: dict[str, Node] = {}
        self._held: list[str] = []

    def plain(self, node: Node) -> Node:
        """`node` with columns called as in the text, and nothing that only Spark can write."""
        found = {}
        for expression in node.expressions:
            for each in _inside(expression):
                instead = self._instead(each)
                if instead is not None:
                    found[each] = instead
        return self._build.with_expressions(node, found)

    def __call__(self, expression: Node) -> str:
        """The text of an expression of a plain node."""
        text = self._shown(expression).sql
        while _HELD_NAME.search(text):
            text = _HELD_NAME.sub(lambda found: self._held[int(found[1])], text)
        return text

    def _instead(self, expression: Node) -> Node | None:
        """What says the same and can be written; `None` for what can be as it is.

        Time windows turn times into microseconds and back by a cast of their own; functions do the
        same.
        """
        kind = expression.kind
        if kind in ("AttributeReference", "Alias"):
            _refuse_meaning(expression)
        if kind == "AttributeReference":
            return self._build.called(expression, column(expression))
        if kind == "Alias":
            return self._build.alias(expression.child, column(expression), expression)
        if kind == "KnownNullable":
            return self._instead(expression.child) or expression.child
        if kind == "PreciseTimestampConversion":
            to = expression.type
            found = self._build.micros(expression.child, to)
            if found is None:
                raise NotExpressible("windows over times without time zone")
            return found
        if self._catalyst.kind_of(expression).holds_plan:
            made, text = self._query(expression.plan)
            instead = self._build.over(expression, made)
            self._queries[made] = text
            return instead
        return None

    def _shown(self, expression: Node) -> Node:
        """`expression` with text held back that Spark would not write."""
        kind = expression.kind
        match kind:
            case "AttributeReference":
                return self._build.called(expression, column(expression))
            case "OuterReference":
                return self._build.called(expression.referred, column(expression.referred))
            case "With":
                for each in expression.definitions:
                    self._common[each.common_id] = each.child
                return self._shown(expression.child)
            case "CommonExpressionRef":
                return self._shown(self._common[expression.common_id])
        if kind == "LambdaFunction":
            return self._hold(expression.function, self._function(expression))
        own = self._own_text(expression, kind)
        if own is not None:
            return self._hold(expression, own)
        if self._catalyst.kind_of(expression).holds_plan:
            raise NotExpressible(f"{kind} in its query")
        if self._catalyst.inherits(expression):
            return self._standing_in(expression)
        children = expression.children
        shown = [self._shown(child) for child in children]
        if all(new is old for new, old in zip(shown, children, strict=True)):
            return expression
        return self._build.with_children(expression, shown)

    def _own_text(self, expression: Node, kind: str) -> str | None:
        """What Spark would write in a way that it cannot read; `None` for all else."""
        match kind:
            case "NamedLambdaVariable":
                return _variable(expression)
            case "CreateNamedStruct":  # Spark would call its fields after the columns
                return f"named_struct({self._list(expression.children)})"
            case "ScalarSubquery":
                return f"({self.inner(expression)})"
            case "Exists":
                return f"EXISTS ({self.inner(expression)})"
            case "InSubquery":
                values = self._list(expression.values)
                return f"(({values}) IN ({self.inner(expression.query)}))"
        return None

    def _function(self, function: Node) -> str:
        names = [_variable(each) for each in function.arguments]
        head = names[0] if len(names) == 1 else f"({', '.join(names)})"
        return f"{head} -> {self._shown(function.function).sql}"

    def _list(self, expressions: list[Node]) -> str:
        return ", ".join(self._shown(each).sql for each in expressions)

    def _standing_in(self, function: Node) -> Node:
        """A function as what it stands for, or where that is a call of Java as it was called."""
        [replacement] = function.children
        if not any(each.kind in _JAVA for each in _inside(replacement)):
            return self._shown(replacement)
        name, values = function.function_name, function.parameters
        if not all(each.is_resolved for each in values):
            raise NotExpressible(f"{name} in its query")
        return self._hold(function, f"{name}({self._list(values)})")

    def inner(self, subquery: Node) -> str:
        """The text of a query inside of a plain node."""
        return self._queries[subquery.plan]

    def _hold(self, expression: Node, text: str) -> Node:
        self._held.append(text)
        return self._build.named(expression, f"{_HELD}{len(self._held) - 1}")


def _variable(variable: Node) -> str:
    return f"x{variable.id}"


def _refuse_meaning(named: Node) -> None:
    """Spark hides in a column's metadata that sessions are to be merged; no text says so."""
    if not named.metadata <= NAMING | {UUID_MARK}:
        raise NotExpressible("columns that Spark treats in a way of their own")


def _inside(expression: Node) -> Iterator[Node]:
    yield expression
    for child in expression.children:
        yield from _inside(child)
