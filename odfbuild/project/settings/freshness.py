"""Maximum ages of datasets, by name patterns: `freshness` of odfbuild.yaml."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from odfbuild.project.settings.by_name import MATCH, last_matching, patterns_of
from odfbuild.values import dataclass

_AGE = re.compile(r"(\d{1,5})([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}

AGE: dict[str, Any] = {
    "type": "string",
    "pattern": f"^{_AGE.pattern}$",
    "examples": ["45s", "30m", "36h", "2d", "1w"],
    "description": "A number and a unit: 45s, 30m, 36h, 2d, 1w",
}
"""How long something takes or lasts."""

SCHEMA: dict[str, Any] = {
    "type": "array",
    "description": "How old datasets may be; of several entries that match, the last one wins",
    "items": {
        "type": "object",
        "additionalProperties": False,
        "required": ["match", "maxAge"],
        "properties": {
            "match": MATCH,
            "maxAge": AGE,
        },
    },
}
"""What `freshness` may hold."""


@dataclass(frozen=True, slots=True)
class Freshness:
    """Datasets whose name matches may lag so much behind the clock."""

    match: tuple[str, ...]
    max_age: timedelta


def freshness_from(data: Iterable[Mapping[str, Any]]) -> tuple[Freshness, ...]:
    """Entries from what `SCHEMA` lets through."""
    return tuple(Freshness(patterns_of(each), parse_age(each["maxAge"])) for each in data)


def parse_age(text: str) -> timedelta:
    """An age such as `36h`; `ValueError` for anything else."""
    found = _AGE.fullmatch(text)
    if found is None:
        raise ValueError(f"not an age: {text!r}")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


def max_age(declared: Iterable[Freshness], name: str) -> timedelta | None:
    """How old a dataset may be; `None`: nothing is said about it."""
    found = last_matching(declared, name)
    return found.max_age if found else None
