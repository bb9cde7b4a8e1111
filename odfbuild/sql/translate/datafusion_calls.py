"""Functions of DataFusion whose translation depends on constants: formats of times, JSON paths."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import sqlglot
from sqlglot import exp

from odfbuild.sql.translate.dialects import SparkWithTemporalJoins
from odfbuild.sql.translate.spark_calls import call
from odfbuild.sql.translate.times import UnknownFormat, format_of, time_of_text

KINDS = {
    "json_get_str": "STRING",
    "json_get_int": "BIGINT",
    "json_get_float": "DOUBLE",
    "json_get_bool": "BOOLEAN",
}
"""The functions, and the types of what they give."""
RAW = "json_get_json"
"""Gives the text of a part as it was written, so only another function's first argument."""

_NO_PARTS = "^[ \\\\t\\\\n\\\\r]*[^ \\\\t\\\\n\\\\r{\\\\[]|^[ \\\\t\\\\n\\\\r]*$"
"""A text that is neither an object nor an array, as Spark writes it."""
_VALUES = {
    "STRING": ("text LIKE '\"%'", "variant_get(json, path, 'string')", None),
    "BIGINT": (
        "schema_of_variant(part) = 'BIGINT' AND text RLIKE '^[0-9]{1,18}$'",
        "CAST(text AS BIGINT)",
        "text RLIKE '^-|^\"[+-]?[0-9]' OR try_cast(text AS DOUBLE) % 1 = 0",
    ),
    "DOUBLE": (
        "text RLIKE '^[0-9]'",
        "CAST(text AS DOUBLE)",
        "text RLIKE '^-|^\"[+-]?([.]?[0-9]|(?i:inf|nan))'",
    ),
    "BOOLEAN": ("text IN ('true', 'false')", "text = 'true'", """text IN ('"true"', '"false"')"""),
}
"""By type: which values have it, what they are, and those for which releases differ."""


def unfit_step(key: str, *, is_text: bool) -> str | None:
    """Why a step of a path has no translation, in words."""
    if not is_text:
        return None if key.isdigit() else "an index that is not a number of 0 or more"
    if re.fullmatch(r"[+-]?[0-9]+", key):
        return "a key of digits, which is an index in some releases of the function"
    if not key or "?" in key or "\\" in key or ("'" in key and '"' in key):
        return "a key that is empty, or has `?`, a backslash or both kinds of quotes"
    return None


def path_of(steps: Sequence[tuple[str, bool]]) -> str:
    """A path in the form of Spark; each step is a key or index, and whether it is a key."""
    said = ["$"]
    for key, is_text in steps:
        quote = '"' if "'" in key else "'"
        said.append(f"[{quote}{key}{quote}]" if is_text else f"[{int(key)}]")
    return "".join(said)


def json_value(function: str, json: str, steps: Sequence[tuple[str, bool]]) -> str:
    """The call of a function in Spark SQL; `json` is an expression in it."""
    kind = KINDS[function]
    path = path_of(steps).replace("'", "\\'")
    parsed = f"try_parse_json({json})"
    part = f"variant_get({parsed}, '{path}', 'variant')"
    names = {
        "(part)": f"({part})",
        "text": f"to_json({part})",
        "json": parsed,
        "path": f"'{path}'",
    }
    has_kind, value, differs = (each and _with(each, names) for each in _VALUES[kind])
    why = f"concat('{function}: releases differ for ', left({json}, 200))"
    said = f"CAST(raise_error({why}) AS {kind})"
    last = f" WHEN {differs} THEN {said}" if differs else ""
    return (
        f"CASE WHEN {json} IS NULL OR {json} RLIKE '{_NO_PARTS}' THEN NULL "
        f"WHEN {has_kind} THEN {value}{last} WHEN {parsed} IS NULL THEN {said} END"
    )


def _with(text: str, names: Mapping[str, str]) -> str:
    """A text in which words stand for others."""
    return re.sub("|".join(map(re.escape, names)), lambda found: names[found[0]], text)


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
