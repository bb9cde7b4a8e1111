"""What the operations of records in data files tell, without reading another column."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from odfbuild.odf.operation import CORRECT_FROM, RETRACT
from odfbuild.records.bounds import check_bounds
from odfbuild.records.footer import check_footer
from odfbuild.records.thrift import Excess


def has_operations(files: Iterable[Path], column: str) -> bool:
    """Whether files hold anything but appended records, from their statistics alone."""
    return any(_has_operations(file, column) for file in files)


def taken_back(file: Path, column: str) -> int:
    """How many records of a slice take one back; reads only that column, and only if need be.

    `ValueError` for a file that claims what it cannot hold, or that is no Parquet file.
    """
    if not _has_operations(file, column):
        return 0
    import pyarrow.compute as pc

    check_bounds(file, pq.read_metadata(file), names=[column])
    taking = pa.array([RETRACT, CORRECT_FROM], pa.int32())
    with pq.ParquetFile(file) as parquet:
        columns = (each.column(0) for each in parquet.iter_batches(columns=[column]))
        return sum(pc.sum(pc.is_in(each.cast(pa.int32()), taking)).as_py() or 0 for each in columns)


@cache
def _has_operations(file: Path, column: str) -> bool:
    metadata = pq.read_metadata(file)
    try:
        check_footer(file, metadata)
    except Excess:
        return True  # whoever reads it tells what is wrong
    index = metadata.schema.names.index(column)
    for group in range(metadata.num_row_groups):
        statistics = metadata.row_group(group).column(index).statistics
        if statistics is None or not statistics.has_min_max or statistics.max != 0:
            return True
    return False
