"""The ODF form of Arrow schemas.

`SetDataSchema` holds a raw Arrow schema up to protocol 0.36 (see `arrow_raw`), and from 0.37 an ODF
schema, in which attributes may say how Arrow lays values out. Sources: ODF RFC-016; reference
behaviour, "ODF schema".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from odfbuild.errors import IntegrityError
from odfbuild.odf.extra_attributes import extra_problem
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
from odfbuild.odf.schema import arrow
from odfbuild.odf.schema.arrow_encoding import (
    BUFFER,
    DATE,
    DECIMAL,
    IN_BUFFERS,
    encoding_of,
)
from odfbuild.odf.schema.arrow_raw import UnsupportedSchemaError, read_raw
from odfbuild.values import Value

_UNITS = {
    "s": TimeUnit.Second,
    "ms": TimeUnit.Millisecond,
    "us": TimeUnit.Microsecond,
    "ns": TimeUnit.Nanosecond,
}
_UNIT_NAMES = {unit: name for name, unit in _UNITS.items()}


def read_schema(event: SetDataSchema) -> arrow.Schema:
    """The Arrow schema that an event sets, in whichever form it stands there.

    `IntegrityError` E0806 when there is none that can be read.
    """
    if event.schema is not None:
        return arrow_form(event.schema)
    try:
        return read_raw(event.raw_arrow_schema or b"")
    except ValueError as error:
        raise IntegrityError(
            "the schema in a chain cannot be read",
            code="E0806",
            notes=(str(error),),
            help="`odfbuild verify` names the dataset and the block",
        ) from None


# --- ODF form ---

_FROM_PLAIN: dict[Any, arrow.Type] = {
    DataTypeNull: arrow.Type("null"),
    DataTypeBool: arrow.Type("bool"),
    DataTypeFloat16: arrow.Type("float16"),
    DataTypeFloat32: arrow.Type("float32"),
    DataTypeFloat64: arrow.Type("float64"),
    DataTypeInt8: arrow.Type("int8"),
    DataTypeInt16: arrow.Type("int16"),
    DataTypeInt32: arrow.Type("int32"),
    DataTypeInt64: arrow.Type("int64"),
    DataTypeUInt8: arrow.Type("uint8"),
    DataTypeUInt16: arrow.Type("uint16"),
    DataTypeUInt32: arrow.Type("uint32"),
    DataTypeUInt64: arrow.Type("uint64"),
}
_TO_PLAIN = {kind.name: odf for odf, kind in _FROM_PLAIN.items()}
_BUFFERS = (("Contiguous", 32), ("Contiguous", 64), ("View", 32), ("View", 64))
"""The encodings that `arrow.TEXTS`, `BYTES` and `LISTS` stand for, in their order."""


def odf_form(schema: arrow.Schema) -> DataSchema:
    """The ODF form; attributes keep how Arrow lays values out (`strip_encoding` drops them).

    `UnsupportedSchemaError` names a column of a type that ODF has not.
    """
    fields = tuple(_odf_field(field) for field in schema)
    return DataSchema(fields=fields, extra=_to_extra(schema.metadata) or None)


def _odf_field(field: arrow.Field) -> DataField:
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


def _to_metadata(extra: Mapping[str, Any] | None) -> dict[bytes, bytes] | None:
    metadata = {
        key.encode(): _text(value).encode()
        for key, value in (extra or {}).items()
        if key not in (BUFFER, DATE, DECIMAL)
    }
    return metadata or None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _buffer(place: int) -> dict[str, Any]:
    kind, bits = _BUFFERS[place]
    return {BUFFER: {"kind": kind, "offsetBitWidth": bits}}


def _odf_type(  # noqa: PLR0912 - one line a type reads best
    kind: arrow.Type,
) -> tuple[DataType, dict[str, Any]]:
    """The ODF type and the attributes that say how Arrow lays it out."""
    name = kind.name
    match name:
        case "fixed_size_binary":
            return DataTypeBinary(fixed_length=kind.size), {}
        case "date32":
            return DataTypeDate(), {}
        case "date64":
            return DataTypeDate(), {DATE: {"unit": "Millisecond"}}
        case "timestamp":
            return DataTypeTimestamp(unit=_UNITS[str(kind.unit)], timezone=kind.zone), {}
        case "duration":
            return DataTypeDuration(unit=_UNITS[str(kind.unit)]), {}
        case "map":
            key, _ = _odf_type(kind.fields[0].type)
            value = _odf_item(kind.fields[1])
            return DataTypeMap(key_type=key, value_type=value, keys_sorted=kind.sorted), {}
        case "struct":
            return DataTypeStruct(fields=tuple(_odf_field(each) for each in kind.fields)), {}
        case "fixed_size_list":
            return DataTypeList(item_type=_odf_item(kind.item), fixed_length=kind.size), {}
    if name in _TO_PLAIN:
        return _TO_PLAIN[name](), {}
    if name in arrow.TEXTS:
        return DataTypeString(), _buffer(arrow.TEXTS.index(name))
    if name in arrow.BYTES:
        return DataTypeBinary(), _buffer(arrow.BYTES.index(name))
    if name in arrow.LISTS:
        return DataTypeList(item_type=_odf_item(kind.item)), _buffer(arrow.LISTS.index(name))
    if name in arrow.TIMES:
        return DataTypeTime(unit=_UNITS[str(kind.unit)]), {}
    if name in arrow.DECIMALS:
        decimal = DataTypeDecimal(precision=kind.precision, scale=kind.scale)
        return decimal, {DECIMAL: {"bitWidth": kind.bits}}
    raise UnsupportedSchemaError(f"{kind} is not supported")


def _odf_item(field: arrow.Field) -> DataType:
    """What a list or map holds; only columns and members record how that is laid out."""
    kind, _ = _odf_type(field.type)
    return _optional(kind, field.nullable)


class Layouts(Value, kw_only=True):
    """How Arrow lays out values whose field does not say, as `bufferEncoding` would say it."""

    string: Mapping[str, Any] | None = None
    binary: Mapping[str, Any] | None = None
    list: Mapping[str, Any] | None = None


_DEFAULT = Layouts()


def arrow_form(schema: DataSchema, layouts: Layouts = _DEFAULT) -> arrow.Schema:
    """The Arrow form; encoding attributes are applied, other ones become field metadata.

    `UnsupportedSchemaError` names a column that Arrow cannot hold, `InvalidAttributeError` a
    malformed encoding.
    """
    fields = [_arrow_field(field, layouts) for field in schema.fields]
    return arrow.schema(fields, _to_metadata(schema.extra))


def _arrow_field(field: DataField, layouts: Layouts) -> arrow.Field:
    try:
        kind, nullable = _unwrap(field.type)
        encoding = encoding_of(field.extra) or {}
        if BUFFER in encoding and not isinstance(kind, IN_BUFFERS):
            # As in the reference: a reader that lays values out otherwise would miss them.
            raise UnsupportedSchemaError(f"{kind.KIND} has no '{BUFFER}'")
        found = _arrow_type(kind, encoding, layouts)
    except UnsupportedSchemaError as error:
        raise UnsupportedSchemaError(f"column '{field.name}': {error}") from None
    return arrow.Field(field.name, found, nullable, _to_metadata(field.extra))


def _unwrap(kind: DataType) -> tuple[DataType, bool]:
    if not isinstance(kind, DataTypeOption):
        # Arrow has no required column of nulls.
        return kind, isinstance(kind, DataTypeNull)
    if isinstance(kind.inner, DataTypeOption):
        raise UnsupportedSchemaError("an Option within an Option")
    return kind.inner, True


def _arrow_type(  # noqa: PLR0912 - one case a type reads best
    kind: DataType, encoding: Mapping[str, Any], layouts: Layouts
) -> arrow.Type:
    match kind:
        case DataTypeString():
            return arrow.Type(_laid_out(encoding.get(BUFFER) or layouts.string, arrow.TEXTS))
        case DataTypeBinary(fixed_length=None):
            return arrow.Type(_laid_out(encoding.get(BUFFER) or layouts.binary, arrow.BYTES))
        case DataTypeBinary():
            return arrow.Type("fixed_size_binary", size=_length(kind.fixed_length))
        case DataTypeDate():
            unit = encoding.get(DATE, {}).get("unit", "Day")
            return arrow.Type("date64" if unit == "Millisecond" else "date32")
        case DataTypeDecimal():
            return _arrow_decimal(kind, encoding.get(DECIMAL, {}).get("bitWidth"))
        case DataTypeTimestamp():
            return arrow.Type("timestamp", unit=_unit(kind.unit), zone=kind.timezone or "UTC")
        case DataTypeTime():
            return arrow.time(_unit(kind.unit))
        case DataTypeDuration():
            return arrow.Type("duration", unit=_unit(kind.unit))
        case DataTypeStruct():
            return arrow.struct([_arrow_field(member, layouts) for member in kind.fields])
        case DataTypeMap():
            key = _arrow_type(kind.key_type, {}, layouts)
            value, nullable = _arrow_item(kind.value_type, layouts)
            return arrow.map_of(key, value, nullable=nullable, keys_sorted=bool(kind.keys_sorted))
        case DataTypeList():
            item, nullable = _arrow_item(kind.item_type, layouts)
            if kind.fixed_length is not None:
                field = arrow.Field("item", item, nullable)
                return arrow.Type("fixed_size_list", (field,), size=_length(kind.fixed_length))
            name = _laid_out(encoding.get(BUFFER) or layouts.list, arrow.LISTS)
            return arrow.list_of(item, nullable=nullable, name=name)
        case DataTypeOption():
            raise UnsupportedSchemaError("an Option within an Option")
    return _FROM_PLAIN[type(kind)]


def _arrow_item(kind: DataType, layouts: Layouts) -> tuple[arrow.Type, bool]:
    inner, nullable = _unwrap(kind)
    return _arrow_type(inner, {}, layouts), nullable


def _length(value: int | None) -> int:
    if value is None or not 0 <= value < 1 << 31:
        raise UnsupportedSchemaError(f"a fixed length of {value}")
    return value


def _unit(unit: TimeUnit | None) -> str:
    return _UNIT_NAMES[unit or TimeUnit.Millisecond]


def _arrow_decimal(kind: DataTypeDecimal, bits: int | None) -> arrow.Type:
    if bits is None:
        bits = 128 if kind.precision <= 38 else 256
    if not 1 <= kind.precision <= arrow.MOST_DIGITS.get(bits, 0):
        raise UnsupportedSchemaError(f"a decimal of {kind.precision} digits in {bits} bits")
    return arrow.decimal(kind.precision, kind.scale, bits)


def _laid_out(encoding: Mapping[str, Any] | None, names: tuple[str, ...]) -> str:
    """Of types that differ in layout only, the name of the one that the encoding asks for."""
    if not encoding:
        return names[0]
    wanted = encoding["kind"], encoding.get("offsetBitWidth") or 32
    found = dict(zip(_BUFFERS, names, strict=False)).get(wanted)
    if found is None:
        raise UnsupportedSchemaError(f"the encoding {wanted[0]} with offsets of {wanted[1]} bits")
    return found
