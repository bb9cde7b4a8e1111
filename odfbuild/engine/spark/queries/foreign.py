"""Check the types of a translated query, on which its meaning depends.

The translation goes by the text; only Spark knows the types. Errors of Spark name places in a text
that nobody wrote, so they are brought back to the query with the translation's line as a note.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from odfbuild.engine.spark.internals.catalyst import Catalyst
from odfbuild.engine.spark.internals.node import Node
from odfbuild.engine.spark.results.frames import quote
from odfbuild.errors import Code, Errors, InDefinition, OdfbuildError, QueryError
from odfbuild.sql.translate.runnable import is_spark, runnable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from odfbuild.odf.model import TransformSql

_INEXACT = ("float", "double", "decimal")
_WHOLE = frozenset({"byte", "short", "integer", "long", "tinyint", "smallint", "int", "bigint"})
_NUMBERS_IN_UNITS = _WHOLE | {"float", "double"}
_SPELLED_DIFFERENTLY = ("float", "double", "timestamp", "binary", "interval", "decimal")


def in_spark(
    spark: SparkSession, transform: TransformSql, dataset: str, tables: Sequence[str]
) -> TransformSql:
    """The transformation in Spark SQL, by the types of columns of `tables`, which are views."""
    if is_spark(transform):
        return transform
    types: dict[str, set[str]] = {}
    for table in tables:
        for field in spark.table(quote(table)).schema.fields:
            types.setdefault(field.name.lower(), set()).add(field.dataType.simpleString().upper())
    known = {name: kind for name, kinds in types.items() for kind in kinds if len(kinds) == 1}
    whole = {name: kind for name, kind in known.items() if kind in ("INT", "BIGINT")}
    return runnable(transform, dataset, whole)


@contextmanager
def as_written(transform: TransformSql) -> Iterator[None]:
    """Errors about the translation of `transform` become errors about its own text."""
    try:
        yield
    except (Errors, QueryError) as error:
        if is_spark(transform):
            raise
        raise error.mapped(lambda each: _brought_back(each, transform)) from None


def _brought_back(error: OdfbuildError, transform: TransformSql) -> OdfbuildError:
    found = error.location
    if not isinstance(found, InDefinition):
        return error
    query = (transform.queries or ())[int(found.path[1])].query
    first = next((n for n, line in enumerate(query.splitlines(), 1) if line.strip()), 1)
    said = f"in its translation to Spark SQL, line {found.line}: {(found.snippet or '').strip()}"
    return error.noted(said).at(replace(found, line=first, column=1, snippet=None, length=1))


def differences(catalyst: Catalyst, plan: Node, dataset: str, engine: str) -> list[QueryError]:
    """What Spark would do in another way than `engine`, in an analysed plan."""
    return [
        QueryError(
            f"{expression.sql} {why}",
            code=Code.NOT_TRANSLATED,
            dataset=dataset,
            help="say it in another way, or write the query in Spark SQL with `engine: spark`",
        )
        for expression in _expressions(catalyst, plan)
        for why in [_why(catalyst, expression, engine)]
        if why is not None
    ]


def _why(catalyst: Catalyst, expression: Node, engine: str) -> str | None:
    kind = expression.kind
    if kind == "SubtractDates":
        return "is a number of days in other engines, and an interval in Spark"
    if kind == "SecondsToTimestamp" and expression.child.type.startswith(_INEXACT):
        return "keeps parts of seconds in Spark only: cast the number to BIGINT"
    if kind == "Average" and expression.child.type.startswith("decimal"):
        return f"is cut by {engine} and rounded by Spark: say SUM(x) / COUNT(x) with a cast"
    if kind == "Divide":
        return _of_division(catalyst, expression, engine)
    return _of_cast(expression, engine) if kind == "Cast" else None


def _of_division(catalyst: Catalyst, expression: Node, engine: str) -> str | None:
    """Why `/` gives other values in another engine: only DOUBLE is divided alike everywhere."""
    sides = (expression.left, expression.right)
    if any(side.type.startswith("decimal") for side in sides):
        return f"has other digits in {engine}: cast one side to DOUBLE"
    if any(catalyst.is_written(side) and side.type == "double" for side in sides):
        return None
    return (
        f"gives whole numbers for whole numbers in {engine}, and fractions in Spark: "
        "cast one side to DOUBLE"
    )


def _of_cast(expression: Node, engine: str) -> str | None:
    """Why a conversion gives other values in another engine."""
    source, target = expression.child.type, expression.type
    if target.startswith("string"):
        if source.startswith(_SPELLED_DIFFERENTLY) or (engine, source) == ("flink", "boolean"):
            return f"is spelled in another way by {engine}: what is turned into text is {source}"
    elif _is_time(source) != _is_time(target) and {source, target} & _NUMBERS_IN_UNITS:
        return (
            "counts in another unit than seconds in other engines: say which one, as in "
            "to_unixtime(t) or to_timestamp_millis(n) of DataFusion"
        )
    elif engine == "risingwave" and source.startswith(_INEXACT) and target in _WHOLE:
        return "is rounded by risingwave and cut by Spark: say ROUND(x), or write it in Spark SQL"
    return None


def _is_time(name: str) -> bool:
    return name.startswith("timestamp")


def _expressions(catalyst: Catalyst, plan: Node) -> Iterator[Node]:
    if plan.kind.startswith("View"):
        return
    for each in plan.expressions:
        yield from _all(catalyst, each)
    for child in (*plan.children, *catalyst.inner_plans(plan)):
        yield from _expressions(catalyst, child)


def _all(catalyst: Catalyst, expression: Node) -> Iterator[Node]:
    yield expression
    if catalyst.kind_of(expression).holds_plan:
        yield from _expressions(catalyst, expression.plan)
    for child in expression.children:
        yield from _all(catalyst, child)
