"""Calls in a SELECT: functions that there are, and results that stay the same."""

from __future__ import annotations

import re

from sqlglot import exp

from odfbuild.errors import Code
from odfbuild.odf.schema import arrow
from odfbuild.sql import functions as lists
from odfbuild.sql.check.select import Select, arguments_of, around, is_counted, is_sorted
from odfbuild.sql.columns.of_query import Sources, type_of
from odfbuild.sql.function_list import AGGREGATES, ALLOWED, arity_of, takes
from odfbuild.sql.query_text import is_aggregate, is_window
from odfbuild.wording import closest

_OF_UNITS = frozenset({"timestampadd", "timestampdiff"})
"""Functions that are part of Spark's grammar."""
_WITH_UNITS = frozenset({"dateadd", "date_add", "datediff", "date_diff"})
"""Functions that take a unit of time as a word."""
_ELSEWHERE = {
    "iif": "if",
    "isnull": "isnull",
    "getdate": "event_time",
    "strftime": "date_format",
    "generate_series": "sequence",
    "string_to_array": "split",
    "regexp_matches": "regexp_extract_all",
    "array_length": "size",
    "list_contains": "array_contains",
    "safe_divide": "try_divide",
    "safe_cast": "try_cast",
    "to_char": "date_format",
}
"""What other engines call functions, and Spark's name."""
_MANUAL = "https://spark.apache.org/docs/latest/api/sql/ lists its arguments"
_NOT_TOLD = frozenset({"GroupingID", "CollectUnion", "Measure"})
"""Expressions of which only Spark knows what they stand for."""


def check_call(select: Select, node: exp.Anonymous, clause: str) -> None:
    """Whether a function is there, may be called, and gives the same each time."""
    name = node.name.lower()
    if name in lists.FORBIDDEN:
        refuse_forbidden(select, node, name)
    elif isinstance(node.parent, exp.Table):
        if name not in lists.TABLE_FUNCTIONS:
            message = f"the table function {name}() is not allowed"
            allowed = ", ".join(sorted(lists.TABLE_FUNCTIONS))
            select.tell(Code.FUNCTION_NOT_ALLOWED, message, f"there are: {allowed}", node)
    elif name not in ALLOWED:
        if name not in lists.TABLE_FUNCTIONS | _OF_UNITS:
            _no_function(select, node, name)
    elif not takes(name, arguments_of(node)) and is_counted(node):
        given = arguments_of(node)
        message = f"{name}() takes {arity_of(name)}, not {given}"
        select.tell("E0501", message, _unquoted_unit(node, name) or _MANUAL, node)
    elif name in AGGREGATES and not is_window(node):
        _aggregate(select, node, AGGREGATES[name], clause)
    else:
        check_time_zones(select, node)


def _unquoted_unit(node: exp.Anonymous, name: str) -> str | None:
    first = node.expressions[0] if node.expressions else None
    if name not in _WITH_UNITS or not isinstance(first, exp.Literal) or not first.is_string:
        return None
    return f"write the unit without quotes: {name}({first.name.upper()}, …)"


def check_cast(select: Select, node: exp.Cast) -> None:
    """Words such as 'now', which become the time of the run."""
    kind = str(node.to.this.value) if isinstance(node.to.this, exp.DType) else ""
    value = node.this
    if (
        kind.startswith(("TIMESTAMP", "DATE"))
        and isinstance(value, exp.Literal)
        and value.is_string
        and lists.CLOCK_WORD.fullmatch(value.name)
    ):
        select.tell(
            Code.NOT_DETERMINISTIC, f"'{value.name}' reads the clock", lists.CLOCK_HELP, node
        )


def refuse_forbidden(select: Select, node: exp.Expression, name: str) -> None:
    """What no query may call or name, with the reason."""
    why = lists.FORBIDDEN.get(name, "reads the clock")
    help_ = lists.CLOCK_HELP if "clock" in why else f"remove {name}()"
    select.tell(Code.NOT_DETERMINISTIC, f"{name}() {why}", help_, node)


def _no_function(select: Select, node: exp.Anonymous, name: str) -> None:
    meant = _ELSEWHERE.get(name) or closest(name, sorted(ALLOWED))
    help_ = f"did you mean {meant}()?" if meant else "docs/transforms.md lists them"
    select.tell("E0501", f"there is no function {name}() that a query may call", help_, node)


