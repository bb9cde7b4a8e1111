"""Links from records to other objects of their dataset.

A text column of type `ObjectLink` holds multihashes of objects in the dataset's `data/`.
Source: RFC-017.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable

import pyarrow as pa

from odfbuild.odf.multihash import Multihash

_TYPE = b"opendatafabric.org/type"


def link_columns(schema: pa.Schema) -> list[str]:
    """Columns that hold links."""
    return [field.name for field in schema if _links(field)]


def linked_hashes(batches: Iterable[pa.RecordBatch]) -> frozenset[Multihash]:
    """What columns of links name; a text that is no hash names nothing."""
    found: set[Multihash] = set()
    for batch in batches:
        for column in batch.columns:
            for text in column.unique().drop_null().to_pylist():
                with contextlib.suppress(ValueError):
                    found.add(Multihash.parse(text))
    return frozenset(found)


def _links(field: pa.Field) -> bool:
    found = (field.metadata or {}).get(_TYPE)
    if found is None or not pa.types.is_string(field.type):
        return False
    try:
        kind = json.loads(found)
    except (ValueError, RecursionError):
        return False
    return isinstance(kind, dict) and kind.get("kind") == "ObjectLink"
