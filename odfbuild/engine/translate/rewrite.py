"""What is spelled in another way in Spark, node by node."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from odfbuild.engine.translate.allowed import FIXED_MICROS, is_fraction
from odfbuild.engine.translate.dialects import SparkWithTemporalJoins
from odfbuild.engine.translate.spark_calls import call, start_of_bin

_NUMBERED_TIMES = {
    "to_timestamp_seconds": "timestamp_seconds",
    "to_timestamp_millis": "timestamp_millis",
    "to_timestamp_micros": "timestamp_micros",
}


def rewritten(node: exp.Expression, engine: str) -> exp.Expression:
    """The node that stands for `node`, whose children are looked at afterwards."""
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


def _literal(node: exp.Expression, engine: str) -> exp.Expression:
    """`1.5` is a floating point number in DataFusion, and a decimal in Spark."""
    is_cast = isinstance(node.parent, exp.Cast)
    if engine == "datafusion" and is_fraction(node) and not is_cast:
        return exp.cast(node.copy(), "DOUBLE")
    return node


def _extract(node: exp.Expression, engine: str) -> exp.Expression:
    is_cast = isinstance(node.parent, exp.Cast)
    return exp.cast(node.copy(), "BIGINT") if engine == "flink" and not is_cast else node


def _floor(node: exp.Expression, engine: str) -> exp.Expression:
    unit = exp.Literal.string(node.args["to"].name.upper())
    return exp.Anonymous(this="date_trunc", expressions=[unit, node.this])


def _function(node: exp.Expression, engine: str) -> exp.Expression:
    name = _NUMBERED_TIMES.get(node.name.lower())
    if name is not None:
        node.set("this", name)
    return node


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
}
