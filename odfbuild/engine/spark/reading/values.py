"""Values that Spark would read too leniently are read as text and converted here.

Spark fills in what is missing (`10:00` is that time of the day of the run, `2026` its first day)
and drops what does not fit (digits of a decimal, the time behind a date), and it takes Java's `1d`
for a number. Here a value either is one of its type or is a misfit, which makes its record bad.
Source: RFC 3339; reference behaviour, read steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from pyspark.sql.types import BinaryType, StringType, TimestampType

from odfbuild.engine.contract import LocalTimes
from odfbuild.engine.spark.results.frames import literal, quote, sql_type, uuid_text
from odfbuild.engine.spark.results.hidden import MISFIT, ROW, SEPARATOR
from odfbuild.records.uuids import TEXT, Uuids
from odfbuild.values import Value

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType


class Uuid(StringType):  # type: ignore[misc]
    """Text that is a UUID: Spark has no such type."""

    def simpleString(self) -> str:  # noqa: N802 - as Spark calls it
        """What messages call it."""
        return "uuid"


UUID = Uuid()


class TypeMismatch(Value):
    """SQL for the condition under which a value of `column` is not of the type called `kind`.

    `value` is SQL for its text.
    """

    condition: str
    column: str
    kind: str
    value: str


Text = Literal["csv", "json"]
_AS_WRITTEN = "__odfbuild_text_"


def with_text(schema: StructType, form: Text) -> StructType:
    """`schema` with text in place of the types that are converted here, also in nested ones."""
    from pyspark.sql import types

    return types.StructType(
        [types.StructField(field.name, _text_for(field.dataType, form)) for field in schema]
    )


def with_values(
    frame: DataFrame,
    schema: StructType,
    form: Text,
    uuids: Uuids = frozenset(),
    local_times: LocalTimes = "fail",
) -> DataFrame:
    """`frame`, read with `with_text`, in the types of `schema`, with `MISFIT` and `ROW`.

    Texts of columns in `uuids` are UUIDs. Frames in which nothing is converted stay as they are.
    """
    from pyspark.sql import types

    nested = (types.ArrayType, types.StructType)
    of = {f.name: UUID if f.name in uuids else f.dataType for f in schema}
    kinds = {name: kind for name, kind in of.items() if _is_checked(kind, form)}
    if not kinds:
        return frame
    converted = [
        f"{_value(quote(n), kinds[n], form)} AS {quote(n)}" if n in kinds else quote(n)
        for n in frame.columns
    ]
    kept = {name: f"{_AS_WRITTEN}{number}" for number, name in enumerate(kinds)}
    texts = [f"{quote(name)} AS {text}" for name, text in kept.items()]
    # Spark moves no filter below a column that is not deterministic. Without that it would convert
    # each value once for the record, and once more for each condition on it.
    once = frame.selectExpr(*converted, *texts, f"monotonically_increasing_id() AS {ROW}")
    misfits = [
        each
        for name, text in kept.items()
        for each in _local_misfits(text, quote(name), name, kinds[name], local_times)
    ]
    misfits += [
        TypeMismatch(
            _misfit(text, quote(name), kinds[name], form, local_times),
            name,
            kinds[name].simpleString().upper(),
            f"to_json({text})" if isinstance(kinds[name], nested) else f"CAST({text} AS STRING)",
        )
        for name, text in kept.items()
    ]
    names = [quote(name) for name in frame.columns]
    return once.selectExpr(*names, ROW, f"{misfit(misfits)} AS {MISFIT}")


def misfit(found: Sequence[TypeMismatch], row: str = "''") -> str:
    """SQL for `MISFIT`; `row` is SQL for the number of the row where the source is no text."""
    cases = [
        f"WHEN {each.condition} THEN concat({literal(each.column + SEPARATOR + each.kind)}, "
        f"{literal(SEPARATOR)}, coalesce({each.value}, ''), {literal(SEPARATOR)}, {row})"
        for each in found
    ]
    return f"CASE {' '.join(cases)} END" if cases else "CAST(NULL AS STRING)"


def undeclared_operation(column: str) -> TypeMismatch:
    """Numbers in an operation column that the schema does not have, but for 0 (append)."""
    name = quote(column)
    kind = f"declared: with `{column} INT` in `read.schema` a row with 1 deletes"
    return TypeMismatch(f"try_cast({name} AS BIGINT) != 0", column, kind, f"CAST({name} AS STRING)")


def without_operation(frame: DataFrame, column: str) -> DataFrame:
    """`frame` without an operation column that its schema does not have, noted in `MISFIT`."""
    number = ROW if ROW in frame.columns else f"monotonically_increasing_id() AS {ROW}"
    before = MISFIT if MISFIT in frame.columns else "CAST(NULL AS STRING)"
    names = [quote(each) for each in frame.columns if each not in (MISFIT, ROW, column)]
    found = misfit([undeclared_operation(column)])
    return frame.selectExpr(*names, number, f"coalesce({before}, {found}) AS {MISFIT}")


def converted(
    column: str, before: DataType, after: DataType, local_times: LocalTimes = "fail"
) -> tuple[str, TypeMismatch]:
    """SQL that converts a column, and how values that have no counterpart in that type are told.

    A number that is declared FLOAT is the nearest one, as everywhere.
    """
    from pyspark.sql import types

    value, kind = quote(column), sql_type(after)
    if isinstance(after, Uuid):
        return _uuid(column, before)
    result = f"try_cast({value} AS {kind})"
    lost = f"({value} IS NOT NULL AND {result} IS NULL)"
    text = (isinstance(before, types.StringType), isinstance(after, types.StringType))
    if text[0] and _is_text(after, "csv"):
        lost = _misfit(value, result, after, "csv", local_times)
    elif isinstance(after, types.FloatType) and isinstance(before, types.DoubleType):
        lost = f"({_is_infinite(result)} AND NOT {_is_infinite(value)})"
    elif isinstance(before, types.BinaryType) and text[1]:
        lost = f"({value} IS NOT NULL AND NOT is_valid_utf8(CAST({value} AS STRING)))"
    elif not any(text):
        back = f"try_cast({result} AS {sql_type(before)})"
        lost = f"({lost} OR NOT ({back} <=> {value}))"
    shown = f"hex({value})" if isinstance(before, types.BinaryType) else f"CAST({value} AS STRING)"
    return result, TypeMismatch(lost, column, kind.upper(), shown)


def _uuid(column: str, before: DataType) -> tuple[str, TypeMismatch]:
    """`converted` for a column of text or of 16 bytes that holds UUIDs."""
    name = quote(column)
    if isinstance(before, BinaryType):
        result = f"CASE WHEN length({name}) = 16 THEN {uuid_text(name)} END"
        lost, shown = f"({name} IS NOT NULL AND length({name}) != 16)", f"hex({name})"
    else:
        shown = f"CAST({name} AS STRING)"
        result = f"lower({shown})"
        lost = f"({name} IS NOT NULL AND {_uuid_flaws(shown)})"
    return result, TypeMismatch(lost, column, "UUID", shown)


def with_time(
    frame: DataFrame, column: str, kind: str, local_times: LocalTimes = "fail"
) -> DataFrame:
    """`frame` with a column of text (RFC 3339) or of numbers (seconds since 1970) as a time."""
    name, text = quote(column), f"{_AS_WRITTEN}time"
    value, flaws = f"try_cast({name} AS TIMESTAMP)", _time_flaws(text)
    local = _local_misfits(text, name, column, TimestampType(), local_times)
    if kind != "string":
        local = []
        value, flaws = f"try_cast(try_cast({name} AS BIGINT) AS TIMESTAMP)", "false"
    number = ROW if ROW in frame.columns else f"monotonically_increasing_id() AS {ROW}"
    before = MISFIT if MISFIT in frame.columns else f"CAST(NULL AS STRING) AS {MISFIT}"
    names = [quote(each) for each in frame.columns if each not in (MISFIT, ROW)]
    values = [f"{value} AS {name}" if each == name else each for each in names]
    once = frame.selectExpr(*values, f"{name} AS {text}", number, before)
    lost = TypeMismatch(
        f"({text} IS NOT NULL AND ({name} IS NULL OR {flaws}))",
        column,
        "a time (RFC 3339, or seconds since 1970)",
        f"CAST({text} AS STRING)",
    )
    return once.selectExpr(*names, ROW, f"coalesce({MISFIT}, {misfit([*local, lost])}) AS {MISFIT}")


# --- Types that are read as text ---


def _text_for(kind: DataType, form: Text) -> DataType:
    from pyspark.sql import types

    if isinstance(kind, types.ArrayType):
        return types.ArrayType(_text_for(kind.elementType, form))
    if isinstance(kind, types.StructType):
        return with_text(kind, form)
    return types.StringType() if _is_text(kind, form) else kind


def _is_text(kind: DataType, form: Text) -> bool:
    from pyspark.sql import types

    # JSON tells a number from text, so its floating point numbers stay: "1.5" is none.
    floats = (types.FloatType, types.DoubleType) if form == "csv" else ()
    times = (types.TimestampType, types.TimestampNTZType, types.DateType)
    return isinstance(kind, (*times, types.DecimalType, *floats, Uuid))


def _is_checked(kind: DataType, form: Text) -> bool:
    from pyspark.sql import types

    if isinstance(kind, types.ArrayType):
        return _is_checked(kind.elementType, form)
    if isinstance(kind, types.StructType):
        return any(_is_checked(field.dataType, form) for field in kind)
    return _is_text(kind, form) or isinstance(kind, types.FloatType | types.DoubleType)


# --- SQL ---


def _value(text: str, kind: DataType, form: Text) -> str:
    """SQL for `text`, as read with `_text_for`, in its type; something else where it misfits."""
    from pyspark.sql import types

    if not _is_checked(kind, form):
        return text
    match kind:
        case types.ArrayType():
            return f"transform({text}, item -> {_value('item', kind.elementType, form)})"
        case types.StructType():
            members = [
                f"{literal(f.name)}, {_value(f'{text}.{quote(f.name)}', f.dataType, form)}"
                for f in kind
            ]
            return f"CASE WHEN {text} IS NOT NULL THEN named_struct({', '.join(members)}) END"
        case Uuid():
            return f"lower({text})"
        case _ if _is_text(kind, form):
            return f"try_cast({text} AS {kind.simpleString()})"
    return text


def _misfit(text: str, value: str, kind: DataType, form: Text, local_times: LocalTimes) -> str:
    """SQL for whether `text`, as read, is not exactly what became of it in `value`."""
    from pyspark.sql import types

    if not _is_checked(kind, form):
        return "false"
    match kind:
        case types.ArrayType():
            lost = _lost("item", kind.elementType, form, local_times)
            return f"coalesce(exists({text}, item -> {lost}), false)"
        case types.StructType():
            members = [
                _lost(f"{text}.{quote(f.name)}", f.dataType, form, local_times) for f in kind
            ]
            return f"({' OR '.join(members)})"
        case types.FloatType() | types.DoubleType():
            flaws = _float_flaws(text, value) if form == "csv" else _is_infinite(value)
        case types.DateType():
            flaws = _date_flaws(text)
        case Uuid():
            flaws = _uuid_flaws(text)
        case types.DecimalType():
            flaws = _decimal_flaws(text, value, kind.scale)
        case _:
            flaws = _time_flaws(text)
            if local_times == "fail":
                flaws += "".join(f" OR {each}" for each in _local_flaws(text, value))
    return f"({text} IS NOT NULL AND ({value} IS NULL OR {flaws}))"


def _lost(text: str, kind: DataType, form: Text, local_times: LocalTimes) -> str:
    return _misfit(text, _value(text, kind, form), kind, form, local_times)


def _local_misfits(
    text: str, value: str, column: str, kind: DataType, local_times: LocalTimes
) -> list[TypeMismatch]:
    """What is told of local times that are no instant, or two, before anything else is."""
    if local_times != "fail" or not isinstance(kind, TimestampType):
        return []
    absent, twice = _local_flaws(text, value)
    shown = f"CAST({text} AS STRING)"
    return [
        TypeMismatch(absent, column, "a time there: clocks were put forward over it", shown),
        TypeMismatch(
            twice, column, "one time there: clocks were put back, and showed it twice", shown
        ),
    ]


def _local_flaws(text: str, value: str) -> tuple[str, str]:
    """SQL for whether a time with the name of a zone never was there, and whether it was twice.

    Spark has moved the one forward, and taken the earlier instant of the other for `value`.
    """
    zone = f"regexp_extract({text}, '[A-Za-z]{{2,}}[A-Za-z0-9_+/-]*$', 0)"
    written = f"rtrim(substring({text}, 1, length({text}) - length({zone})))"
    local = f"try_cast({written} AS TIMESTAMP)"
    there = f"from_utc_timestamp({value}, {zone})"
    next_day = f"({value} + INTERVAL 1 DAY)"
    ahead_then = f"(from_utc_timestamp({next_day}, {zone}) - {next_day})"
    other = f"({there} - {ahead_then})"
    twice = f"{other} != {value} AND from_utc_timestamp({other}, {zone}) = {local}"
    # Most times end in a digit or Z; looking for a zone in them costs more than reading them.
    named = f"substring({text}, -1) > '9' AND NOT {text} RLIKE '[0-9]Z$' AND {zone} != ''"
    first = f"{value} IS NOT NULL AND {named}"
    absent, again = (
        f"CASE WHEN {first} THEN coalesce({each}, false) ELSE false END"
        for each in (f"{there} != {local}", twice)
    )
    return absent, again


def _uuid_flaws(text: str) -> str:
    return f"NOT {text} RLIKE {literal(TEXT)}"


def _time_flaws(text: str) -> str:
    return f"substring({text}, 5, 1) != '-'"


def _date_flaws(text: str) -> str:
    """No month or day, or more than a date."""
    shape = f"length({text}) NOT BETWEEN 8 AND 10 OR substring({text}, 5, 1) != '-'"
    return f"{shape} OR contains({text}, 'T') OR contains({text}, ' ')"


def _decimal_flaws(text: str, value: str, scale: int) -> str:
    """Digits that are not zero stand behind the scale."""
    plain = f"{text} RLIKE '^[+-]?[0-9]*([.][0-9]{{0,{scale}}}0*)?$'"
    # With an exponent and few digits, floating point tells whether the value stayed the same.
    few = f"{text} RLIKE '^[+-]?[0-9.]{{1,16}}[eE][+-]?[0-9]{{1,3}}$'"
    same = f"CAST({value} AS DOUBLE) = try_cast({text} AS DOUBLE)"
    return f"NOT ({plain} OR ({few} AND {same}))"


def _float_flaws(text: str, value: str) -> str:
    """Java's suffixes and hexadecimals, and what is too large or too small for the type."""
    letter = " OR ".join(f"endswith({text}, '{each}')" for each in "dDfF")
    java = f"({letter}) AND NOT endswith(lower({text}), 'inf')"
    hexadecimal = f"contains({text}, 'x') OR contains({text}, 'X')"
    overflows = f"{_is_infinite(value)} AND NOT contains(lower({text}), 'inf')"
    vanishes = f"{value} = 0 AND {text} RLIKE '^[^eE]*[1-9]'"
    return f"({java}) OR {hexadecimal} OR ({overflows}) OR ({vanishes})"


def _is_infinite(value: str) -> str:
    return f"abs({value}) = double('Infinity')"
