"""`extra` attributes: a free-form map, kept on the wire as one JSON text that is part of the hash.

The text is compact, keys are sorted at every level by code points, text stays as it is but for what
JSON must escape, and numbers are spelled as the reference spells them. Pure.
Sources: Open Data Fabric, "Metadata Block Hashing"; RFC 8259.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

_SMALLEST, _LARGEST = -(2**63), 2**64 - 1
_MAX_DEPTH = 64


def extra_to_json(value: Any) -> str:
    """The canonical JSON of a map of attributes, or of a value in it; `ValueError` if none."""
    match value:
        case None | bool():
            return json.dumps(value)
        case str():
            return json.dumps(value, ensure_ascii=False)
        case int():
            return str(value)
        case float():
            return _float(value)
        case Mapping():
            pairs = (f"{extra_to_json(key)}:{extra_to_json(value[key])}" for key in sorted(value))
            return "{" + ",".join(pairs) + "}"
        case list() | tuple():
            return "[" + ",".join(map(extra_to_json, value)) + "]"
    raise ValueError(f"{value!r} has no form in JSON")


def extra_from_json(text: str) -> dict[str, Any]:
    """The map of attributes in a JSON text; `ValueError` for any other text."""
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError(f"attributes are nested more than {_MAX_DEPTH} deep") from None
    if not isinstance(value, dict):
        raise ValueError("extra attributes are not an object")
    if (problem := extra_problem(value)) is not None:
        raise ValueError(problem)
    return value


def extra_problem(value: Any, depth: int = 0) -> str | None:
    """Why a value cannot be among the attributes; `None` if it can."""
    if depth > _MAX_DEPTH:
        return f"attributes are nested more than {_MAX_DEPTH} deep"
    match value:
        case None | bool():
            return None
        case int():
            fits = _SMALLEST <= value <= _LARGEST
            return None if fits else f"the whole number {value} needs more than 64 bits"
        case float():
            return None if math.isfinite(value) else f"{value} is not a number that JSON has"
        case str():
            return _text_problem(value)
        case Mapping():
            odd = [key for key in value if not isinstance(key, str)]
            if odd:
                return f"the key {odd[0]!r} is not text"
            return _first_problem([*value, *value.values()], depth)
        case list() | tuple():
            return _first_problem(value, depth)
    return f"{value!r} is neither text, number, boolean, list nor object"


def _first_problem(items: Any, depth: int) -> str | None:
    found = (extra_problem(item, depth + 1) for item in items)
    return next((problem for problem in found if problem), None)


def _text_problem(text: str) -> str | None:
    try:
        text.encode()
    except UnicodeEncodeError:
        return f"the text {text!r} is not Unicode text: it has half of a surrogate pair"
    return None


def _float(value: float) -> str:
    """Fixed notation from 1e-5 up to 1e16, `1e-6` and `1e+16` beyond, always the fewest digits."""
    text = repr(value)
    mantissa, _, exponent = text.partition("e")
    if not exponent or abs(value) >= 1e16:
        return text
    power = int(exponent)
    if power < -5:
        return f"{mantissa}e{power}"
    sign = "-" if value < 0 else ""
    digits = mantissa.lstrip("-").replace(".", "")
    return f"{sign}0.{'0' * (-power - 1)}{digits}"


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number that JSON has")
