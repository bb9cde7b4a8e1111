"""Days of the week and counted units of time: databases give other numbers for them than Spark.

Each rule was compared with DuckDB (tests/exchange/dbt/test_same_calendar.py). Pure.
"""

from __future__ import annotations

from sqlglot import exp

_FROM_SUNDAY = ("duckdb", "postgres", "redshift", "snowflake")
"""Dialects whose days of the week are 0 to 6, from Sunday on; those of Spark are 1 to 7."""
_DAY_OF_WEEK = ("DOW", "DAYOFWEEK", "WEEKDAY")
_BOUNDARIES = ("bigquery", "duckdb", "redshift", "snowflake")
"""Dialects whose DATEDIFF counts how often a unit begins in between; Spark counts whole units."""
_UNITS_OF_ALL = ("YEAR", "QUARTER", "MONTH", "WEEK", "HOUR", "MINUTE", "SECOND")


def keep_calendar(tree: exp.Query, dialect: str) -> None:
    """Rewrite what sqlglot would write in a form that counts days or units otherwise in Spark."""
    for node in list(tree.find_all(exp.DateDiff)):
        if dialect in _BOUNDARIES:
            _count_boundaries(node, dialect)
    for node in list(tree.find_all(exp.Extract, exp.DayOfWeek, exp.DayOfWeekIso, exp.Anonymous)):
        part, value = _part_of_time(node)
        if value is None:
            continue
        if part in ("ISODOW", "DAYOFWEEK_ISO"):
            days = exp.Anonymous(this="WEEKDAY", expressions=[value])
            _replace(node, exp.Add(this=days, expression=exp.Literal.number(1)))
        elif part in _DAY_OF_WEEK and dialect in _FROM_SUNDAY:
            days = exp.Anonymous(this="DAYOFWEEK", expressions=[value])
            _replace(node, exp.Sub(this=days, expression=exp.Literal.number(1)))


def _replace(node: exp.Expression, made: exp.Expression) -> None:
    """Put `made` in place of a call, in brackets where it stands among operators."""
    alone = isinstance(node.parent, exp.Alias | exp.Select | exp.Func)
    node.replace(made if alone else exp.Paren(this=made))


def _part_of_time(node: exp.Expression) -> tuple[str, exp.Expression | None]:
    """The part of a time that a call gives, such as DOW, and the time; `None`: it gives none."""
    match node:
        case exp.Extract():
            return node.this.name.upper(), node.expression
        case exp.DayOfWeek():
            return "DOW", node.this
        case exp.DayOfWeekIso():
            return "ISODOW", node.this
    name, given = node.name.upper(), node.expressions
    if name in ("DATE_PART", "DATEPART") and len(given) == 2:
        return given[0].name.upper(), given[1]
    return name, given[0] if name == "WEEKDAY" and len(given) == 1 else None


def _count_boundaries(node: exp.DateDiff, dialect: str) -> None:
    unit = node.args.get("unit")
    name = unit.name.upper() if unit is not None else "DAY"
    if name == "DAY":
        node.set("unit", None)  # as days of the calendar, also of times
    elif name == "WEEK" and dialect == "duckdb":  # whole weeks of such days
        days = exp.DateDiff(this=node.this, expression=node.expression)
        _replace(node, exp.IntDiv(this=days, expression=exp.Literal.number(7)))
    elif name in _UNITS_OF_ALL:
        for part in ("this", "expression"):
            begun = [exp.Literal.string(name), node.args[part]]
            node.set(part, exp.Anonymous(this="DATE_TRUNC", expressions=begun))
