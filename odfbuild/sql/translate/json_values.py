"""The functions `json_get_str`, `_int`, `_float` and `_bool` of DataFusion in Spark SQL.

They come from the crate `datafusion-functions-json`. Its releases differ: older ones know no
negative numbers, newer ones read numbers and `true` from texts. What all releases give for a value
is what Spark gives; a value for which they differ makes the step fail, by name. The same holds for
text that Spark does not take for JSON, and for keys that occur twice: the crate looks only as far
as the first one. Text that is no object or array has no parts: null.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

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
