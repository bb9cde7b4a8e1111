"""How old datasets may be, by patterns of their names: `freshness` of odfbuild.yaml."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Annotated, Any

from odfbuild.declared_settings import Fits, setting
from odfbuild.project.settings.by_name import Patterns, last_matching
from odfbuild.values import Value

_AGE = re.compile(r"^(\d{1,5})([smhdw])$")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def parse_age(text: str) -> timedelta:
    """An age such as `36h`; `ValueError` for anything else."""
    found = _AGE.search(text)
    if found is None:
        raise ValueError(f"not an age: {text!r}")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


def age(made: Callable[[str], Any]) -> Fits:
    """How long something takes or lasts, and what is made of it."""
    return Fits(
        str,
        made,
        pattern=_AGE.pattern,
        examples=["45s", "30m", "36h", "2d", "1w"],
        description="A number and a unit: 45s, 30m, 36h, 2d, 1w",
    )


class Freshness(Value):
    """Datasets whose name matches may lag so much behind the clock."""

    match: Patterns = setting()
    max_age: Annotated[timedelta, age(parse_age)] = setting()


def max_age(declared: Iterable[Freshness], name: str) -> timedelta | None:
    """How old a dataset may be; `None`: nothing is said about it."""
    found = last_matching(declared, name)
    return found.max_age if found else None
