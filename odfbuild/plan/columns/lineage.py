"""Which columns of its inputs a query's result is made from, and which decide its records."""

from __future__ import annotations

from collections.abc import Mapping

from odfbuild.plan.model import Influence
from odfbuild.values import dataclass

Origin = tuple[str, str, Influence]
"""Alias of an input and name of its column, both in lower case, and how it matters."""

Origins = frozenset[Origin]


@dataclass(frozen=True, slots=True)
class Lineage:
    """Of each column of a result, in lower case, and of its records, where they come from."""

    columns: Mapping[str, Origins]
    records: Origins


Names = Mapping[str, tuple[str, ...] | None]
"""Names of the columns of each input by alias; `None` where they are not known."""
