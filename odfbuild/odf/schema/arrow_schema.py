"""Arrow schemas and their ODF form.

`SetDataSchema` holds a raw Arrow schema up to protocol 0.36 (see `arrow_raw`), and from 0.37 an ODF
schema, in which attributes may say how Arrow lays values out. Sources: ODF RFC-016; reference
behaviour, "ODF schema".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from odfbuild.errors import IntegrityError
from odfbuild.odf.extra import extra_problem
from odfbuild.odf.model import (
    DataField,
    DataSchema,
    DataType,
    DataTypeBinary,
    DataTypeBool,
    DataTypeDate,
    DataTypeDecimal,
    DataTypeDuration,
    DataTypeFloat16,
    DataTypeFloat32,
    DataTypeFloat64,
    DataTypeInt8,
    DataTypeInt16,
    DataTypeInt32,
    DataTypeInt64,
    DataTypeList,
    DataTypeMap,
    DataTypeNull,
    DataTypeOption,
    DataTypeString,
    DataTypeStruct,
    DataTypeTime,
    DataTypeTimestamp,
    DataTypeUInt8,
    DataTypeUInt16,
    DataTypeUInt32,
    DataTypeUInt64,
    SetDataSchema,
    TimeUnit,
)
from odfbuild.odf.schema.arrow_encoding import (
    BUFFER,
    DATE,
    DECIMAL,
    InvalidAttributeError,
    encoding_of,
)
from odfbuild.odf.schema.arrow_raw import UnsupportedSchemaError, from_raw, to_raw

_UNITS = {
    "s": TimeUnit.Second,
    "ms": TimeUnit.Millisecond,
    "us": TimeUnit.Microsecond,
    "ns": TimeUnit.Nanosecond,
}
_UNIT_NAMES = {unit: name for name, unit in _UNITS.items()}


__all__ = [
    "InvalidAttributeError",
    "Layouts",
    "UnsupportedSchemaError",
    "encoding_of",
    "from_odf",
    "from_raw",
    "schema_of",
    "to_odf",
    "to_raw",
]


def schema_of(event: SetDataSchema) -> pa.Schema:
    """The Arrow schema that an event sets, in whichever form it stands there.

    `IntegrityError` E0806 when there is none that can be read.
    """
    if event.schema is not None:
        return from_odf(event.schema)
    try:
        return from_raw(event.raw_arrow_schema or b"")
    except ValueError as error:
        raise IntegrityError(
            "the schema in a chain cannot be read",
            code="E0806",
            notes=(str(error),),
            help="`odfbuild verify` names the dataset and the block",
        ) from None


# --- ODF form ---

_PLAIN: tuple[tuple[pa.DataType, type], ...] = (
    (pa.null(), DataTypeNull),
    (pa.bool_(), DataTypeBool),
    (pa.float16(), DataTypeFloat16),
    (pa.float32(), DataTypeFloat32),
    (pa.float64(), DataTypeFloat64),
    (pa.int8(), DataTypeInt8),
    (pa.int16(), DataTypeInt16),
    (pa.int32(), DataTypeInt32),
    (pa.int64(), DataTypeInt64),
    (pa.uint8(), DataTypeUInt8),
    (pa.uint16(), DataTypeUInt16),
    (pa.uint32(), DataTypeUInt32),
    (pa.uint64(), DataTypeUInt64),
)
_TO_PLAIN = dict(_PLAIN)
_FROM_PLAIN = {odf: arrow for arrow, odf in _PLAIN}


def to_odf(schema: pa.Schema) -> DataSchema:
    """The ODF form; attributes keep how Arrow lays values out (`strip_encoding` drops them).

    `UnsupportedSchemaError` names a column of a type that ODF has not.
    """
    fields = tuple(_odf_field(field) for field in schema)
    return DataSchema(fields=fields, extra=_to_extra(schema.metadata) or None)


def _odf_field(field: pa.Field) -> DataField:
    try:
        kind, encoding = _odf_type(field.type)
    except UnsupportedSchemaError as error:
        raise UnsupportedSchemaError(f"column '{field.name}': {error}") from None
    extra = {**_to_extra(field.metadata), **encoding}
    return DataField(name=field.name, type=_optional(kind, field.nullable), extra=extra or None)


def _optional(kind: DataType, nullable: bool) -> DataType:
    return DataTypeOption(inner=kind) if nullable else kind


def _to_extra(metadata: Mapping[bytes, bytes] | None) -> dict[str, Any]:
    """Attributes from Arrow metadata, where values are text: JSON objects and lists, or strings."""
    extra: dict[str, Any] = {}
    for key, value in (metadata or {}).items():
        try:
            name, text = key.decode(), value.decode()
        except UnicodeDecodeError:
            continue  # attributes are text
        # What Parquet readers and Spark add says where a column came from, not what it is.
        if name.startswith(("PARQUET:", "org.apache.spark")) or name == "ARROW:schema":
            continue
        extra[name] = _attribute(text)
    return extra


def _attribute(text: str) -> Any:
    """The JSON object or list in `text`, where it is one that attributes may hold; else `text`."""
    if text[:1] not in ("{", "["):
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if extra_problem({"attribute": value}) is None else text


def _to_metadata(extra: Mapping[str, Any] | None) -> dict[str, str] | None:
    metadata = {
        key: value if isinstance(value, str) else json.dumps(value, sort_keys=True)
        for key, value in (extra or {}).items()
        if key not in (BUFFER, DATE, DECIMAL)
    }
    return metadata or None


def _buffer(kind: str, bits: int) -> dict[str, Any]:
    return {BUFFER: {"kind": kind, "offsetBitWidth": bits}}


def _odf_type(  # noqa: PLR0912 - one line a type reads best
    kind: pa.DataType,
) -> tuple[DataType, dict[str, Any]]:
    """The ODF type and the attributes that say how Arrow lays it out."""
    t = pa.types
    if kind in _TO_PLAIN:
        return _TO_PLAIN[kind](), {}
    if t.is_string(kind) or t.is_large_string(kind):
        return DataTypeString(), _buffer("Contiguous", 64 if t.is_large_string(kind) else 32)
    if t.is_string_view(kind):
        return DataTypeString(), _buffer("View", 32)
    if t.is_fixed_size_binary(kind):
        return DataTypeBinary(fixed_length=kind.byte_width), {}
    if t.is_binary(kind) or t.is_large_binary(kind):
        return DataTypeBinary(), _buffer("Contiguous", 64 if t.is_large_binary(kind) else 32)
    if t.is_binary_view(kind):
        return DataTypeBinary(), _buffer("View", 32)
    if t.is_date(kind):
        return DataTypeDate(), {DATE: {"unit": "Millisecond"}} if t.is_date64(kind) else {}
    if t.is_decimal(kind):
        decimal = DataTypeDecimal(precision=kind.precision, scale=kind.scale)
        return decimal, {DECIMAL: {"bitWidth": kind.bit_width}}
    if t.is_timestamp(kind):
        return DataTypeTimestamp(unit=_UNITS[kind.unit], timezone=kind.tz), {}
    if t.is_time(kind):
        return DataTypeTime(unit=_UNITS[kind.unit]), {}
    if t.is_duration(kind):
        return DataTypeDuration(unit=_UNITS[kind.unit]), {}
    if t.is_map(kind):
        key, _ = _odf_type(kind.key_type)
        value, _ = _odf_type(kind.item_type)
        value = _optional(value, kind.item_field.nullable)
        return DataTypeMap(key_type=key, value_type=value, keys_sorted=kind.keys_sorted), {}
    if t.is_struct(kind):
        return DataTypeStruct(fields=tuple(_odf_field(member) for member in kind)), {}
    return _odf_list(kind)


def _odf_list(kind: pa.DataType) -> tuple[DataType, dict[str, Any]]:
    t = pa.types
    encodings: tuple[tuple[Callable[[pa.DataType], bool], dict[str, Any]], ...] = (
        (t.is_list, _buffer("Contiguous", 32)),
        (t.is_large_list, _buffer("Contiguous", 64)),
        (t.is_list_view, _buffer("View", 32)),
        (t.is_large_list_view, _buffer("View", 64)),
        (t.is_fixed_size_list, {}),
    )
    for matches, encoding in encodings:
        if matches(kind):
            # How items are laid out is not recorded: only columns and members have attributes.
            item, _ = _odf_type(kind.value_type)
            length = kind.list_size if t.is_fixed_size_list(kind) else None
            item = _optional(item, kind.value_field.nullable)
            return DataTypeList(item_type=item, fixed_length=length), encoding
    raise UnsupportedSchemaError(f"{kind} is not supported")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layouts:
    """How Arrow lays out values whose field does not say, as `bufferEncoding` would say it."""

    string: Mapping[str, Any] | None = None
    binary: Mapping[str, Any] | None = None
    list: Mapping[str, Any] | None = None


_DEFAULT = Layouts()


def from_odf(schema: DataSchema, layouts: Layouts = _DEFAULT) -> pa.Schema:
    """The Arrow form; encoding attributes are applied, other ones become field metadata.

    `UnsupportedSchemaError` names a column that Arrow cannot hold, `InvalidAttributeError` a
    malformed encoding.
    """
    fields = [_arrow_field(field, layouts) for field in schema.fields]
    return pa.schema(fields, metadata=_to_metadata(schema.extra))


def _arrow_field(field: DataField, layouts: Layouts) -> pa.Field:
    try:
        kind, nullable = _unwrap(field.type)
        arrow = _arrow_type(kind, encoding_of(field.extra) or {}, layouts)
    except UnsupportedSchemaError as error:
        raise UnsupportedSchemaError(f"column '{field.name}': {error}") from None
    except (ValueError, OverflowError) as error:  # lengths and keys that Arrow has not
        raise UnsupportedSchemaError(f"column '{field.name}': {error}") from None
    return pa.field(field.name, arrow, nullable=nullable, metadata=_to_metadata(field.extra))


def _unwrap(kind: DataType) -> tuple[DataType, bool]:
    if not isinstance(kind, DataTypeOption):
        # Arrow has no required column of nulls.
        return kind, isinstance(kind, DataTypeNull)
    if isinstance(kind.inner, DataTypeOption):
        raise UnsupportedSchemaError("an Option within an Option")
    return kind.inner, True


def _arrow_type(  # noqa: PLR0912 - one case a type reads best
    kind: DataType, encoding: Mapping[str, Any], layouts: Layouts
) -> pa.DataType:
    match kind:
        case DataTypeString():
            return _buffered(
                encoding.get(BUFFER) or layouts.string,
                (pa.string(), pa.large_string(), pa.string_view(), None),
            )
        case DataTypeBinary(fixed_length=None):
            return _buffered(
                encoding.get(BUFFER) or layouts.binary,
                (pa.binary(), pa.large_binary(), pa.binary_view(), None),
            )
        case DataTypeBinary():
            return pa.binary(kind.fixed_length)
        case DataTypeDate():
            unit = encoding.get(DATE, {}).get("unit", "Day")
            return pa.date64() if unit == "Millisecond" else pa.date32()
        case DataTypeDecimal():
            return _arrow_decimal(kind, encoding.get(DECIMAL, {}).get("bitWidth"))
        case DataTypeTimestamp():
            return pa.timestamp(_unit(kind.unit), kind.timezone or "UTC")
        case DataTypeTime():
            unit = _unit(kind.unit)
            return pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)
        case DataTypeDuration():
            return pa.duration(_unit(kind.unit))
        case DataTypeStruct():
            return pa.struct([_arrow_field(member, layouts) for member in kind.fields])
        case DataTypeMap():
            key = pa.field("keys", _arrow_type(kind.key_type, {}, layouts), nullable=False)
            inner, nullable = _unwrap(kind.value_type)
            value = pa.field("values", _arrow_type(inner, {}, layouts), nullable=nullable)
            return pa.map_(key, value, keys_sorted=bool(kind.keys_sorted))
        case DataTypeList():
            inner, nullable = _unwrap(kind.item_type)
            item = pa.field("item", _arrow_type(inner, {}, layouts), nullable=nullable)
            if kind.fixed_length is not None:
                return pa.list_(item, kind.fixed_length)
            return _buffered(
                encoding.get(BUFFER) or layouts.list,
                (
                    pa.list_(item),
                    pa.large_list(item),
                    pa.list_view(item),
                    pa.large_list_view(item),
                ),
            )
        case DataTypeOption():
            raise UnsupportedSchemaError("an Option within an Option")
    return _FROM_PLAIN[type(kind)]


def _unit(unit: TimeUnit | None) -> str:
    return _UNIT_NAMES[unit or TimeUnit.Millisecond]


def _arrow_decimal(kind: DataTypeDecimal, bits: int | None) -> pa.DataType:
    if bits is None:
        bits = 128 if kind.precision <= 38 else 256
    makers: dict[int, tuple[int, Callable[[int, int], pa.DataType]]] = {
        32: (9, pa.decimal32),
        64: (18, pa.decimal64),
        128: (38, pa.decimal128),
        256: (76, pa.decimal256),
    }
    most, make = makers.get(bits, (0, pa.decimal128))
    if not 1 <= kind.precision <= most:
        raise UnsupportedSchemaError(f"a decimal of {kind.precision} digits in {bits} bits")
    return make(kind.precision, kind.scale)


def _buffered(
    encoding: Mapping[str, Any] | None, choices: tuple[pa.DataType | None, ...]
) -> pa.DataType:
    """Of contiguous 32, contiguous 64, view 32 and view 64 the one that the encoding asks for."""
    if not encoding:
        return choices[0]
    kind, bits = encoding["kind"], encoding.get("offsetBitWidth") or 32
    places = {("Contiguous", 32): 0, ("Contiguous", 64): 1, ("View", 32): 2, ("View", 64): 3}
    place = places.get((kind, bits))
    chosen = None if place is None else choices[place]
    if chosen is None:
        raise UnsupportedSchemaError(f"the encoding {kind} with offsets of {bits} bits")
    return chosen
