"""Check what a library would end the process for, in the footer of a Parquet file.

PyArrow's C++ throws where a column has another type than in the schema, or the histograms of its
levels another length than the schema gives them, and nothing between there and Python catches that.
Source: Apache Parquet, "ColumnMetaData", "SizeStatistics"; Apache Thrift, "Compact Protocol".
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.records.thrift import Compact, Excess

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_INTEGER, _LIST, _STRUCT = 5, 9, 12
_ROW_GROUPS, _COLUMNS, _META_DATA, _TYPE, _SIZES = 4, 1, 3, 1, 16
_VALUE_BYTES, _REPETITION, _DEFINITION = 1, 2, 3
_TYPES = (
    *("BOOLEAN", "INT32", "INT64", "INT96"),
    *("FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"),
)
"""Physical types by their numbers."""


def check_footer(path: Path, metadata: pq.FileMetaData) -> None:
    """Raise `Excess` unless types and statistics of sizes of each column fit the schema."""
    status = path.stat()
    key = (str(path), status.st_mtime_ns, status.st_size)
    schema = metadata.schema
    for place, number, sizes in _columns(*key):
        if place >= metadata.num_columns:
            raise Excess("a row group has more columns than the schema")
        column = schema.column(place)
        if not 0 <= number < len(_TYPES) or column.physical_type != _TYPES[number]:
            raise Excess(f"the values of '{column.path}' have another type than the schema says")
        levels = {
            _REPETITION: column.max_repetition_level,
            _DEFINITION: column.max_definition_level,
        }
        fits = all(sizes.get(field, 0) in (0, most + 1) for field, most in levels.items())
        if not fits or (_VALUE_BYTES in sizes and column.physical_type != "BYTE_ARRAY"):
            raise Excess(f"the statistics of '{column.path}' do not fit its type")


@lru_cache(64)
def _columns(path: str, _modified: int, size: int) -> tuple[tuple[int, int, dict[int, int]], ...]:
    """Place and type of each column, and the lengths of its statistics of sizes by field."""
    with Path(path).open("rb") as file:
        file.seek(max(0, size - 8))
        length = int.from_bytes(file.read(4), "little")
        file.seek(max(0, size - 8 - length))
        data = file.read(length)
    try:
        return tuple(_of_file(Compact(data)))
    except IndexError:
        raise Excess("the footer does not end") from None


def _of_file(reader: Compact) -> Iterator[tuple[int, int, dict[int, int]]]:
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
                    yield place, *_of_column(reader)


def _of_column(reader: Compact) -> tuple[int, dict[int, int]]:
    found: dict[int, int] = {}
    number = -1
    for field, kind in reader.fields():
        if (field, kind) != (_META_DATA, _STRUCT):
            reader.skip(kind)
            continue
        for inner, of in reader.fields():
            if (inner, of) == (_TYPE, _INTEGER):
                number = reader.number()
                continue
            if (inner, of) != (_SIZES, _STRUCT):
                reader.skip(of)
                continue
            for part, form in reader.fields():
                if form == _LIST:
                    found[part] = sum(1 for _ in map(reader.step, reader.items()))
                else:
                    found[part] = 1
                    reader.skip(form)
    return number, found
