"""Which partitions can hold rows that fulfil predicates, told without opening a data file.

Partition keys are in the names of files, other columns in inverted indices. A partition that an
index does not name holds only nulls of the column, if the index is complete. kartothek itself has
ways to commit partitions that are in no index, so its indices are complete only where we know it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from odfbuild.records.kartothek.index import Index
from odfbuild.records.kartothek.predicates import Conjunction, Literal, Normal

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa


def plan(
    predicates: Normal,
    labels: Sequence[str],
    keys: Mapping[str, pa.Array],
    index_of: Callable[[str], Index | None],
    *,
    complete: bool,
) -> list[str]:
    """Those of `labels` that have to be opened, in their order.

    `keys` are the values of the partition keys of each label. `index_of` loads the index of a
    column (`None`: there is none) and is asked once for each. `complete` says whether a partition
    that an index does not name holds nulls only.
    """
    import numpy as np

    loaded: dict[str, Index | None] = {}
    place = {label: number for number, label in enumerate(labels)}
    chosen = np.zeros(len(labels), bool)
    for conjunction in predicates:
        fits = np.ones(len(labels), bool)
        for column, literals in _by_column(conjunction).items():
            if column in keys:
                fits &= _plain(_every(literals, keys[column]))
                continue
            if column not in loaded:
                loaded[column] = index_of(column)
            index = loaded[column]
            if index is not None and not all(each.nulls for each in literals):
                fits &= _indexed(index, literals, place, complete=complete)
        chosen |= fits
    return [label for label, is_chosen in zip(labels, chosen, strict=True) if is_chosen]


def _by_column(conjunction: Conjunction) -> dict[str, list[Literal]]:
    """A row has one value in a column, which has to fulfil all literals on it."""
    found: dict[str, list[Literal]] = {}
    for literal in conjunction:
        found.setdefault(literal.column, []).append(literal)
    return found


def _indexed(
    index: Index, literals: Sequence[Literal], place: Mapping[str, int], *, complete: bool
) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Whether a partition holds a value that fulfils the literals, which nulls do not."""
    import numpy as np

    fits = np.zeros(len(place), bool)
    found = index.labels.filter(_every(literals, index.values)).unique().to_pylist()
    if not complete:
        found += index.unlisted(place)
    # a label that is no partition is of one that somebody deleted
    fits[[place[label] for label in found if label in place]] = True
    return fits


def _every(literals: Sequence[Literal], values: pa.Array) -> pa.Array:
    import pyarrow.compute as pc

    holds = literals[0].holds(values)
    for literal in literals[1:]:
        holds = pc.and_(holds, literal.holds(values))
    return holds


def _plain(mask: pa.Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
    found: np.ndarray[Any, np.dtype[np.bool_]] = mask.to_numpy(zero_copy_only=False)
    return found
