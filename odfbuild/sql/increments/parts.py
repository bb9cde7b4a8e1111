"""How a query falls into parts by keys, and for how much history that is used."""

from __future__ import annotations

from odfbuild.values import Value

LARGEST_SHARE = 0.25
"""Of the history: where more of it is affected, two queries over these records cost more than one
over all of them."""
FEWEST = 500_000
"""Records of a history for which it pays to look for the affected ones.

Measured with queries of TPC-H: of 150,000 records one query over all took 0.4 times the CPU of two
over the affected ones with what finds them, of 750,000 records 0.6 to 1; joins of two inputs with
1,000,000 records took twice as much over all (`benchmarks/README.md`)."""


class KeyColumn(Value):
    """A column that holds part of a key.

    With a `length`, the key is what a time was cut to: times of one key are at most as many
    microseconds apart.
    """

    name: str
    length: int = 0


class Reading(Value):
    """One of the places where a query reads an input, and the columns that hold the key there."""

    alias: str
    columns: tuple[KeyColumn, ...]


class Parts(Value):
    """How a query falls into parts: the readings of each space of keys.

    Records of readings of one space meet only where they have the same key, and those of different
    spaces never. Inputs in `whole` have no new records, and all of theirs belong to each part.
    """

    spaces: tuple[tuple[Reading, ...], ...]
    whole: frozenset[str] = frozenset()


class Place(Value):
    """Where in the queries something stands; lines and columns count from 1."""

    step: int
    line: int
    column: int


def pays(total: int, new: int) -> bool:
    """Whether it may pay to look for affected records: there are many, and few of them new."""
    return is_long(total) and new <= most_affected(total)


def is_long(total: int) -> bool:
    """Whether a history of so many records is one of which few may be looked for."""
    return total >= FEWEST


def most_affected(total: int) -> int:
    """Of so many records, how many may be affected for them to be read alone."""
    return int(total * LARGEST_SHARE)
