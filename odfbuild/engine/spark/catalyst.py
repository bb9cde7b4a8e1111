"""Look into Spark's query plans from Python: parse, analyse, walk. Runs no query."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Node = Any
"""A plan or expression inside the JVM."""


class Catalyst:
    """Access to parser and analyser of one session."""

    def __init__(self, spark: SparkSession) -> None:
        self._session = spark._jsparkSession
        self._spark = spark
        load = spark._jvm.java.lang.Class.forName
        expressions = "org.apache.spark.sql.catalyst.expressions."
        self._subquery = load(expressions + "PlanExpression")
        self._replaceable = load(expressions + "RuntimeReplaceable")
        self._random = load(expressions + "Nondeterministic")
        self._logical = load("org.apache.spark.sql.catalyst.plans.logical.LogicalPlan")
        modes = load("org.apache.spark.sql.execution.CommandExecutionMode$")
        self._skip = modes.getField("MODULE$").get(None).SKIP()
        self._datasets = load("org.apache.spark.sql.classic.Dataset$").getField("MODULE$").get(None)

    def parse(self, sql: str) -> Node:
        """The unresolved plan of a query."""
        return self._session.sessionState().sqlParser().parsePlan(sql)

    def analyse(self, plan: Node) -> Node:
        """The resolved plan; commands are not carried out."""
        return self._session.sessionState().executePlan(plan, self._skip).analyzed()

    def frame(self, plan: Node) -> DataFrame:
        """The result of a plan as a lazy data frame."""
        from pyspark.sql import DataFrame

        return DataFrame(self._datasets.ofRows(self._session, plan), self._spark)

    def subplan(self, expression: Node) -> Node | None:
        """The query inside a subquery expression."""
        return expression.plan() if self._subquery.isInstance(expression) else None

    def replacement(self, expression: Node) -> Node | None:
        """What a function stands for, if Spark rewrites it."""
        return expression.replacement() if self._replaceable.isInstance(expression) else None

    def is_random(self, expression: Node) -> bool:
        """Whether Spark itself says that the value differs from run to run."""
        return bool(self._random.isInstance(expression))

    def inner_plans(self, plan: Node) -> Iterator[Node]:
        """Plans inside a plan that are not its children."""
        for each in items(plan.innerChildren()):
            if self._logical.isInstance(each):
                yield each


def items(sequence: Any) -> Iterator[Any]:
    """Members of a Scala collection."""
    iterator = sequence.iterator()
    while iterator.hasNext():
        yield iterator.next()


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
