"""Which columns the corrections in a slice change.

Source: Open Data Fabric, "Retractions and corrections": a correction is the record as it was,
followed by the record as it is.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from odfbuild.odf.operation import CORRECT_FROM, CORRECT_TO
from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.store.corrections import Corrected

Rows = npt.NDArray[np.int64]
_BITS = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}


def corrected_columns(file: Path, vocab: Vocabulary) -> Corrected | None:
    """What the corrections in a slice change; `None` without any, or if some are not in pairs."""
    with pq.ParquetFile(file) as source:
        if not _may_correct(source.metadata, vocab.operation_type):
            return None
        operations = _column(source, vocab.operation_type).to_numpy()
        old = np.flatnonzero(operations == CORRECT_FROM)
        new = np.flatnonzero(operations == CORRECT_TO)
        if not len(old) or not np.array_equal(old + 1, new):
            return None
        system = (vocab.offset, vocab.operation_type, vocab.system_time)
        changed = [
            name
            for name in source.schema_arrow.names
            if name not in system and not _are_same(_column(source, name), old, new)
        ]
    return Corrected(tuple(changed), alone=len(operations) == len(old) + len(new))


def _may_correct(metadata: pq.FileMetaData, operation: str) -> bool:
    """Told by statistics: most slices have no corrections."""
    index = metadata.schema.names.index(operation)
    for group in range(metadata.num_row_groups):
        statistics = metadata.row_group(group).column(index).statistics
        if statistics is None or not statistics.has_min_max or statistics.max >= CORRECT_FROM:
            return True
    return False


def _column(source: pq.ParquetFile, name: str) -> pa.Array:
    """A column whose name may have dots."""
    table = source.read(columns=[name])
    found = table[name].combine_chunks()
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def _are_same(values: pa.Array, old: Rows, new: Rows) -> bool:
    """Whether rows have the same values in both places, to the bit; `False` where nobody knows."""
    kind = values.type
    if pa.types.is_floating(kind):
        values = values.view(_BITS[kind.bit_width])  # zeros of both signs are equal otherwise
    elif pa.types.is_nested(kind) and _has_floating(kind):
        return False
    return bool(values.take(pa.array(old)).equals(values.take(pa.array(new))))


def _has_floating(kind: pa.DataType) -> bool:
    if not pa.types.is_nested(kind):
        return bool(pa.types.is_floating(kind))
    return any(_has_floating(kind.field(at).type) for at in range(kind.num_fields))
