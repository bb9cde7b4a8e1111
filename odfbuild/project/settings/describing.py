"""Descriptions of columns, by patterns of names of datasets: `descriptions` of odfbuild.yaml.

The format has descriptions only for the columns of a source; those of a query have theirs here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from odfbuild.declared_settings import setting
from odfbuild.project.settings.by_name import Name, Patterns, matching
from odfbuild.values import Value


class Described(Value):
    """Columns of datasets whose name matches have these descriptions."""

    match: Patterns = setting()
    columns: Mapping[str, Name] = setting(about="Descriptions, by names of columns")


def descriptions_of(declared: Iterable[Described], name: str) -> dict[str, str]:
    """What columns of a dataset are said to hold, by name in lower case; the last one wins."""
    found: dict[str, str] = {}
    for each in declared:
        if matching(each, name) is not None:
            found |= {column.lower(): text for column, text in each.columns.items()}
    return found
