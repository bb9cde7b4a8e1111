"""Look into Spark's query plans from Python: parse, analyse, make others. Runs no query."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from odfbuild.engine.spark.internals.jvm import Classes, classes_in, items
from odfbuild.engine.spark.internals.node import Node

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


OUTLINED = frozenset(
    {"Project", "Filter", "Join", "Aggregate", "SubqueryAlias", "UnresolvedRelation", "Union"}
)
"""Parsed plans whose constructors take expressions as such, in sequences or as options."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A class of expressions: its name without package, and how Spark treats it.

    `holds_plan`: it is a subquery, `plan` says which. `is_replaceable`: it stands for another
    expression, see `Catalyst.replacement`. `is_random`: by Spark's own word its value differs from
    run to run.
    """

    name: str
    holds_plan: bool
    is_replaceable: bool
    is_random: bool


@dataclass(frozen=True, slots=True)
class Outlined:
    """A node of a parsed plan: the name of its class, its type where it is a constant.

    `kind` is `None` for plans, and for a class of expressions that was never met before. `words`
    are those between dots in the name of a relation or function, with commas between them.
    """

    name: str
    kind: Kind | None
    words: str
    type: str
    is_streaming: bool


class Catalyst:
    """Access to parser and analyser of one session."""

    def __init__(self, spark: SparkSession) -> None:
        self._session = spark._jsparkSession
        self._spark = spark
        self._known = classes_in(spark._jvm)
        self.build = Builder(self._known)

    def inline(self, plan: Node) -> Node:
        """The same plan without references to named subqueries (WITH)."""
        return Node(self._known.inline.apply(plan._java))

    def replaced(self, plan: Node) -> Node:
        """The same plan, in which functions gave way to what they stand for, at any depth."""
        return Node(self._known.replaced.apply(plan._java))

    def optimised(self, plan: Node) -> Node:
        """An analysed plan as Spark's optimiser leaves it."""
        return optimised_plan_of(self.frame(plan))

    def parse(self, sql: str) -> Node:
        """The unresolved plan of a query."""
        return Node(self._session.sessionState().sqlParser().parsePlan(sql))

    def analyse(self, plan: Node) -> Node:
        """The resolved plan; commands are not carried out."""
        state = self._session.sessionState()
        return Node(state.executePlan(plan._java, self._known.skip).analyzed())

    def frame(self, plan: Node) -> DataFrame:
        """The result of a plan as a lazy data frame."""
        from pyspark.sql import DataFrame

        return DataFrame(self._known.datasets.ofRows(self._session, plan._java), self._spark)

    def show(self, frame: DataFrame, name: str) -> None:
        """Make `frame` the view `name`, in place of an earlier one."""
        self.show_plan(plan_of(frame), name)

    def show_plan(self, plan: Node, name: str) -> None:
        """Make an analysed plan the view `name`.

        Spark's own way is a query of its own, which is planned and told to everybody who listens.
        """
        known = self._known
        known.new(
            "CreateViewCommand",
            known.new("TableIdentifier", name),
            known.no_items,
            known.nothing,
            known.nothing,
            known.no_properties,
            known.nothing,
            plan._java,
            False,  # may exist: replaced
            True,
            known.local_view,
            known.view_schema_mode,
            True,  # analysed
            known.no_items,
        ).run(self._session)

    def is_at_hand(self, plan: Node) -> bool:
        """Whether all that an analysed plan reads are records that stand in it."""
        leaves = items(plan._java.collectLeaves())
        local = all(self._known.local.isInstance(each) for each in leaves)
        return local and bool(plan._java.subqueriesAll().isEmpty())

    def are_same(self, one: DataFrame, other: DataFrame) -> bool:
        """Whether Spark's optimiser makes the same of both, whatever results it has cached."""
        optimise = self._session.sessionState().optimizer().execute
        made, expected = (optimise(plan_of(each)._java) for each in (one, other))
        return bool(made.sameResult(expected))

    def kind_of(self, expression: Node) -> Kind:
        """What the class of an expression tells about it."""
        java = expression._java
        name = str(java.getClass().getName())
        kind: Kind | None = self._known.kinds.get(name)
        if kind is None:
            kind = self._known.kinds[name] = Kind(
                name=expression.kind,
                holds_plan=bool(self._known.subquery.isInstance(java)),
                is_replaceable=bool(self._known.replaceable.isInstance(java)),
                is_random=bool(self._known.random.isInstance(java)),
            )
        return kind

    def parts_of(self, expression: Node) -> list[tuple[Kind, object]] | None:
        """Classes of an expression and of all below it, each with its type where it casts to one.

        One question to the JVM instead of several for each. `None` where one of the classes was
        never met before, or Spark cannot tell.
        """
        found = self._told(expression)
        known = self._known.kinds
        if found is None or any(each["class"] not in known for each in found):
            return None
        return [(known[each["class"]], each.get("dataType")) for each in found]

    def outline_of(self, plan: Node) -> list[Outlined] | None:
        """What stands in a parsed plan, plans and expressions at any depth.

        One question to the JVM, as `parts_of`. Only plans in `OUTLINED` tell all expressions that
        they hold; of these, all children are there. `None` where Spark cannot tell.
        """
        found = self._told(plan)
        if found is None:
            return None
        return [
            Outlined(
                name=each["class"].rpartition(".")[2],
                kind=self._known.kinds.get(each["class"]),
                words=str(each.get("multipartIdentifier") or each.get("nameParts"))[1:-1],
                type=str(each.get("dataType")),
                is_streaming=each.get("isStreaming") is not False,
            )
            for each in _nested(found)
        ]

    def _told(self, node: Node) -> list[dict[str, Any]] | None:
        from py4j.protocol import Py4JJavaError

        try:
            found: list[dict[str, Any]] = json.loads(node._java.toJSON())
        except Py4JJavaError:
            return None
        return found

    def is_written(self, expression: Node) -> bool:
        """Whether an expression has its type by itself, or by a cast that the query asks for.

        Spark casts the sides of an operation to a common type; such casts nobody wrote.
        """
        if expression.kind != "Cast":
            return True
        if expression._java.getTagValue(self._known.written_cast).isDefined():
            return True
        return expression.child.type == expression.type and self.is_written(expression.child)

    def replacement(self, expression: Node) -> Node | None:
        """What a function stands for, if Spark rewrites it."""
        if not self.kind_of(expression).is_replaceable:
            return None
        return Node(expression._java.replacement())

    def inherits(self, expression: Node) -> bool:
        """Whether a function has nothing but what it stands for, and its `parameters`."""
        return bool(self._known.inherits.isInstance(expression._java))

    def constant(self, expression: Node) -> str | None:
        """The value of an expression without columns, as Spark's optimiser finds it, as text.

        `None` when it has none, or is null.
        """
        if not expression.is_constant:
            if expression.references:
                return None
            expression = self._replaced(expression)
        value = expression._java.eval(None) if expression.is_constant else None
        return None if value is None else str(value.toString())

    def _replaced(self, expression: Node) -> Node:
        """An expression in which functions gave way to what they stand for, at any depth."""
        known = self._known
        condition = known.new("IsNotNull", expression._java)
        plan = known.new("Filter", condition, known.new("OneRowRelation"))
        condition = self.replaced(Node(plan)).condition
        assert condition is not None
        return condition.child

    def inner_plans(self, plan: Node) -> Iterator[Node]:
        """Plans inside a plan that are not its children."""
        for each in items(plan._java.innerChildren()):
            if self._known.plan.isInstance(each):
                yield Node(each)

    def subqueries(self, plan: Node) -> list[Node]:
        """The expressions of a plan whose plans are its `inner_plans`, in the same order."""
        return [each for one in plan.expressions for each in self._subqueries(one)]

    def _subqueries(self, expression: Node) -> Iterator[Node]:
        if self.kind_of(expression).holds_plan:
            yield expression
        for each in expression.children:
            yield from self._subqueries(each)

    def correlated_plans(self, plan: Node) -> Iterator[Node]:
        """The `inner_plans` of a plan that refer to its own columns."""
        for asked, inner in zip(self.subqueries(plan), self.inner_plans(plan), strict=True):
            if not asked._java.outerAttrs().isEmpty():
                yield inner

    def functions(self) -> dict[str, tuple[str, str]]:
        """Built-in functions by name: the class behind each, and the group that it is in."""
        registry = self._session.sessionState().functionRegistry()
        found = {}
        for each in items(registry.listFunction()):
            info = registry.lookupFunction(each).get()
            found[str(each.funcName())] = (
                str(info.getClassName()).rpartition(".")[2],
                str(info.getGroup()),
            )
        return found


