"""The list of expressions that mean the same in another engine and in Spark.

Kinds of expressions go by the names that the parser gives them. Whatever stands in no list here is
refused: also functions that have one name and two meanings.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from odfbuild.sql.translate.datafusion_calls import CHECKED, unfit_call
from odfbuild.sql.translate.dialects import READ

_CLAUSES = """Select From Join Where Group Having Order Ordered Limit Offset Distinct Union
    Intersect Except Subquery With CTE TableAlias Table Identifier Column Star Alias Values Tuple
    Version Lateral Window WindowSpec Filter Paren Var"""
_VALUES = """Literal Null Boolean And Or Not EQ NEQ GT GTE LT LTE NullSafeEQ NullSafeNEQ Is In
    Between Exists Case If Add Sub Mul Div Mod Neg DPipe DataType DataTypeParam Interval Array"""
_FUNCTIONS = """Coalesce Nullif Upper Lower Abs Sqrt Exp Pow Length Md5 MD5
    Count Sum Min Max RowNumber Rank DenseRank PercentRank CumeDist Lag Lead FirstValue
    LastValue"""

COMMON = frozenset(f"{_CLAUSES} {_VALUES} {_FUNCTIONS}".split())
"""What means the same in all engines."""

OWN = {
    "flink": frozenset({"Concat", "Ln", "Year", "Quarter", "Month", "DayOfMonth"}),
    "datafusion": frozenset({"ILike", "Greatest", "Least", "Avg", "SplitPart", "Concat", "Ln"}),
    "risingwave": frozenset({"ILike", "Greatest", "Least", "SplitPart"}),
}
"""What means the same in one other engine."""

FUNCTIONS = {
    "flink": frozenset({"timestampadd", "timestampdiff"}),
    "datafusion": frozenset(
        {"to_timestamp_seconds", "to_timestamp_millis", "to_timestamp_micros"} | {*CHECKED}
    ),
    "risingwave": frozenset[str](),
}
"""Functions of equal meaning that the parser knows by name only; also those of `rewrite`."""

_TYPE_NAMES = """BOOLEAN TINYINT SMALLINT INT BIGINT FLOAT DOUBLE DECIMAL VARCHAR TEXT DATE
    TIMESTAMP TIMESTAMPTZ TIMESTAMPLTZ"""
_TYPES = frozenset(_TYPE_NAMES.split())
_UNITS = frozenset({"YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE"})
_WHOLE = frozenset({"INT", "BIGINT", "SMALLINT"})
_LONGEST_TEXT = "2147483647"
_LARGEST = 2**63 - 1

FIXED_MICROS = {"MILLISECOND": 10**3, "SECOND": 10**6, "MINUTE": 60 * 10**6, "HOUR": 3600 * 10**6}
FIXED_MICROS |= {"DAY": 24 * FIXED_MICROS["HOUR"], "WEEK": 7 * 24 * FIXED_MICROS["HOUR"]}
"""Microseconds of the units of time that always last the same, without leap seconds."""

_SHOWN = 40
"""Characters of a part that a message shows."""

Check = Callable[[exp.Expression, str], str | None]


def problem_with(node: exp.Expression, engine: str) -> str | None:
    """Why a node cannot be written for Spark, in words; `None`: it can."""
    kind = type(node).__name__
    check = _CHECKS.get(kind)
    if check is not None:
        return check(node, engine)
    if kind in COMMON or kind in OWN[engine]:
        return None
    return f"{_words(node, engine)} of {engine} has no translation that is known to mean the same"


def _words(node: exp.Expression, engine: str) -> str:
    """A part of a query as its author knows it: a call by its name, anything else by its text."""
    if isinstance(node, exp.Anonymous):
        return f"{node.name}()"
    if isinstance(node, exp.Func) and not isinstance(node, exp.Binary):
        return f"{node.sql_name()}()"
    text = " ".join(node.sql(dialect=READ[engine]).split())
    return f"`{text[:_SHOWN]}…`" if len(text) > _SHOWN else f"`{text}`"


def _function(node: exp.Expression, engine: str) -> str | None:
    if node.name.lower() in FUNCTIONS[engine]:
        return unfit_call(node)
    return f"{node.name}() of {engine} has no translation that is known to mean the same"


def is_fraction(node: exp.Expression) -> bool:
    """Whether a node is a number with a decimal point or exponent."""
    return isinstance(node, exp.Literal) and not node.is_string and not node.name.isdigit()


def _cast(node: exp.Expression, engine: str) -> str | None:
    return _type(node.args["to"], engine)


def _type(node: exp.Expression, engine: str) -> str | None:
    name = str(node.this.value) if isinstance(node.this, exp.DType) else str(node.this)
    sizes = [each.name for each in node.expressions]
    if name not in _TYPES:
        return f"the type {name} of {engine} has no equal in Spark"
    if name == "VARCHAR" and sizes not in ([], [_LONGEST_TEXT]):
        return "texts that are cut at a length have no equal in Spark: use substring()"
    if name.startswith("TIMESTAMP") and sizes and int(sizes[0]) < 3:
        return "times are kept to the millisecond, not rounded to less"
    if name == "FLOAT" and engine == "risingwave":
        return "how wide FLOAT is depends on the engine: write REAL or DOUBLE PRECISION"
    if name == "DECIMAL" and not sizes and engine == "risingwave":
        return "say how many digits it has: DECIMAL(18, 4)"
    return None


def _like(node: exp.Expression, engine: str) -> str | None:
    pattern = node.expression
    if not (isinstance(pattern, exp.Literal) and "\\" not in pattern.name):
        return "what `\\` means in a pattern depends on the engine: give a text without it"
    return None


def _extract(node: exp.Expression, engine: str) -> str | None:
    if node.name.upper() not in _UNITS:
        return f"{node.name.upper()} of a time is counted in another way in Spark"
    parent = node.parent
    is_whole = isinstance(parent, exp.Cast) and str(parent.to.this.value) in _WHOLE
    if engine == "risingwave" and not is_whole:
        return "EXTRACT gives NUMERIC in risingwave: cast it to INT"
    return None


def _truncation(node: exp.Expression, engine: str) -> str | None:
    to = node.args.get("to")
    if engine == "flink" and isinstance(to, exp.Var) and to.name.upper() in _UNITS:
        return None
    return "FLOOR gives another type in Spark: cast to a whole number, or floor to a unit of time"


def _date_trunc(node: exp.Expression, engine: str) -> str | None:
    unit = node.args.get("unit")
    if engine != "flink" and unit is not None and unit.name.upper() in (*_UNITS, "SECOND", "WEEK"):
        return None
    return "this unit of time is counted in another way in Spark"


def _substring(node: exp.Expression, engine: str) -> str | None:
    start = node.args.get("start")
    if isinstance(start, exp.Literal) and start.name.isdigit() and int(start.name) > 0:
        return None
    return "substring() begins at 1 or later: anything else means something else in Spark"


def _replace(node: exp.Expression, engine: str) -> str | None:
    sought = node.expression
    if isinstance(sought, exp.Literal) and sought.is_string and sought.name:
        return None
    return "REPLACE of an empty text inserts between all characters, and not in Spark: look for 'x'"


def _literal(node: exp.Expression, engine: str) -> str | None:
    if engine == "datafusion" and node.name.isdigit() and int(node.name) > _LARGEST:
        return "numbers of so many digits are floating point numbers in datafusion"
    return None


def _trim(node: exp.Expression, engine: str) -> str | None:
    if node.expression is None and not node.args.get("position"):
        return None
    return "TRIM of other characters than spaces has another form in Spark"


def _bin(node: exp.Expression, engine: str) -> str | None:
    stride = node.this
    unit = stride.args.get("unit") if isinstance(stride, exp.Interval) else None
    word = unit.name.upper().removesuffix("S") if unit is not None else ""
    is_plain = not node.args.get("zone") and not node.args.get("origin")
    if is_plain and engine == "datafusion" and word in FIXED_MICROS and stride.name.isdigit():
        return None
    return "date_bin() takes an interval of weeks or less, as a constant"


def _join(node: exp.Expression, engine: str) -> str | None:
    method = node.args.get("method")
    return (
        f"{method} JOIN has no translation: say with ON or USING what belongs" if method else None
    )


def _grouping(node: exp.Expression, engine: str) -> str | None:
    further = ("grouping_sets", "cube", "rollup", "totals", "all")
    if any(node.args.get(each) for each in further):
        return "grouping sets have no translation here"
    if engine == "flink" and any(isinstance(e, exp.Literal) for e in node.expressions):
        return "numbers in GROUP BY are constants in flink, and columns in Spark"
    return None


def _select(node: exp.Expression, engine: str) -> str | None:
    further = ("laterals", "distribute", "sort", "cluster", "hint", "match", "into", "locks")
    found = next((each for each in further if node.args.get(each)), None)
    if found:
        return f"{found.upper()} has no translation"
    distinct = node.args.get("distinct")
    if distinct is not None and distinct.args.get("on"):
        return "DISTINCT ON has no translation: use ROW_NUMBER()"
    return None


_CHECKS: dict[str, Check] = {
    "Anonymous": _function,
    "Cast": _cast,
    "DataType": _type,
    "Like": _like,
    "Literal": _literal,
    "Replace": _replace,
    "ILike": lambda node, engine: (
        _words(node, engine) + " has no translation" if engine == "flink" else _like(node, engine)
    ),
    "Extract": _extract,
    "Floor": _truncation,
    "TimestampTrunc": _date_trunc,
    "DateTrunc": _date_trunc,
    "Substring": _substring,
    "Trim": _trim,
    "DateBin": _bin,
    "Join": _join,
    "Group": _grouping,
    "Select": _select,
}
"""Kinds for which it depends."""
