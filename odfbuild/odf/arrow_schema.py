"""Schemas of data between Arrow and the two forms in which chains hold them.

Raw form (up to 0.36): a bare Arrow IPC `Schema` table. ODF form (from 0.37): `DataSchema`. Source:
Arrow columnar format, `Schema.fbs`; specification, "Data Schema"; RFC-016.
"""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa

from odfbuild.odf import model
from odfbuild.odf.model import DataField, DataSchema, DataType, SetDataSchema, TimeUnit

_UNIT_NAMES = {
    "s": TimeUnit.Second,
    "ms": TimeUnit.Millisecond,
    "us": TimeUnit.Microsecond,
    "ns": TimeUnit.Nanosecond,
}
_UNITS = {unit: name for name, unit in _UNIT_NAMES.items()}


class UnsupportedSchema(TypeError):
    """A type that one of the two forms cannot express."""


def schema_of(event: SetDataSchema) -> pa.Schema:
    """The Arrow schema of a `SetDataSchema` in either form."""
    if event.schema is not None:
        return from_odf(event.schema)
    if event.raw_arrow_schema is None:
        raise UnsupportedSchema("the event holds no schema")
    return from_raw(event.raw_arrow_schema)


def to_raw(schema: pa.Schema) -> bytes:
    """The bare Arrow IPC `Schema` table of `schema`, without metadata."""
    message = schema.remove_metadata().serialize()
    return _extract_header(message.to_pybytes())


def from_raw(data: bytes) -> pa.Schema:
    """Read a bare Arrow IPC `Schema` table; `UnsupportedSchema` when it is none."""
    try:
        return pa.ipc.read_schema(pa.py_buffer(_wrap(data)))
    except (pa.ArrowException, OSError, struct.error) as error:
        raise UnsupportedSchema(f"not an Arrow schema: {error}") from None


def _extract_header(message: bytes) -> bytes:
    """Cut the schema out of an encapsulated IPC message, as a buffer of its own.

    References inside a FlatBuffer are relative and lead forward from tables (and back to layouts
    in front of them), so the message bytes stay valid behind another root reference.
    """
    body = message[8:]  # continuation marker and length
    root = struct.unpack_from("<I", body, 0)[0]
    layout = root - struct.unpack_from("<i", body, root)[0]
    header = root + struct.unpack_from("<H", body, layout + 4 + 2 * 2)[0]
    table = header + struct.unpack_from("<I", body, header)[0]
    return struct.pack("<I", table) + body[4:]


def _wrap(data: bytes) -> bytes:
    """An IPC message around a bare schema: table, then the schema's bytes behind it."""
    root = struct.unpack_from("<I", data, 0)[0]
    # Layout (version, header type, header), then the table that uses it, 8-byte aligned.
    layout = struct.pack("<HHHHH", 10, 12, 10, 8, 4)
    head = struct.pack("<I", 16) + b"\0\0" + layout
    table_at = len(head)
    reference_at = table_at + 4
    body_at = 32
    table = struct.pack("<iIBxh", 10, body_at + root - reference_at, 1, 4)
    message = (head + table).ljust(body_at, b"\0") + data
    message += b"\0" * (-len(message) % 8)
    return b"\xff\xff\xff\xff" + struct.pack("<I", len(message)) + message


# --- ODF form ---


def to_odf(schema: pa.Schema) -> DataSchema:
    """The ODF form of an Arrow schema; `UnsupportedSchema` for types that it does not have."""
    return DataSchema(fields=tuple(_field_to_odf(field) for field in schema))


def from_odf(schema: DataSchema) -> pa.Schema:
    """The Arrow schema of an ODF schema, with the default encoding of each type."""
    return pa.schema([_field_from_odf(field) for field in schema.fields])


def _field_to_odf(field: pa.Field) -> DataField:
    return DataField(name=field.name, type=_optional(field))


def _optional(field: pa.Field) -> DataType:
    inner = _to_odf(field.type)
    return model.DataTypeOption(inner=inner) if field.nullable else inner


_SIMPLE: dict[Any, Any] = {
    pa.bool_(): model.DataTypeBool,
    pa.date32(): model.DataTypeDate,
    pa.date64(): model.DataTypeDate,
    pa.float16(): model.DataTypeFloat16,
    pa.float32(): model.DataTypeFloat32,
    pa.float64(): model.DataTypeFloat64,
    pa.int8(): model.DataTypeInt8,
    pa.int16(): model.DataTypeInt16,
    pa.int32(): model.DataTypeInt32,
    pa.int64(): model.DataTypeInt64,
    pa.uint8(): model.DataTypeUInt8,
    pa.uint16(): model.DataTypeUInt16,
    pa.uint32(): model.DataTypeUInt32,
    pa.uint64(): model.DataTypeUInt64,
    pa.null(): model.DataTypeNull,
    pa.string(): model.DataTypeString,
    pa.large_string(): model.DataTypeString,
    pa.string_view(): model.DataTypeString,
    pa.binary(): model.DataTypeBinary,
    pa.large_binary(): model.DataTypeBinary,
    pa.binary_view(): model.DataTypeBinary,
}


