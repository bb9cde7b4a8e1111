"""How long records are kept, by patterns of datasets: `retain` of odfbuild.yaml."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Annotated

from odfbuild.declared_settings import setting
from odfbuild.project.settings.by_name import Patterns, last_matching
from odfbuild.project.settings.freshness import age, parse_age
from odfbuild.values import Value


class Retention(Value, kw_only=True):
    """Objects of datasets whose name matches may be withdrawn when all their records are older."""

    match: Patterns = setting()
    keep: Annotated[timedelta, age(parse_age)] = setting()


def kept_for(declared: Iterable[Retention], name: str) -> timedelta | None:
    """How long the records of a dataset are kept; `None`: permanently."""
    found = last_matching(declared, name)
    return found.keep if found else None
