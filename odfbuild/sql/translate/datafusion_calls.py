"""Functions of DataFusion whose translation depends on constants: formats of times, JSON paths."""

from __future__ import annotations

import sqlglot
from sqlglot import exp

from odfbuild.sql.translate.dialects import SparkWithTemporalJoins
from odfbuild.sql.translate.json_values import KINDS, RAW, json_value, unfit_step
from odfbuild.sql.translate.spark_calls import call
from odfbuild.sql.translate.times import UnknownFormat, format_of, time_of_text

_TIMES = ("to_timestamp", "to_unixtime")
CHECKED = (*_TIMES, *KINDS, RAW)
"""The functions."""


def unfit_call(node: exp.Expression) -> str | None:
    """Why one of these calls cannot be written for Spark; `None`: it can, or is another one."""
    name = node.name.lower()
    if name in _TIMES:
        return _unfit_time(name, node.expressions)
    if name not in CHECKED:
        return None
    if name == RAW and not _is_read_further(node):
        return (
            f"{name}() gives the text as it was written, and Spark writes JSON anew: ask for the "
            "value itself, as in json_get_str(j, 'a', 'b')"
        )
    _, *steps = node.expressions or [None]
    if not steps:
        return f"{name}() has a translation with the keys of the value"
    return next((why for each in steps for why in [_unfit_step(name, each)] if why), None)


def _unfit_time(name: str, arguments: list[exp.Expression]) -> str | None:
    if len(arguments) not in (1, 2):
        return f"{name}() has a translation with one format"
    if len(arguments) == 1:
        return None
    if not arguments[1].is_string:
        return f"{name}() has a translation with a format that is a constant"
    try:
        format_of(arguments[1].name)
    except UnknownFormat as error:
        return f"{error} has no translation that is known to mean the same"
    return None


def _unfit_step(name: str, step: exp.Expression) -> str | None:
    if not isinstance(step, exp.Literal):
        return f"{name}() has a translation with keys that are constants"
    why = unfit_step(step.name, is_text=step.is_string)
    return why and f"{why} has no translation in {name}()"


def _is_read_further(node: exp.Expression) -> bool:
    """Whether another function of JSON reads from what a call gives."""
    parent = node.parent
    return (
        isinstance(parent, exp.Anonymous)
        and parent.name.lower() in (*KINDS, RAW)
        and parent.expressions[0] is node
    )


def in_spark(node: exp.Expression) -> exp.Expression:
    """What stands for one of these calls; itself, if it is another one."""
    name = node.name.lower()
    if name in KINDS:
        source, steps = _path(node)
        return _parsed(json_value(name, _text(source), steps))
    if name not in _TIMES:
        return node
    value, *formats = node.expressions
    if name == "to_timestamp" or formats:
        format_ = formats[0].name if formats else None
        time = _parsed(time_of_text(_text(value), format_))
    else:
        time = value
    if name == "to_timestamp":
        return time
    # Cut towards zero, before 1970 too.
    return exp.IntDiv(this=call("unix_micros", time), expression=exp.Literal.number(10**6))


def _path(node: exp.Expression) -> tuple[exp.Expression, list[tuple[str, bool]]]:
    """What a call reads from, and all its steps: first those of calls in its first argument."""
    source, *steps = node.expressions
    own = [(each.name, each.is_string) for each in steps]
    if isinstance(source, exp.Anonymous) and source.name.lower() == RAW:
        inner, before = _path(source)
        return inner, before + own
    return source, own


def _text(node: exp.Expression) -> str:
    text: str = node.sql(SparkWithTemporalJoins, normalize_functions=False)
    return text if isinstance(node, exp.Column | exp.Literal | exp.Anonymous) else f"({text})"


def _parsed(text: str) -> exp.Expression:
    made: exp.Expression = sqlglot.parse_one(f"({text})", read=SparkWithTemporalJoins)
    return made
