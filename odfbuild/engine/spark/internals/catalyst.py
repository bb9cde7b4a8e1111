"""Look into Spark's query plans from Python: parse, analyse, walk. Runs no query."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from odfbuild.engine.spark.internals.jvm import Classes, classes_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Node = Any
"""A plan or expression inside the JVM."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A class of expressions: its name without package, and how Spark treats it.

    `holds_plan`: it is a subquery, `plan()` says which. `is_replaceable`: it stands for another
    expression, its `replacement()`. `is_random`: by Spark's own word its value differs from run to
    run.
    """

    name: str
    holds_plan: bool
    is_replaceable: bool
    is_random: bool


class Catalyst:
    """Access to parser and analyser of one session."""

    def __init__(self, spark: SparkSession) -> None:
        self._session = spark._jsparkSession
        self._spark = spark
        self._known = classes_in(spark._jvm)
        self.build = Builder(self._known)

    def inline(self, plan: Node) -> Node:
        """The same plan without references to named subqueries (WITH)."""
        return self.build.inline(plan)

    def parse(self, sql: str) -> Node:
        """The unresolved plan of a query."""
        return self._session.sessionState().sqlParser().parsePlan(sql)

    def analyse(self, plan: Node) -> Node:
        """The resolved plan; commands are not carried out."""
        return self._session.sessionState().executePlan(plan, self._known.skip).analyzed()

    def frame(self, plan: Node) -> DataFrame:
        """The result of a plan as a lazy data frame."""
        from pyspark.sql import DataFrame

        return DataFrame(self._known.datasets.ofRows(self._session, plan), self._spark)

    def show(self, frame: DataFrame, name: str) -> None:
        """Make `frame` the view `name`, in place of an earlier one.

        Spark's own way is a query of its own, which is planned and told to everybody who listens.
        """
        known = self._known
        known.CreateViewCommand(
            known.TableIdentifier(name),
            known.no_items,
            known.nothing,
            known.nothing,
            known.no_properties,
            known.nothing,
            frame._jdf.queryExecution().analyzed(),
            False,  # may exist: replaced
            True,
            known.local_view,
            known.view_schema_mode,
            True,  # analysed
            known.no_items,
        ).run(self._session)

    def optimised(self, frame: DataFrame) -> Node:
        """What Spark makes of a plan, whatever results it has cached."""
        plan = frame._jdf.queryExecution().analyzed()
        return self._session.sessionState().optimizer().execute(plan)

    def kind_of(self, expression: Node) -> Kind:
        """What the class of an expression tells about it."""
        name = str(expression.getClass().getName())
        kind = self._known.kinds.get(name)
        if kind is None:
            kind = Kind(
                name=name_of(expression),
                holds_plan=bool(self._known.subquery.isInstance(expression)),
                is_replaceable=bool(self._known.replaceable.isInstance(expression)),
                is_random=bool(self._known.random.isInstance(expression)),
            )
            self._known.kinds[name] = kind
        return kind

    def parts_of(self, expression: Node) -> list[tuple[Kind, Any]] | None:
        """Classes of an expression and of all below it, each with its type where it casts to one.

        One question to the JVM instead of several for each. `None` where one of the classes was
        never met before, or Spark cannot tell.
        """
        from py4j.protocol import Py4JJavaError

        try:
            nodes = json.loads(expression.toJSON())
        except Py4JJavaError:
            return None
        known = self._known.kinds
        if any(node["class"] not in known for node in nodes):
            return None
        return [(known[node["class"]], node.get("dataType")) for node in nodes]

    def is_written(self, expression: Node) -> bool:
        """Whether an expression has its type by itself, or by a cast that the query asks for.

        Spark casts the sides of an operation to a common type; such casts nobody wrote.
        """
        if name_of(expression) != "Cast":
            return True
        if expression.getTagValue(self._known.written_cast).isDefined():
            return True
        child = expression.child()
        same = str(child.dataType().typeName()) == str(expression.dataType().typeName())
        return same and self.is_written(child)

    def replacement(self, expression: Node) -> Node | None:
        """What a function stands for, if Spark rewrites it."""
        return expression.replacement() if self.kind_of(expression).is_replaceable else None

    def constant(self, expression: Node) -> Node | None:
        """The value of an expression without columns, as Spark's optimiser finds it.

        `None` when it has none, or is null.
        """
        if not expression.foldable():
            if not expression.references().isEmpty():
                return None
            expression = self.build.replaced(expression)
        return expression.eval(None) if expression.foldable() else None

    def inner_plans(self, plan: Node) -> Iterator[Node]:
        """Plans inside a plan that are not its children."""
        for each in items(plan.innerChildren()):
            if self._known.plan.isInstance(each):
                yield each


class Builder:
    """Makes plan nodes."""

    def __init__(self, classes: Classes) -> None:
        self._known = classes

    def project(self, columns: Iterable[Node], child: Node) -> Node:
        """A projection to `columns`, attributes or named expressions."""
        return self._known.Project(self._sequence(columns), child)

    def expand(self, plan: Node, further: Sequence[Node], child: Node) -> Node:
        """An `Expand` over another child that passes on `further` columns of it."""
        rows = [self._sequence([*items(row), *further]) for row in items(plan.projections())]
        output = self._sequence([*items(plan.output()), *further])
        return self._known.Expand(self._sequence(rows), output, child)

    def aggregate(self, keys: Iterable[Node], columns: Iterable[Node], child: Node) -> Node:
        """The rows of `child` in groups of equal `keys`: one row of `columns` for each."""
        return self._known.Aggregate(
            self._sequence(keys), self._sequence(columns), child, self._known.nothing
        )

    def join(self, left: Node, right: Node, conditions: Sequence[Node]) -> Node:
        """The pairs of rows for which all `conditions` hold."""
        condition = reduce(self.both, conditions) if conditions else None
        return self._known.Join(
            left, right, self._known.inner, self._known.just(condition), self._known.no_hint
        )

    def lateral(self, plan: Node, left: Node, right: Node) -> Node:
        """A `LateralJoin` between another left side and another subquery."""
        return self._known.LateralJoin(
            left, plan.right().withNewPlan(right), plan.joinType(), plan.condition()
        )

    def alias(self, value: Node, name: str, identity: Node | None = None) -> Node:
        """`value` as a column called `name`, a new one without `identity`."""
        known = self._known
        id = known.named_expressions.newExprId() if identity is None else identity
        nothing = self._sequence([])
        return known.Alias(value, name, id, nothing, known.nothing, nothing)

    def same(self, left: Node, right: Node) -> Node:
        """`left <=> right`: equal, or both null."""
        return self._known.EqualNullSafe(left, right)

    def filter(self, condition: Node, child: Node) -> Node:
        """The rows of `child` for which `condition` holds."""
        return self._known.Filter(condition, child)

    def limit_of_each_partition(self, rows: int, child: Node) -> Node:
        """The first `rows` rows of each partition of `child`."""
        return self._known.LocalLimit(self._known.Literal(rows, self._known.whole_number), child)

    def field_of(self, column: Node, name: str) -> Node:
        """A field of a column with fields."""
        at = column.dataType().fieldIndex(name)
        return self._known.GetStructField(column, at, self._known.nothing)

    def both(self, left: Node, right: Node) -> Node:
        """`left AND right`."""
        return self._known.And(left, right)

    def either(self, left: Node, right: Node) -> Node:
        """`left OR right`; the right one is computed only where the left one is not true."""
        return self._known.Or(left, right)

    def greater(self, left: Node, right: Node) -> Node:
        """`left > right`."""
        return self._known.GreaterThan(left, right)

    def at_most(self, left: Node, right: Node) -> Node:
        """`left <= right`."""
        return self._known.LessThanOrEqual(left, right)

    def with_children(self, plan: Node, children: Iterable[Node]) -> Node:
        """The same node over other children."""
        return plan.withNewChildren(self._sequence(children))

    def replaced(self, expression: Node) -> Node:
        """An expression in which functions gave way to what they stand for, at any depth."""
        plan = self.filter(self._known.IsNotNull(expression), self._known.OneRowRelation())
        return self._known.ReplaceExpressions.apply(plan).condition().child()

    def inline(self, plan: Node) -> Node:
        """See `Catalyst.inline`."""
        return self._known.InlineCTE(True, False, False).apply(plan)

    def called(self, column: Node, name: str) -> Node:
        """The same column under another name, of no relation."""
        return column.withName(name).withQualifier(self._sequence(()))

    def named(self, value: Node, name: str) -> Node:
        """A column called `name` of the type of `value`."""
        return self.alias(value, name).toAttribute()

    def with_expressions(self, plan: Node, instead: Mapping[Node, Node]) -> Node:
        """The same node with other expressions in place of those in `instead`."""
        if not instead:
            return plan
        found = self._known.HashMap()
        for old, new in instead.items():
            found.put(old, new)
        return plan.transformExpressions(self._known.scala_map(found))

    def micros(self, value: Node, to: str) -> Node | None:
        """A time as microseconds (`to` is 'long'), or the time at them ('timestamp')."""
        if to == "timestamp":
            return self._known.MicrosToTimestamp(value)
        if to == "long" and str(value.dataType().typeName()) == "timestamp":
            return self._known.UnixMicros(value)
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
                for part in (known.Literal.create(f"f{number}", known.text), value)
            ]
            structs.append(known.CreateNamedStruct(self._sequence(fields)))
        generator = known.Inline(known.CreateArray(self._sequence(structs)))
        return self.generate(generator, False, self._sequence(columns), child)

    def generate(self, generator: Node, outer: bool, columns: Node, child: Node) -> Node:
        """The rows of `child` with those that `generator` makes of each, called `g`."""
        known = self._known
        return known.Generate(generator, self._sequence(()), outer, known.g, columns, child)

    def inherits(self, expression: Node) -> bool:
        """Whether a function has nothing but what it stands for, and its `parameters()`."""
        return bool(self._known.inherits.isInstance(expression))

    def _sequence(self, nodes: Iterable[Node]) -> Node:
        return self._known.sequence(list(nodes))


def ids_of(attributes: Any) -> frozenset[int]:
    """Identities of columns."""
    return frozenset(attribute.exprId().id() for attribute in items(attributes.toSeq()))


def items(sequence: Any) -> Iterator[Any]:
    """Members of a Scala sequence."""
    for at in range(sequence.size()):
        yield sequence.apply(at)


def name_of(node: Node) -> str:
    """Name of the node's class, without its package."""
    return str(node.getClass().getName()).rsplit(".", 1)[-1].rstrip("$")


def position_of(node: Node) -> tuple[int | None, int | None]:
    """Line (from 1) and column (from 1) of a node in the text of its query."""
    origin = node.origin()
    line, column = origin.line(), origin.startPosition()
    return (
        line.get() if line.isDefined() else None,
        column.get() + 1 if column.isDefined() else None,
    )


def text_of(node: Node, sql: str) -> str:
    """The part of the query that a node was made from; empty when unknown."""
    origin = node.origin()
    if not (origin.startIndex().isDefined() and origin.stopIndex().isDefined()):
        return ""
    return sql[origin.startIndex().get() : origin.stopIndex().get() + 1]
