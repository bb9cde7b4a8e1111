"""Whether a query reads any of the columns of its inputs that changed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence, Set

from odfbuild.odf.model import TransformSql
from odfbuild.sql.columns.of_query import Names
from odfbuild.sql.lineage import Lineage

EVERY = "\N{REPLACEMENT CHARACTER}every"
"""It stands for all columns of an input that come later: only `*` reads it."""


def names_to_follow(inputs: Mapping[str, Sequence[str]]) -> Names:
    """The columns of inputs, system columns included, as a lineage is to be told of them."""
    return {alias: (*names, EVERY) for alias, names in inputs.items()}


def columns_read(transform: TransformSql, lineage: Lineage | None) -> Mapping[str, Set[str]] | None:
    """The columns that a query reads, by alias of the input, in lower case; `None`: nobody knows.

    `lineage` is that over `names_to_follow`. Versions of temporal tables depend on more.
    """
    if lineage is None or transform.temporal_tables:
        return None
    read: defaultdict[str, set[str]] = defaultdict(set)
    for origins in (*lineage.columns.values(), lineage.records):
        for alias, name, _ in origins:
            read[alias].add(name)
    return read


def may_read(
    transform: TransformSql, lineage: Lineage | None, changed: Mapping[str, Collection[str]]
) -> bool:
    """Whether a query may give another result where these columns changed, by alias of the input.

    `lineage` is that over `names_to_follow`.
    """
    read = columns_read(transform, lineage)
    if read is None:
        return True
    return any(
        name.lower() in read.get(alias.lower(), ())
        for alias, names in changed.items()
        for name in (*names, EVERY)
    )
