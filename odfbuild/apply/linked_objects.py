"""Links from records to other objects of their dataset: check that they exist, and count them.

A text column of type `ObjectLink` holds multihashes of objects in the dataset's `data/`.
Source: RFC-017; reference behaviour, linkedObjects.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from odfbuild.errors import IngestError, IntegrityError
from odfbuild.odf.multihash import Multihash
from odfbuild.records.links import link_columns
from odfbuild.store.dataset import DatasetStore

_COUNTS = "opendatafabric.org/linkedObjects"


def linked_objects(store: DatasetStore, schema: pa.Schema, file: Path) -> dict[str, Any] | None:
    """The attribute by which a block counts the objects that the slice `file` links.

    Each link counts, also the second one to an object. `None` when no column of `schema`, the
    dataset's, holds links. Raises `IngestError` E0435 for one that leads nowhere.
    """
    columns = link_columns(schema)
    if not columns:
        return None
    number = size = 0
    with pq.ParquetFile(file) as records:
        for batch in records.iter_batches(columns=columns):
            for name, values in zip(batch.schema.names, batch.columns, strict=True):
                for value in values.drop_null().to_pylist():
                    number += 1
                    size += _size(store, name, value)
    return {_COUNTS: {"numObjectsNaive": number, "sizeNaive": size}}


def _size(store: DatasetStore, column: str, link: str) -> int:
    try:
        return store.bring("data", Multihash.parse(link)).stat().st_size
    except (ValueError, IntegrityError):
        raise IngestError(
            f"'{link}' in column '{column}' links no object of '{store.name}'",
            code="E0435",
            dataset=store.name,
            notes=("the column is an ObjectLink: it holds multihashes of objects in `data/`",),
            help="add the object to the dataset first, or leave the record out in `preprocess`",
        ) from None
