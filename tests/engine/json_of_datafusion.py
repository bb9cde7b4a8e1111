"""What the functions for JSON of DataFusion give, in Python, and JSON to ask them about.

Written from the source and the tests of the crate `datafusion-functions-json`, releases 0.1 to 0.54
and what came after: the first release that reads negative numbers also reads numbers and `true`
from texts, and `2.0` as a whole number.
"""

from __future__ import annotations

import json
import random
import re
from typing import Any, NamedTuple

DIFFERS = "releases differ"
_BLANK = " \t\n\r"
_KEYS = ("a", "b", "a b", "it's", "A", "ä", "0x")


class Number(NamedTuple):
    """A number as it was written."""

    text: str


def json_get(function: str, text: str | None, path: tuple[str | int, ...]) -> Any:
    """The value, null, or that releases differ."""
    if text is None or not text.lstrip(_BLANK).startswith(("{", "[")):
        return None
    try:
        value = json.loads(text, parse_int=Number, parse_float=Number, object_pairs_hook=_once)
    except ValueError:
        return DIFFERS  # the crate looks only as far as the part that is asked for
    for step in path:
        if isinstance(step, str) and isinstance(value, dict):
            value = value.get(step)
        elif isinstance(step, int) and isinstance(value, list) and step < len(value):
            value = value[step]
        else:
            return None
    old, new = _old(function, value), _new(function, value)
    return old if repr(old) == repr(new) else DIFFERS


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("a key occurs twice")
    return dict(pairs)


def _old(function: str, value: Any) -> Any:
    """Numbers begin with a digit; whole ones of more than 18 digits are none."""
    if function == "json_get_str":
        return value if type(value) is str else None
    if function == "json_get_bool":
        return value if isinstance(value, bool) else None
    if not isinstance(value, Number) or value.text.startswith("-"):
        return None
    if function == "json_get_float":
        return float(value.text)
    return int(value.text) if value.text.isdigit() and len(value.text) <= 18 else None


def _new(function: str, value: Any) -> Any:
    """Negative numbers, too, and what texts say, as Rust reads it."""
    if type(value) is str and function == "json_get_bool":
        return {"true": True, "false": False}.get(value)
    if type(value) is str and function == "json_get_int":
        return int(value) if re.fullmatch(r"[+-]?[0-9]+", value, re.A) else None
    if type(value) is str and function == "json_get_float":
        known = r"[+-]?(\d+[.]?\d*(e[+-]?\d+)?|[.]\d+(e[+-]?\d+)?|inf|infinity|nan)"
        return float(value) if re.fullmatch(known, value, re.I | re.A) else None
    if isinstance(value, Number) and function == "json_get_float":
        return float(value.text)
    if isinstance(value, Number) and function == "json_get_int":
        number = float(value.text) if re.search("[.eE]", value.text) else int(value.text)
        return int(number) if number == int(number) and -(2**63) <= number < 2**63 else None
    return _old(function, value)


def json_text(drawn: random.Random) -> str | None:
    """A text that holds JSON, or none, or nothing."""
    kind = drawn.random()
    if kind < 0.05:
        return None
    if kind < 0.12:
        return drawn.choice(
            ("", " ", "null", "12", '"a"', "true", "no JSON", "\n", "-", "NaN", "\\")
        )
    value = _value(drawn, 0)
    if not isinstance(value, dict | list):
        value = {drawn.choice(_KEYS): value}
    separators = drawn.choice(((",", ":"), (", ", ": "), (" ,\n", "\t: ")))
    text = json.dumps(value, ensure_ascii=drawn.random() < 0.5, separators=separators)
    text = re.sub(r'"#([^"]*)#"', r"\1", text)
    return drawn.choice(("", " ", "\n\t")) + text + drawn.choice(("", "", " "))


def _value(drawn: random.Random, depth: int) -> Any:
    shape = drawn.random()
    if depth < 3 and shape < (0.9 if depth == 0 else 0.3):
        keys = [each for each in _KEYS if drawn.random() < 0.5]
        return {key: _value(drawn, depth + 1) for key in keys}
    if depth < 3 and shape < (1.0 if depth == 0 else 0.5):
        return [_value(drawn, depth + 1) for _ in range(drawn.randrange(3))]
    texts = ("", "x", "ü \u2028 \U0001f600", 'say "a"', "\\n", "a\tb", "{}", " 1", "truely", "e1")
    numbers: tuple[str, ...] = (
        "0",
        "7",
        "1.5",
        "0.1",
        "3.14159265358979",
        "12345678901234567",
        "1.25e-7",
        "2.5E+3",
    )
    numbers += ("123456789012345678.5", "0.30000000000000004", "1e-400", "5e-324", "99.990")
    return drawn.choice(
        (
            *(True, False, None, drawn.choice(texts), drawn.choice(texts)),
            *(f"#{drawn.choice(numbers)}#", drawn.randrange(10**6), drawn.random()),
        )
    )
