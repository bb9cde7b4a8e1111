"""Which columns the corrections in a slice change.

Source: Open Data Fabric, "Retractions and corrections": a correction is the record as it was,
followed by the record as it is.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
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
            if name not in system and differing(_column(source, name), old, new).any()
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


def _column(source: pq.ParquetFile, name: str) -> pa.ChunkedArray:
    return source.read(columns=[name])[name]


def differing(values: pa.ChunkedArray, old: Rows, new: Rows) -> npt.NDArray[np.bool_]:
    """Which rows differ from others, to the bit; all of them where nobody can tell."""
    kind = values.type
    if pa.types.is_floating(kind):  # zeros of both signs are equal otherwise
        values = pa.chunked_array([each.view(_BITS[kind.bit_width]) for each in values.chunks])
    elif pa.types.is_nested(kind) and _has_floating(kind):
        return np.ones(len(old), bool)
    one, other = (values.take(pa.array(rows)).combine_chunks() for rows in (old, new))
    try:
        same = pc.fill_null(pc.equal(one, other), False)
    except pa.ArrowNotImplementedError:  # lists and other nested values
        return np.full(len(old), not one.equals(other))
    same = pc.or_(same, pc.and_(one.is_null(), other.is_null()))
    found: npt.NDArray[np.bool_] = ~same.to_numpy(zero_copy_only=False)
    return found


def _has_floating(kind: pa.DataType) -> bool:
    if not pa.types.is_nested(kind):
        return bool(pa.types.is_floating(kind))
    return any(_has_floating(kind.field(at).type) for at in range(kind.num_fields))