def _to_odf(kind: pa.DataType) -> DataType:
    types = pa.types
    if kind in _SIMPLE:
        return _SIMPLE[kind]()
    if types.is_fixed_size_binary(kind):
        return model.DataTypeBinary(fixed_length=kind.byte_width)
    if types.is_decimal(kind):
        return model.DataTypeDecimal(precision=kind.precision, scale=kind.scale)
    if types.is_duration(kind):
        return model.DataTypeDuration(unit=_UNIT_NAMES[kind.unit])
    if types.is_time(kind):
        return model.DataTypeTime(unit=_UNIT_NAMES[kind.unit])
    if types.is_timestamp(kind):
        return model.DataTypeTimestamp(unit=_UNIT_NAMES[kind.unit], timezone=kind.tz or "UTC")
    if types.is_fixed_size_list(kind):
        return model.DataTypeList(item_type=_optional(kind.value_field), fixed_length=kind.list_size)
    if types.is_list(kind) or types.is_large_list(kind):
        return model.DataTypeList(item_type=_optional(kind.value_field))
    if types.is_map(kind):
        return model.DataTypeMap(
            key_type=_to_odf(kind.key_type),
            value_type=_optional(kind.item_field),
            keys_sorted=kind.keys_sorted or None,
        )
    if types.is_struct(kind):
        return model.DataTypeStruct(fields=tuple(_field_to_odf(field) for field in kind))
    raise UnsupportedSchema(f"{kind} has no form in the specification")


def _field_from_odf(field: DataField) -> pa.Field:
    return _named(field.name, field.type)


def _named(name: str, kind: DataType) -> pa.Field:
    if isinstance(kind, model.DataTypeOption):
        if isinstance(kind.inner, model.DataTypeOption):
            raise UnsupportedSchema("an option of an option")
        return pa.field(name, _from_odf(kind.inner), nullable=True)
    return pa.field(name, _from_odf(kind), nullable=False)


_FROM_SIMPLE = {
    model.DataTypeBool: pa.bool_(),
    model.DataTypeDate: pa.date32(),
    model.DataTypeFloat16: pa.float16(),
    model.DataTypeFloat32: pa.float32(),
    model.DataTypeFloat64: pa.float64(),
    model.DataTypeInt8: pa.int8(),
    model.DataTypeInt16: pa.int16(),
    model.DataTypeInt32: pa.int32(),
    model.DataTypeInt64: pa.int64(),
    model.DataTypeUInt8: pa.uint8(),
    model.DataTypeUInt16: pa.uint16(),
    model.DataTypeUInt32: pa.uint32(),
    model.DataTypeUInt64: pa.uint64(),
    model.DataTypeNull: pa.null(),
    model.DataTypeString: pa.string(),
}


def _from_odf(kind: DataType) -> pa.DataType:
    simple = _FROM_SIMPLE.get(type(kind))
    if simple is not None:
        return simple
    match kind:
        case model.DataTypeBinary(fixed_length=length):
            return pa.binary() if length is None else pa.binary(length)
        case model.DataTypeDecimal(precision=precision, scale=scale):
            return pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)
        case model.DataTypeDuration(unit=unit):
            return pa.duration(_unit(unit))
        case model.DataTypeTime(unit=unit):
            name = _unit(unit)
            return pa.time32(name) if name in ("s", "ms") else pa.time64(name)
        case model.DataTypeTimestamp(unit=unit, timezone=zone):
            return pa.timestamp(_unit(unit), zone or "UTC")
        case model.DataTypeList(item_type=item, fixed_length=length):
            field = _named("item", item)
            return pa.list_(field) if length is None else pa.list_(field, length)
        case model.DataTypeMap(key_type=key, value_type=value, keys_sorted=keys_sorted):
            return pa.map_(_named("keys", key), _named("values", value), keys_sorted=bool(keys_sorted))
        case model.DataTypeStruct(fields=fields):
            return pa.struct([_field_from_odf(field) for field in fields])
    raise UnsupportedSchema(f"{type(kind).__name__} has no Arrow type")


def _unit(unit: TimeUnit | None) -> str:
    return _UNITS[unit or TimeUnit.Millisecond]