class Builder:
    """Makes plan nodes."""

    def __init__(self, classes: Classes) -> None:
        self._known = classes

    def project(self, columns: Iterable[Node], child: Node) -> Node:
        """A projection to `columns`, attributes or named expressions."""
        return self._new("Project", [*columns], child)

    def expand(self, plan: Node, further: Sequence[Node], child: Node) -> Node:
        """An `Expand` over another child that passes on `further` columns of it."""
        rows = [self._sequence([*row, *further]) for row in plan.projections]
        return self._new("Expand", self._known.sequence(rows), [*plan.output, *further], child)

    def aggregate(self, keys: Iterable[Node], columns: Iterable[Node], child: Node) -> Node:
        """The rows of `child` in groups of equal `keys`: one row of `columns` for each."""
        return self._new("Aggregate", [*keys], [*columns], child, self._known.nothing)

    def join(self, left: Node, right: Node, conditions: Sequence[Node]) -> Node:
        """The pairs of rows for which all `conditions` hold."""
        known = self._known
        condition = reduce(self.both, conditions)._java if conditions else None
        return self._new("Join", left, right, known.inner, known.just(condition), known.no_hint)

    def lateral(self, plan: Node, left: Node, right: Node) -> Node:
        """A `LateralJoin` between another left side and another subquery."""
        java = plan._java
        return self._new(
            "LateralJoin", left, self.over(plan.right, right), java.joinType(), java.condition()
        )

    def over(self, subquery: Node, plan: Node) -> Node:
        """The same subquery of another plan."""
        return Node(subquery._java.withNewPlan(plan._java))

    def alias(self, value: Node, name: str, like: Node | None = None) -> Node:
        """`value` as a column called `name`: a new one, or one that is the same as `like`."""
        known = self._known
        id = known.named_expressions.newExprId() if like is None else like._java.exprId()
        return self._new("Alias", value, name, id, [], known.nothing, [])

    def same(self, left: Node, right: Node) -> Node:
        """`left <=> right`: equal, or both null."""
        return self._new("EqualNullSafe", left, right)

    def filter(self, condition: Node, child: Node) -> Node:
        """The rows of `child` for which `condition` holds."""
        return self._new("Filter", condition, child)

    def limit_of_each_partition(self, rows: int, child: Node) -> Node:
        """The first `rows` rows of each partition of `child`."""
        most = self._new("Literal", rows, self._known.whole_number)
        return self._new("LocalLimit", most, child)

    def in_one_part(self, child: Node) -> Node:
        """`child` in one partition."""
        return self._new("Repartition", 1, False, child)

    def field_of(self, column: Node, name: str) -> Node:
        """A field of a column with fields."""
        at = column._java.dataType().fieldIndex(name)
        return self._new("GetStructField", column, at, self._known.nothing)

    def both(self, left: Node, right: Node) -> Node:
        """`left AND right`."""
        return self._new("And", left, right)

    def either(self, left: Node, right: Node) -> Node:
        """`left OR right`; the right one is computed only where the left one is not true."""
        return self._new("Or", left, right)

    def greater(self, left: Node, right: Node) -> Node:
        """`left > right`."""
        return self._new("GreaterThan", left, right)

    def at_most(self, left: Node, right: Node) -> Node:
        """`left <= right`."""
        return self._new("LessThanOrEqual", left, right)

    def with_children(self, plan: Node, children: Iterable[Node]) -> Node:
        """The same node over other children."""
        return Node(plan._java.withNewChildren(self._sequence(children)))

    def fresh(self, relation: Node) -> Node:
        """The same relation with new identities of its columns."""
        return Node(relation._java.newInstance())

    def called(self, column: Node, name: str) -> Node:
        """The same column under another name, of no relation."""
        return Node(column._java.withName(name).withQualifier(self._sequence(())))

    def named(self, value: Node, name: str) -> Node:
        """A column called `name` of the type of `value`."""
        return Node(self.alias(value, name)._java.toAttribute())

    def with_expressions(self, plan: Node, instead: Mapping[Node, Node]) -> Node:
        """The same node with other expressions in place of those in `instead`."""
        if not instead:
            return plan
        found = self._known.new("HashMap")
        for old, new in instead.items():
            found.put(old._java, new._java)
        return Node(plan._java.transformExpressions(self._known.scala_map(found)))

    def micros(self, value: Node, to: str) -> Node | None:
        """A time as microseconds (`to` is 'long'), or the time at them ('timestamp')."""
        if to == "timestamp":
            return self._new("MicrosToTimestamp", value)
        if to == "long" and value.type == "timestamp":
            return self._new("UnixMicros", value)
        return None

    def generated(
        self, rows: Sequence[Sequence[Node]], columns: Sequence[Node], child: Node
    ) -> Node:
        """`child`, each row as often as there are `rows`, with their values as `columns`."""
        known = self._known
        structs = []
        for row in rows:
            fields = [
                part
                for number, value in enumerate(row)
                for part in (Node(known.literals.create(f"f{number}", known.text)), value)
            ]
            structs.append(self._new("CreateNamedStruct", fields))
        generator = self._new("Inline", self._new("CreateArray", structs))
        return self.generate(generator, False, columns, child)

    def generate(self, generator: Node, outer: bool, columns: Sequence[Node], child: Node) -> Node:
        """The rows of `child` with those that `generator` makes of each, called `g`."""
        name = self._known.just("g")
        return self._new("Generate", generator, [], outer, name, [*columns], child)

    def _new(self, name: str, *parts: Any) -> Node:
        """A node of the class `name`, of nodes, lists of them, and values of the JVM."""
        return Node(self._known.new(name, *map(self._raw, parts)))

    def _raw(self, part: Any) -> Any:
        if isinstance(part, Node):
            return part._java
        return self._sequence(part) if isinstance(part, list) else part

    def _sequence(self, nodes: Iterable[Node]) -> Any:
        return self._known.sequence([each._java for each in nodes])


def _nested(told: Any) -> Iterator[dict[str, Any]]:
    """All nodes in what Spark tells of one, at any depth."""
    if isinstance(told, list):
        for each in told:
            yield from _nested(each)
    elif isinstance(told, dict):
        if "class" in told:
            yield told
        for each in told.values():
            yield from _nested(each)


def plan_of(frame: DataFrame) -> Node:
    """The analysed plan of a data frame."""
    return Node(frame._jdf.queryExecution().analyzed())


def optimised_plan_of(frame: DataFrame) -> Node:
    """The plan of a data frame as Spark's optimiser leaves it."""
    return Node(frame._jdf.queryExecution().optimizedPlan())
