"""Whether a query reads any of the columns of its inputs that changed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from odfbuild.odf.model import TransformSql
from odfbuild.sql.columns.of_query import Names
from odfbuild.sql.lineage import Lineage

_EVERY = "\N{REPLACEMENT CHARACTER}every"
"""It stands for all columns of an input that come later: only `*` reads it."""


def names_to_follow(inputs: Mapping[str, Sequence[str]]) -> Names:
    """The columns of inputs, system columns included, as a lineage is to be told of them."""
    return {alias: (*names, _EVERY) for alias, names in inputs.items()}


def may_read(
    transform: TransformSql, lineage: Lineage | None, changed: Mapping[str, Collection[str]]
) -> bool:
    """Whether a query may give another result where these columns changed, by alias of the input.

    `lineage` is that over `names_to_follow`. Versions of temporal tables depend on more.
    """
    if lineage is None or transform.temporal_tables:
        return True
    touched = {
        (alias.lower(), name.lower())
        for alias, names in changed.items()
        for name in (*names, _EVERY)
    }
    read = (*lineage.columns.values(), lineage.records)
    return any((alias, name) in touched for origins in read for alias, name, _ in origins)