def _aggregate(select: Select, node: exp.Anonymous, kind: str, clause: str) -> None:
    name, argument = node.name, node.expressions[0] if node.expressions else None
    if clause in ("where", "group", "joins"):
        where = {"where": "WHERE", "group": "GROUP BY", "joins": "ON"}[clause]
        help_ = "filter groups with HAVING, or aggregate in a step before"
        select.tell("E0501", f"{where} cannot hold the aggregate {name}()", help_, node)
    if any(is_aggregate(each) for each in around(node)):
        help_ = "aggregate in a step before, or in a subquery"
        select.tell("E0501", f"{name}() stands inside of another aggregate", help_, node)
    inner = argument.sql("spark") if argument is not None else "x"
    if kind in lists.NUMERIC_AGGREGATES and argument is not None:
        _sum(select, node, kind, argument, inner)
    elif kind in lists.FIXES and kind != "ListAgg" and not is_sorted(node, kind):
        help_ = lists.FIXES[kind].format(x=inner, f=name)
        select.tell(Code.ORDER_MATTERS, f"{name}() depends on the order of rows", help_, node)
    elif kind not in (*lists.ORDER_FREE_AGGREGATES, *lists.NUMERIC_AGGREGATES, *lists.FIXES):
        help_ = "compute it from SUM, COUNT, MIN and MAX of integers or decimals"
        if kind not in _NOT_TOLD:
            select.tell(Code.ORDER_MATTERS, f"{name}() depends on the order of rows", help_, node)


def _sum(
    select: Select, node: exp.Anonymous, kind: str, argument: exp.Expression, inner: str
) -> None:
    name = node.name
    found = _number(argument, select.sources)
    if found == "text":
        select.tell(
            Code.ORDER_MATTERS,
            f"{name}() of a text makes floating point numbers of it, whose sum depends on the "
            "order of rows",
            f"say which numbers they are: {name}(CAST({inner} AS DECIMAL(18, 2)))",
            node,
        )
    elif found == "floating":
        select.tell(
            Code.ORDER_MATTERS,
            f"{name}() of floating point numbers depends on the order of rows",
            f"sum decimals: CAST({name}(CAST({inner} AS DECIMAL(38, 12))) AS DOUBLE)",
            node,
        )
    elif found == "int64" and kind == "Average":
        select.tell(
            Code.ORDER_MATTERS,
            f"{name}() of BIGINT adds them as floating point numbers, so that a sum beyond "
            "2^53 depends on the order of rows",
            f"divide the exact sum: SUM({inner}) / COUNT({inner})",
            node,
        )


def _number(node: exp.Expression, sources: Sources) -> str | None:
    """`floating`, `text`, `int64`, or another type of a number; `None`: not known."""
    if isinstance(node, exp.Paren | exp.Neg | exp.Distinct):
        return _number(node.this or node.expressions[0], sources)
    if isinstance(node, exp.Literal):
        return None if node.is_string else "int32" if node.name.isdigit() else "decimal"
    if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div):
        sides = {_number(node.this, sources), _number(node.expression, sources)}
        if None in sides:
            return None
        if sides & {"floating", "text"}:
            return "floating"
        whole = all(side is not None and side.startswith("int") for side in sides)
        return "floating" if isinstance(node, exp.Div) and whole else None
    kind = type_of(node, sources)
    if kind is None:
        return None
    if kind.name in arrow.FLOATS:
        return "floating"
    if kind.name in arrow.TEXTS:
        return "text"
    return kind.name if kind.name in (*arrow.INTEGERS, *arrow.DECIMALS) else None


# --- Time zones ---


_ARGUMENTS = {
    "from_utc_timestamp": (1,),
    "to_utc_timestamp": (1,),
    "convert_timezone": (0, 1),
    "make_timestamp": (6,),
    "make_timestamp_ltz": (6,),
}
"""Which arguments of a function name one; `convert_timezone` has one or two before its time."""
_OTHER = re.compile(r"(UTC|GMT|UT|Z)?([+-].*|0)?|[A-Z]{3}|SystemV/.*")
"""Offsets, and names that only Java knows."""
_OLD_AND_NEW = ("US/Pacific", "Europe/Kyiv")
"""What a whole and recent database has. Debian keeps names of old in a package of their own, small
images have no database at all, and Java brings its own, whatever the system has."""


def check_time_zones(select: Select, node: exp.Anonymous) -> None:
    """Tell of texts that name no time zone."""
    given = node.expressions
    places = _ARGUMENTS.get(node.name.lower(), ())
    if len(given) == 2 and len(places) == 2:
        places = places[:1]
    for each in (given[place] for place in places if place < len(given)):
        if isinstance(each, exp.Literal) and each.is_string and not _is_time_zone(each.name):
            meant = closest(each.name, _names())
            help_ = (
                f"did you mean '{meant}'?" if meant else "write it as 'Europe/Paris', or '+01:00'"
            )
            select.tell("E0501", f"there is no time zone '{each.name}'", help_, each)


def _is_time_zone(name: str) -> bool:
    from zoneinfo import ZoneInfo

    if _OTHER.fullmatch(name):
        return True
    try:
        ZoneInfo(name)
    except (ValueError, OSError):
        return False
    except LookupError:
        return not set(_OLD_AND_NEW) <= set(_names())
    return True


def _names() -> list[str]:
    from zoneinfo import available_timezones

    return sorted(available_timezones())
