"""Calls of Spark functions that replace functions of other engines."""

from __future__ import annotations

from sqlglot import exp

_MARK = "odfbuild_spark"


def call(name: str, *arguments: exp.Expression) -> exp.Expression:
    """A call of a function of Spark, which no list of the other engine has to know."""
    made = exp.Anonymous(this=name, expressions=[each.copy() for each in arguments])
    made.meta[_MARK] = True
    return made


def is_call(node: exp.Expression) -> bool:
    """Whether `call` made a node."""
    return _MARK in node.meta


def start_of_bin(
    time: exp.Expression, micros: int, origin: exp.Expression | None = None
) -> exp.Expression:
    """The start, in microseconds since 1970, of the interval of `micros` that `time` lies in.

    Intervals are counted from `origin`, in microseconds, or from 1970.
    """
    number = call("unix_micros", time)
    since = number if origin is None else exp.Sub(this=number, expression=origin)
    rest = call("pmod", since, exp.Literal.number(micros))
    return exp.Sub(this=number.copy(), expression=rest)
