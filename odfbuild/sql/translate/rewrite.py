"""Rewrite expressions that have another form in Spark, node by node."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from odfbuild.sql.translate.allowed import FIXED_MICROS, is_fraction
from odfbuild.sql.translate.datafusion_calls import in_spark
from odfbuild.sql.translate.dialects import SparkWithTemporalJoins
from odfbuild.sql.translate.division import whole_division
from odfbuild.sql.translate.spark_calls import call, is_call, start_of_bin

_NUMBERED_TIMES = {
    "to_timestamp_seconds": "timestamp_seconds",
    "to_timestamp_millis": "timestamp_millis",
    "to_timestamp_micros": "timestamp_micros",
}


def rewritten(node: exp.Expression, engine: str) -> exp.Expression:
    """The node that stands for `node`, whose children are rewritten already."""
    rewrite = _REWRITES.get(type(node).__name__)
    return node if rewrite is None else rewrite(node, engine)


def _table(node: exp.Expression, engine: str) -> exp.Expression:
    """Names of datasets may have dots, which say nothing of catalogues."""
    if node.args.get("db"):
        whole = exp.to_identifier(".".join(each.name for each in node.parts), quoted=True)
        for part in ("db", "catalog"):
            node.set(part, None)
        node.set("this", whole)
    return node


def _identifier(node: exp.Expression, engine: str) -> exp.Expression:
    if engine == "risingwave" and not node.quoted:
        node.set("this", node.name.lower())
    return node


_LITERAL_STAYS = (
    *(exp.Cast, exp.Interval, exp.Limit, exp.Offset, exp.Group, exp.Ordered, exp.Substring),
    *(exp.SplitPart, exp.Lag, exp.Lead, exp.WindowSpec, exp.DataTypeParam, exp.Tuple),
    *(exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.In, exp.Between, exp.Pow, exp.IntDiv),
)
"""Where the type of a number decides nothing, or it has to be a constant."""


def _literal(node: exp.Expression, engine: str) -> exp.Expression:
    """In DataFusion `1.5` is a floating point number, and `1` one of 64 bits."""
    if engine != "datafusion" or node.is_string:
        return node
    if is_fraction(node) and not isinstance(node.parent, exp.Cast):
        return exp.cast(node.copy(), "DOUBLE")
    parent = node.parent.parent if isinstance(node.parent, exp.Neg) else node.parent
    if is_fraction(node) or isinstance(parent, _LITERAL_STAYS) or is_call(parent):
        return node
    return exp.cast(node.copy(), "BIGINT")


def _logarithm(node: exp.Expression, engine: str) -> exp.Expression:
    """Minus infinity of 0, no number of less, where Spark has null."""
    number = exp.cast(node.this.copy(), "DOUBLE")
    zero, nan = (exp.cast(exp.Literal.string(text), "DOUBLE") for text in ("-Infinity", "NaN"))
    none = exp.Literal.number(0)
    return (
        exp.Case()
        .when(exp.EQ(this=number, expression=none), zero, copy=False)
        .when(exp.LT(this=number.copy(), expression=none.copy()), nan, copy=False)
        .else_(call("ln", number), copy=False)
    )


def _nullif(node: exp.Expression, engine: str) -> exp.Expression:
    """In DataFusion of the type that fits both, in Spark of the first one's."""
    if engine != "datafusion":
        return node
    value, other = node.this, node.expression
    is_null = exp.Is(this=value.copy(), expression=exp.Null())
    same = exp.EQ(this=value.copy(), expression=other.copy())
    wide = exp.Coalesce(this=value.copy(), expressions=[other.copy()])
    return exp.Case().when(exp.Or(this=is_null, expression=same), exp.Null()).else_(wide)


def _concat(node: exp.Expression, engine: str) -> exp.Expression:
    """DataFusion leaves nulls out; Flink's result is null, as Spark's is."""
    if engine != "datafusion":
        return node
    texts = [exp.cast(each.copy(), "STRING") for each in node.expressions]
    return call("concat_ws", exp.Literal.string(""), *texts)


def _part_of_date(node: exp.Expression, engine: str) -> exp.Expression:
    """`YEAR(t)` of Flink is a number of 64 bits."""
    return node if isinstance(node.parent, exp.Cast) else exp.cast(node.copy(), "BIGINT")


def _extract(node: exp.Expression, engine: str) -> exp.Expression:
    is_cast = isinstance(node.parent, exp.Cast)
    return exp.cast(node.copy(), "BIGINT") if engine == "flink" and not is_cast else node


def _floor(node: exp.Expression, engine: str) -> exp.Expression:
    unit = exp.Literal.string(node.args["to"].name.upper())
    return exp.Anonymous(this="date_trunc", expressions=[unit, node.this])


def _function(node: exp.Expression, engine: str) -> exp.Expression:
    name = _NUMBERED_TIMES.get(node.name.lower())
    if engine == "flink" and node.name.lower() == "timestampdiff":
        return node if isinstance(node.parent, exp.Cast) else exp.cast(node.copy(), "INT")
    if name is not None:
        node.set("this", name)
    return in_spark(node)


def _type(node: exp.Expression, engine: str) -> exp.Expression:
    if node.is_type("TIMESTAMPTZ", "TIMESTAMPLTZ", "TIMESTAMP"):
        return exp.DataType.build("TIMESTAMP", dialect=SparkWithTemporalJoins)
    if engine == "datafusion" and node.is_type("DECIMAL") and not node.expressions:
        return exp.DataType.build("DECIMAL(38, 10)")
    return node


def _date_bin(node: exp.Expression, engine: str) -> exp.Expression:
    """The start of the interval around a time, counted from an origin, as microseconds."""
    stride = node.this
    unit = stride.args["unit"].name.upper().removesuffix("S")
    width = int(stride.name) * FIXED_MICROS[unit]
    # The parser has the third argument for a unit, as it is elsewhere.
    origin = node.args.get("unit")
    since = None if origin is None else call("unix_micros", origin)
    return call("timestamp_micros", start_of_bin(node.expression, width, since))


_REWRITES: dict[str, Callable[[exp.Expression, str], exp.Expression]] = {
    "Table": _table,
    "Identifier": _identifier,
    "Literal": _literal,
    "Extract": _extract,
    "Floor": _floor,
    "Anonymous": _function,
    "DataType": _type,
    "DateBin": _date_bin,
    "Div": lambda node, engine: whole_division(node),
    "Ln": _logarithm,
    "Concat": _concat,
    "Nullif": _nullif,
    "Year": _part_of_date,
    "Quarter": _part_of_date,
    "Month": _part_of_date,
    "DayOfMonth": _part_of_date,
}
