"""Types of columns: what `_common_metadata` says, and what data files and indices may have.

kartothek compares schemas before it updates a dataset: integers and floats are of 64 bits, columns
are sorted with partition keys first, times have microseconds and no zone. Times with a zone are
written as UTC without one, because kartothek cannot update datasets that have zones.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from odfbuild.errors import TableError

if TYPE_CHECKING:
    import pyarrow as pa

PANDAS: dict[str, list[Any]] = {"columns": [], "index_columns": [], "column_indexes": []}
"""What kartothek needs of pandas' notes in a file."""

PARQUET: dict[str, Any] = {
    "compression": "snappy",
    "version": "2.6",
    "coerce_timestamps": "us",
    "data_page_version": "1.0",
    "use_compliant_nested_type": False,
    "write_statistics": True,
    "store_schema": False,  # PyArrow 6 would ignore the notes for pandas beside it
}
"""How Parquet has to be written for PyArrow 6, which kartothek 5.3 runs on."""


def common(schema: pa.Schema, keys: Sequence[str]) -> pa.Schema:
    """The schema of a table as `_common_metadata` has it."""
    import pyarrow as pa

    rest = sorted(set(schema.names) - set(keys))
    return pa.schema([pa.field(name, _wide(schema.field(name).type)) for name in (*keys, *rest)])


def stored(schema: pa.Schema, keys: Sequence[str]) -> pa.Schema:
    """The schema of data files; `TableError` for types that kartothek cannot read.

    Structs come last: kartothek counts leaves where it should count columns.
    """
    import pyarrow as pa

    fields = [
        pa.field(each.name, _narrow(each.type, each.name))
        for each in schema
        if each.name not in keys
    ]
    return pa.schema(sorted(fields, key=lambda each: _has_struct(each.type)))


def _narrow(kind: pa.DataType, column: str) -> pa.DataType:
    """The type in which data files have a column."""
    import pyarrow as pa
    from pyarrow import types

    if types.is_dictionary(kind):
        return _narrow(kind.value_type, column)
    if types.is_timestamp(kind):
        return pa.timestamp("us")
    if types.is_float16(kind):
        return pa.float32()
    if types.is_large_string(kind) or types.is_string_view(kind):
        return pa.string()
    if types.is_large_binary(kind) or types.is_binary_view(kind) or _is_fixed_binary(kind):
        return pa.binary()
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return pa.list_(pa.field("item", _narrow(kind.value_type, column)))
    if types.is_struct(kind):
        return pa.struct([pa.field(each.name, _narrow(each.type, column)) for each in kind])
    plain = (
        types.is_integer,
        types.is_floating,
        types.is_boolean,
        types.is_date,
        types.is_time,
        types.is_decimal128,
        types.is_string,
        types.is_binary,
        types.is_null,
    )
    if any(fits(kind) for fits in plain):
        return pa.date32() if types.is_date(kind) else kind
    raise TableError(
        f"column {column!r} has the type {kind}, which kartothek cannot read",
        code="E1341",
        help="convert the column in the query of the dataset, or publish other columns",
    )


def _is_fixed_binary(kind: pa.DataType) -> bool:
    from pyarrow import types

    return types.is_fixed_size_binary(kind) and not types.is_decimal(kind)


def _wide(kind: pa.DataType) -> pa.DataType:
    """The type in which `_common_metadata` has a column."""
    import pyarrow as pa
    from pyarrow import types

    if types.is_signed_integer(kind):
        return pa.int64()
    if types.is_unsigned_integer(kind):
        return pa.uint64()
    if types.is_floating(kind):
        return pa.float64()
    if types.is_list(kind):
        return pa.list_(pa.field("item", _wide(kind.value_type)))
    return kind


def _has_struct(kind: pa.DataType) -> bool:
    from pyarrow import types

    return types.is_struct(kind) or (types.is_list(kind) and _has_struct(kind.value_type))


def check_key(column: str, kind: pa.DataType) -> None:
    """Refuse a partition column whose values kartothek reads back as others."""
    from pyarrow import types

    fits = (types.is_string, types.is_integer, types.is_floating, types.is_date)
    if not any(each(kind) for each in fits) and not types.is_timestamp(kind):
        raise _unfit(column, kind, "partition a table", "text, a number, a date or a time", "E1340")


def check_index(column: str, kind: pa.DataType, keys: Sequence[str]) -> None:
    """Refuse an index on a column whose values kartothek cannot index."""
    if not indexable(kind) or column == "partition" or column in keys:
        allowed = (
            "truth values, numbers, text, bytes, dates and times of columns which are neither "
            "partition columns nor called `partition`"
        )
        raise _unfit(column, kind, "have an index", allowed, "E1342")


def indexable(kind: pa.DataType) -> bool:
    """Whether kartothek has indices on columns of that type."""
    from pyarrow import types

    fits: tuple[Callable[[pa.DataType], bool], ...] = (
        types.is_string,
        types.is_binary,
        types.is_integer,
        types.is_floating,
        types.is_boolean,
        types.is_date,
        types.is_timestamp,
    )
    return any(each(kind) for each in fits)


def _unfit(column: str, kind: pa.DataType, what: str, allowed: str, code: str) -> TableError:
    return TableError(
        f"column {column!r} of type {kind} cannot {what} of kartothek",
        code=code,
        notes=(f"possible are {allowed}; kartothek 5.3 does not read others back as they were",),
        help=f"remove {column!r} from that list in `tables:`, or convert it in the dataset's query",
    )


def encode(schema: pa.Schema) -> bytes:
    """The bytes of `_common_metadata`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pa.BufferOutputStream()
    with pq.ParquetWriter(file, schema, **PARQUET) as writer:
        writer.add_key_value_metadata({"pandas": json.dumps(PANDAS)})
    data: bytes = file.getvalue().to_pybytes()
    return data


def decode(data: bytes, place: str) -> pa.Schema:
    """The schema of a table; nanoseconds are those of pandas, files have microseconds."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import types

    try:
        found = pq.read_schema(io.BytesIO(data))
    except (pa.ArrowException, OSError) as error:
        raise damaged(place, str(error)) from None
    return pa.schema(
        pa.field(
            each.name,
            pa.timestamp("us", each.type.tz) if types.is_timestamp(each.type) else each.type,
        )
        for each in found
    )


def damaged(place: str, why: str) -> TableError:
    """The error for a file whose bytes are not what they have to be."""
    return TableError(
        f"{place} cannot be read: {why.splitlines()[0] if why else 'no reason given'}",
        code="E1338",
        help="restore the file from a backup; a published table is written anew by "
        "`odfbuild table rebuild`",
    )
