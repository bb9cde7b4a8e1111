"""Schemas as PyArrow holds them, of which those who read or write records need the types.

The only module of this room that needs PyArrow to say anything about a schema.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from odfbuild.odf.schema import arrow
from odfbuild.odf.schema.arrow_raw import UnsupportedSchemaError


def to_pyarrow(schema: arrow.Schema) -> pa.Schema:
    """The same columns for PyArrow; `UnsupportedSchemaError` for types that no dataset has."""
    return pa.schema([_native_field(each) for each in schema], schema.metadata)


def from_pyarrow(schema: pa.Schema) -> arrow.Schema:
    """The same columns as plain values."""
    return arrow.schema([_plain_field(each) for each in schema], schema.metadata)


def _native_field(field: arrow.Field) -> pa.Field:
    if field.is_uuid:
        rest = {k: v for k, v in (field.metadata or {}).items() if k not in arrow.UUID}
        return pa.field(field.name, pa.uuid(), field.nullable, rest or None)
    return pa.field(field.name, native_type(field.type), field.nullable, field.metadata)


def native_type(kind: arrow.Type) -> pa.DataType:
    """The same type for PyArrow."""
    inner = [_native_field(each) for each in kind.fields]
    match kind.name:
        case "bool":
            return pa.bool_()
        case "struct":
            return pa.struct(inner)
        case "map":
            return pa.map_(*inner, keys_sorted=kind.sorted)
        case "list":
            return pa.list_(*inner)
        case "fixed_size_list":
            return pa.list_(*inner, kind.size)
        case "fixed_size_binary":
            return pa.binary(kind.size)
        case "timestamp":
            return pa.timestamp(kind.unit, kind.zone)
        case "dictionary":
            return pa.dictionary(*(each.type for each in inner), kind.sorted)
    make = getattr(pa, kind.name, None)
    if make is None:
        raise UnsupportedSchemaError(f"{kind} is not supported")
    if kind.name in arrow.DECIMALS:
        return make(kind.precision, kind.scale)
    return make(kind.unit) if kind.unit else make(*inner)


def _plain_field(field: pa.Field) -> arrow.Field:
    if field.type == pa.uuid():
        metadata = {**(field.metadata or {}), **arrow.UUID}
        return arrow.Field(field.name, arrow.UUID_BYTES, field.nullable, metadata)
    return arrow.Field(field.name, plain_type(field.type), field.nullable, field.metadata)


def plain_type(kind: pa.DataType) -> arrow.Type:
    """The same type as a plain value."""
    t = pa.types
    name = _NAMES.get(kind.id, str(kind))
    if t.is_map(kind):
        inner = [kind.key_field, kind.item_field]
    elif t.is_dictionary(kind):
        inner = [pa.field("indices", kind.index_type), pa.field("values", kind.value_type)]
    else:
        inner = [kind.field(i) for i in range(kind.num_fields)]
    given: dict[str, Any] = {"fields": tuple(_plain_field(each) for each in inner)}
    if t.is_decimal(kind):
        given |= {"precision": kind.precision, "scale": kind.scale}
    elif t.is_timestamp(kind):
        given |= {"unit": kind.unit, "zone": kind.tz}
    elif t.is_time(kind) or t.is_duration(kind):
        given["unit"] = kind.unit
    elif t.is_fixed_size_binary(kind):
        given["size"] = kind.byte_width
    elif t.is_fixed_size_list(kind):
        given["size"] = kind.list_size
    elif t.is_map(kind):
        given["sorted"] = kind.keys_sorted
    elif t.is_dictionary(kind):
        given["sorted"] = kind.ordered
    return arrow.Type(name, **given)


_RENAMED = {"na": "null", "half_float": "float16", "float": "float32", "double": "float64"}
_NAMES = {
    getattr(pa.lib, constant): _RENAMED.get(name, name)
    for constant in dir(pa.lib)
    for name in [constant.removeprefix("Type_").lower()]
    if constant.startswith("Type_")
}
"""What types are called here, by PyArrow's number of them."""
