"""What a plain scalar of YAML 1.2 means, by its core schema: `yes` and `on` are strings.

Source: YAML 1.2.2, 10.3.2 "Tag Resolution".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

STR, MAP, SEQ = (f"tag:yaml.org,2002:{kind}" for kind in ("str", "map", "seq"))

_TAGS: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
"""Tags other than text, with what they look like, by first letter."""

for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    # Longer numbers fit nowhere: they stay text, and are refused where a number is meant.
    ("int", r"[-+]?[0-9]{1,40}|0o[0-7]{1,40}|0x[0-9a-fA-F]{1,40}", "-+0123456789"),
    (
        "float",
        r"[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*)(?:[eE][-+]?[0-9]+)?|[-+]?[0-9]+[eE][-+]?[0-9]+"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+0123456789.",
    ),
):
    for _letter in _first:
        _TAGS.setdefault(_letter, []).append(
            (f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"))
        )


@lru_cache(8192)
def tag_of(value: str) -> str:
    """The tag of a plain scalar without one: half of those of a project are the same few keys."""
    for tag, pattern in _TAGS.get(value[:1], ()):
        if pattern.match(value):
            return tag
    return STR


def _integer(value: str) -> int:
    return int(value, 0) if value[:2] in ("0o", "0x") else int(value)


def _float(value: str) -> float:
    return float(value.lower().replace(".inf", "inf").replace(".nan", "nan"))


SCALARS: dict[str, Callable[[str], Any]] = {
    STR: str,
    "tag:yaml.org,2002:bool": lambda value: value.lower() == "true",
    "tag:yaml.org,2002:null": lambda value: None,
    "tag:yaml.org,2002:int": _integer,
    "tag:yaml.org,2002:float": _float,
}
"""The value of a scalar with a tag."""
