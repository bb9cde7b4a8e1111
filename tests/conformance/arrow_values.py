"""Arrow types and arrays from their spelling in the vectors."""

import re
from typing import Any

import numpy as np
import pyarrow as pa

_NAMED = {
    "utf8": pa.string(),
    "large_utf8": pa.large_string(),
    "utf8_view": pa.string_view(),
    "bool": pa.bool_(),
    "interval": pa.month_day_nano_interval(),
}


def type_of(spec: Any) -> pa.DataType:
    if isinstance(spec, dict):
        (name, inner), *_ = spec.items()
        match name:
            case "struct":
                return pa.struct([field_of(member) for member in inner])
            case "map":
                return pa.map_(type_of(inner[0]), type_of(inner[1]))
            case "dictionary":
                return pa.dictionary(type_of(inner[0]), type_of(inner[1]))
            case "fixed_size_list":
                size = spec.get("size") or inner[1]
                return pa.list_(type_of(inner[0] if isinstance(inner, list) else inner), size)
        make = {
            "list": pa.list_,
            "large_list": pa.large_list,
            "list_view": pa.list_view,
            "large_list_view": pa.large_list_view,
        }[name]
        return make(type_of(inner))
    if spec in _NAMED:
        return _NAMED[spec]
    match = re.fullmatch(r"(\w+)[(\[](.*)[)\]]", spec)
    if match is None:
        return getattr(pa, spec)()
    name, arguments = match[1], [part.strip() for part in match[2].split(",")]
    if name == "fixed_size_binary":
        return pa.binary(int(arguments[0]))
    if name.startswith("decimal"):
        return getattr(pa, name)(*(int(part) for part in arguments))
    return getattr(pa, name)(*arguments)


def field_of(spec: dict[str, Any]) -> pa.Field:
    return pa.field(spec["name"], type_of(spec["type"]), nullable=spec.get("nullable", True))


def array_of(values: Any, kind: pa.DataType) -> pa.Array:
    if isinstance(values, dict):
        return _exact(values, kind)
    if pa.types.is_map(kind):
        pairs = [value and [tuple(pair) for pair in value] for value in values]
        return pa.array(pairs, kind)
    return pa.array([_value(value, kind) for value in values], _physical(kind)).cast(kind)


def _physical(kind: pa.DataType) -> pa.DataType:
    t = pa.types
    if t.is_temporal(kind):
        return pa.int32() if kind.bit_width == 32 else pa.int64()
    return kind


def _value(value: Any, kind: pa.DataType) -> Any:
    t = pa.types
    if value is None:
        return None
    if t.is_decimal(kind):
        from decimal import Decimal

        return Decimal(value)
    if t.is_binary(kind) or t.is_large_binary(kind) or t.is_fixed_size_binary(kind):
        return bytes.fromhex(value)
    if t.is_binary_view(kind):
        return bytes.fromhex(value)
    if t.is_float16(kind):
        return np.float16(value)
    if t.is_floating(kind):
        return float(value)
    if t.is_struct(kind):
        return {m.name: _value(value.get(m.name), m.type) for m in kind}
    return value


def _exact(spec: dict[str, Any], kind: pa.DataType) -> pa.Array:
    """The given buffers, also what lies under null slots."""
    if "data_bits_hex" in spec:
        bits = pa.py_buffer(bytes.fromhex(spec["data_bits_hex"]))
        return pa.Array.from_buffers(kind, spec["length"], [None, bits])
    validity = spec.get("validity")
    mask = None
    # The digests were made through Arrow IPC, which drops a bitmap that marks no null.
    if validity is not None and not all(validity):
        mask = pa.array([bool(bit) for bit in validity]).buffers()[1]
    if "children" in spec:
        pairs = zip(spec["children"], kind, strict=True)
        children = [array_of(child, member.type) for child, member in pairs]
        return pa.Array.from_buffers(kind, len(children[0]), [mask], children=children)
    plain = array_of(spec["values"], kind)
    return pa.Array.from_buffers(kind, len(plain), [mask, *plain.buffers()[1:]])
