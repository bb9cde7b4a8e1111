"""Inverted indices: which partitions hold a value of a column.

An index is two arrays of the same length, a value and a label, each pair once. Nulls and NaN are
never in it: a partition whose values are all null has no entry.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

from odfbuild.errors import TableError
from odfbuild.records.kartothek.metadata import Embedded
from odfbuild.records.kartothek.names import key_value
from odfbuild.records.kartothek.schema import PARQUET, damaged
from odfbuild.values import Value

if TYPE_CHECKING:
    import pyarrow as pa

LABELS = "partition"
_PARQUET: dict[str, Any] = {
    **PARQUET,
    "version": "1.0",
    "row_group_size": 100_000,
    "use_dictionary": [f"{LABELS}.list.item"],
    "dictionary_pagesize_limit": 1 << 23,
}
"""Values are there once, labels often: each is written once for so many values."""


class Index(Value):
    """Pairs of a value of `column` and the label of a partition that holds it."""

    column: str
    values: pa.Array
    labels: pa.Array

    @classmethod
    def empty(cls, column: str, kind: pa.DataType) -> Index:
        """An index of no partitions."""
        import pyarrow as pa

        return cls(column, pa.array([], kind), pa.array([], pa.string()))

    def updated(self, removed: Collection[str], added: Iterable[tuple[str, pa.Array]]) -> Index:
        """Without the labels `removed`, and with the distinct values of further partitions."""
        import pyarrow as pa
        import pyarrow.compute as pc

        values, labels = self.values, self.labels
        if removed:
            kept = pc.invert(pc.is_in(labels, pa.array(sorted(removed), pa.string())))
            values, labels = values.filter(kept), labels.filter(kept)
        more = [(label, present(each.cast(values.type))) for label, each in added]
        return Index(
            self.column,
            pa.concat_arrays([values, *(each for _, each in more)]),
            pa.concat_arrays([labels, *(pa.repeat(label, len(each)) for label, each in more)]),
        )

    def unlisted(self, labels: Iterable[str]) -> list[str]:
        """Those of `labels` that the index does not name."""
        named = set(self.labels.unique().to_pylist())
        return [each for each in labels if each not in named]


def present(values: pa.Array) -> pa.Array:
    """The values that are neither null nor NaN."""
    import pyarrow.compute as pc
    from pyarrow import types

    if types.is_floating(values.type):
        values = values.filter(pc.invert(pc.is_nan(values)), null_selection_behavior="drop")
    return values.drop_null()


def encode(index: Index) -> bytes:
    """The bytes of an index file: a row per distinct value, sorted."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pairs = pa.table({"value": index.values, "label": index.labels}).sort_by(
        [("value", "ascending"), ("label", "ascending")]
    )
    ordered = pairs.column("value").combine_chunks()
    firsts = _firsts(ordered)
    offsets = pa.concat_arrays([firsts, pa.array([len(pairs)], pa.int32())])
    labels = pa.ListArray.from_arrays(offsets, pairs.column("label").combine_chunks())
    table = pa.Table.from_arrays([ordered.take(firsts), labels], [index.column, LABELS])
    file = pa.BufferOutputStream()
    pq.write_table(table, file, **_PARQUET)
    data: bytes = file.getvalue().to_pybytes()
    return data


def _firsts(ordered: pa.Array) -> pa.Array:
    """Where each distinct value of a sorted array begins."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    if len(ordered) == 0:
        return pa.array([], pa.int32())
    differs = pc.not_equal(ordered[1:], ordered[:-1]).to_numpy(zero_copy_only=False)
    return pa.array(np.flatnonzero(np.concatenate([[True], differs])), pa.int32())


def decode(data: bytes, column: str, kind: pa.DataType, place: str) -> Index:
    """The index that a file holds, with values of the type of its column in the schema."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(io.BytesIO(data)).combine_chunks()
        lists = table.column(LABELS).combine_chunks()
        values = table.column(column).combine_chunks()
        labels = lists.flatten().cast(pa.string())
        values = values.take(pc.list_parent_indices(lists)).cast(kind)
    except (pa.ArrowException, KeyError, OSError) as error:
        raise damaged(place, str(error)) from None
    if not values.null_count:
        return Index(column, values, labels)
    known = values.is_valid()
    return Index(column, values.filter(known), labels.filter(known))


def of_embedded(index: Embedded, column: str, kind: pa.DataType, place: str) -> Index:
    """The index that the metadata itself has, whose values are texts."""
    import pyarrow as pa

    pairs = [(value, label) for value, labels in index.items() for label in labels]
    try:
        values = pa.array([key_value(value, kind) for value, _ in pairs], kind)
    except (ValueError, KeyError, pa.ArrowException) as error:
        raise TableError(
            f"the index of {column!r} in {place} has values that are not {kind}: {error}",
            code="E1338",
            help="build the indices of the dataset anew",
        ) from None
    return Index(column, values, pa.array([label for _, label in pairs], pa.string()))
