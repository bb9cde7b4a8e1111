"""Check that sizes in a Parquet file are possible, before anything is unpacked.

Footers and headers of pages come from whoever wrote the file: a few bytes can claim gigabytes. The
headers are read here, without a library, as far as is needed to add up what they claim.
Source: Apache Parquet, "Page Header"; Apache Thrift, "Compact Protocol".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from odfbuild.records.footer import check_footer
from odfbuild.records.thrift import Compact, Excess
from odfbuild.values import Value

if TYPE_CHECKING:
    import pyarrow.parquet as pq

__all__ = ["Claims", "Excess", "check_bounds"]

_MOST_RECORDS = 1 << 31
_PAGE = 256 << 20
_RATIO = 16
"""Bytes of a page: so many, or so many times what is in the file, where a single value is huge."""

_HEADER = 1 << 14
_LONGEST_HEADER = 16 << 20


class Claims(Value):
    """What pages say that their values take, unpacked.

    `dictionaries` has the bytes of the dictionaries of text and bytes, by the path of their column:
    any record may repeat the longest of its values. `record` is what the other values of a record
    take, where they are longest.
    """

    dictionaries: Mapping[str, int]
    record: int


def check_bounds(
    path: Path,
    metadata: pq.FileMetaData,
    groups: Iterable[int] | None = None,
    names: Collection[str] | None = None,
) -> Claims:
    """What is claimed by these row groups and columns, by default by all.

    Raise `Excess` unless the footer and these pages keep to bounds.
    """
    if metadata.num_rows > _MOST_RECORDS:
        raise Excess(f"it claims {metadata.num_rows} records, more than a data object can have")
    check_footer(path, metadata)
    size = path.stat().st_size
    dictionaries: dict[str, int] = {}
    widest: dict[str, int] = {}
    with path.open("rb") as file:
        left = size
        for group in range(metadata.num_row_groups) if groups is None else groups:
            said = metadata.row_group(group)
            unpacked = 0
            for place in range(said.num_columns):
                column = said.column(place)
                left -= column.total_compressed_size
                if column.total_compressed_size < 0 or left < 0:
                    raise Excess("its columns claim more bytes than the file has")
                name = column.path_in_schema
                if names is not None and name.partition(".")[0] not in names:
                    continue
                found = _check_pages(file, column, size)
                if column.physical_type == "FIXED_LEN_BYTE_ARRAY":
                    found.widest = max(found.widest, metadata.schema.column(place).length)
                elif column.physical_type == "BYTE_ARRAY" and found.dictionary is not None:
                    dictionaries[name] = max(found.dictionary, dictionaries.get(name, 0))
                repeated = max(1, -(-column.num_values // max(1, said.num_rows)))
                widest[name] = max(found.widest * repeated, widest.get(name, 0))
                unpacked += found.dictionary or 0
            if unpacked > max(4 * _PAGE, _RATIO * size):
                raise Excess(f"its dictionaries claim {unpacked} bytes, and it has {size}")
    return Claims(dictionaries, sum(widest.values()))


@dataclass(slots=True)
class _Chunk:
    """The pages of a column: bytes of the dictionary, and of a value where they are longest."""

    dictionary: int | None = None
    widest: int = 0


def _check_pages(file: BinaryIO, column: pq.ColumnChunkMetaData, size: int) -> _Chunk:
    """Check the pages of a column."""
    start = column.data_page_offset
    if column.has_dictionary_page and 0 < (column.dictionary_page_offset or 0) < start:
        start = column.dictionary_page_offset
    end = start + column.total_compressed_size
    if start < 0 or end > size:
        raise Excess(f"the pages of '{column.path_in_schema}' lie outside of the file")
    place, values, found = start, 0, _Chunk()
    while place < end and values < column.num_values:
        page = _page(file, place, end, column.path_in_schema)
        place = page.end
        values += page.values
        if place > end:
            raise Excess(f"a page of '{column.path_in_schema}' ends outside of its column")
        if page.unpacked > max(_PAGE, _RATIO * page.packed):
            raise Excess(
                f"a page of '{column.path_in_schema}' claims {page.unpacked} bytes, and has "
                f"{page.packed} in the file"
            )
        if page.is_dictionary:
            found.dictionary = page.unpacked + (found.dictionary or 0)
        elif page.values:
            found.widest = max(found.widest, -(-page.unpacked // page.values))
    return found


class _Page:
    """The header of a page: bytes packed and unpacked, values (none in dictionaries), its end."""

    def __init__(self, data: bytes, place: int) -> None:
        reader = Compact(data)
        self.unpacked = self.packed = self.values = 0
        self.is_dictionary = False
        for field, kind in reader.fields():
            if field == 2 and kind == 5:
                self.unpacked = reader.number()
            elif field == 3 and kind == 5:
                self.packed = reader.number()
            elif field in (5, 8) and kind == 12:
                for inner, of in reader.fields():
                    if inner == 1 and of == 5:
                        self.values = reader.number()
                    else:
                        reader.skip(of)
            else:
                self.is_dictionary = self.is_dictionary or field == 7
                reader.skip(kind)
        if self.unpacked < 0 or self.packed < 0 or self.values < 0:
            raise Excess("the header of a page has a negative size")
        self.end = place + reader.at + self.packed


def _page(file: BinaryIO, place: int, end: int, column: str) -> _Page:
    length = _HEADER
    while True:
        file.seek(place)
        data = file.read(min(length, end - place))
        try:
            return _Page(data, place)
        except IndexError:
            if len(data) < length or length >= _LONGEST_HEADER:
                raise Excess(f"the header of a page of '{column}' does not end") from None
            length *= 8
