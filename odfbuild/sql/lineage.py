"""Which columns of its inputs a query's result is made from, and which decide its records.

Told from the text of a query for plans (`plan/columns/`), and from the analysed query by Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from odfbuild.values import Value


class Influence(StrEnum):
    """How a column of an input matters to a dataset: a closed list, part of the output format.

    `COPY` and `DERIVATION` make a column; `FILTER`, `JOIN` and `GROUPING` decide which records
    there are. `RECORDS`: the input has other records. `UNKNOWN`: the query was not understood, and
    everything counts as affected.
    """

    COPY = "copy"
    DERIVATION = "derivation"
    FILTER = "filter"
    JOIN = "join"
    GROUPING = "grouping"
    RECORDS = "records"
    UNKNOWN = "unknown"


Origin = tuple[str, str, Influence]
"""Alias of an input and name of its column, and how it matters; in lower case in plans."""

Origins = frozenset[Origin]


class Lineage(Value):
    """Of each column of a result, and of its records, where they come from."""

    columns: Mapping[str, Origins]
    records: Origins


def as_influence(kind: Influence, origins: Iterable[Origins]) -> Origins:
    """All of these columns, mattering in one way."""
    return frozenset((alias, column, kind) for each in origins for alias, column, _ in each)
