"""Check what a library would end the process for, in the footer of a Parquet file.

PyArrow's C++ throws where the histograms of a column's levels have another length than its schema
gives them, and nothing between there and Python catches that.
Source: Apache Parquet, "SizeStatistics"; Apache Thrift, "Compact Protocol".
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.records.thrift import Compact, Excess

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_STRUCT, _LIST = 12, 9
_ROW_GROUPS, _COLUMNS, _META_DATA, _SIZES = 4, 1, 3, 16
_VALUE_BYTES, _REPETITION, _DEFINITION = 1, 2, 3


def check_footer(path: Path, metadata: pq.FileMetaData) -> None:
    """Raise `Excess` unless each column's statistics of sizes fit the schema."""
    status = path.stat()
    key = (str(path), status.st_mtime_ns, status.st_size)
    schema = metadata.schema
    for place, sizes in _sizes(*key):
        if place >= metadata.num_columns:
            raise Excess("a row group has more columns than the schema")
        column = schema.column(place)
        levels = {
            _REPETITION: column.max_repetition_level,
            _DEFINITION: column.max_definition_level,
        }
        fits = all(sizes.get(field, 0) in (0, most + 1) for field, most in levels.items())
        if not fits or (_VALUE_BYTES in sizes and column.physical_type != "BYTE_ARRAY"):
            raise Excess(f"the statistics of '{column.path}' do not fit its type")


@lru_cache(64)
def _sizes(path: str, _modified: int, size: int) -> tuple[tuple[int, dict[int, int]], ...]:
    """The place of each column that has statistics of sizes, and the lengths of these by field."""
    with Path(path).open("rb") as file:
        file.seek(max(0, size - 8))
        length = int.from_bytes(file.read(4), "little")
        file.seek(max(0, size - 8 - length))
        data = file.read(length)
    try:
        return tuple(_of_file(Compact(data)))
    except IndexError:
        raise Excess("the footer does not end") from None


def _of_file(reader: Compact) -> Iterator[tuple[int, dict[int, int]]]:
    for field, kind in reader.fields():
        if (field, kind) != (_ROW_GROUPS, _LIST):
            reader.skip(kind)
            continue
        for _ in reader.items():
            for inner, of in reader.fields():
                if (inner, of) != (_COLUMNS, _LIST):
                    reader.skip(of)
                    continue
                for place in reader.items():
                    sizes = _of_column(reader)
                    if sizes:
                        yield place, sizes


def _of_column(reader: Compact) -> dict[int, int]:
    found: dict[int, int] = {}
    for field, kind in reader.fields():
        if (field, kind) != (_META_DATA, _STRUCT):
            reader.skip(kind)
            continue
        for inner, of in reader.fields():
            if (inner, of) != (_SIZES, _STRUCT):
                reader.skip(of)
                continue
            for part, form in reader.fields():
                if form == _LIST:
                    found[part] = sum(1 for _ in map(reader.step, reader.items()))
                else:
                    found[part] = 1
                    reader.skip(form)
    return found
