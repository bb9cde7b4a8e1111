"""Arrow schemas as DDL text, for tests that go there and back."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def to_ddl(schema: pa.Schema) -> list[str]:
    """Declarations that `parse_ddl` reads as `schema`; `ValueError` for types without DDL."""
    return [_column(field) for field in schema]


def _column(field: pa.Field) -> str:
    return f"{_quoted(field.name)} {_type_text(field.type)}" + _requirement(field)


def _requirement(field: pa.Field) -> str:
    return "" if field.nullable else " NOT NULL"


def _quoted(name: str) -> str:
    if re.fullmatch(r"[^\W\d][\w$]*", name):
        return name
    return '"' + name.replace('"', '""') + '"'


def _type_text(kind: pa.DataType) -> str:
    from pyarrow import types as t

    if t.is_boolean(kind):
        return "BOOLEAN"
    if t.is_integer(kind):
        name = {8: "TINYINT", 16: "SMALLINT", 32: "INT", 64: "BIGINT"}[kind.bit_width]
        return name if t.is_signed_integer(kind) else f"{name} UNSIGNED"
    if t.is_float32(kind) or t.is_float64(kind):
        return "FLOAT" if t.is_float32(kind) else "DOUBLE"
    if t.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if t.is_date32(kind):
        return "DATE"
    if t.is_time(kind) or (t.is_timestamp(kind) and kind.tz == "UTC"):
        digits = {"s": 0, "ms": 3, "us": 6, "ns": 9}[kind.unit]
        return f"{'TIME' if t.is_time(kind) else 'TIMESTAMP'}({digits})"
    if t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind):
        return "STRING"
    if t.is_binary(kind) or t.is_large_binary(kind) or t.is_binary_view(kind):
        return "BINARY"
    if t.is_list(kind) or t.is_large_list(kind):
        item = kind.value_field
        return f"ARRAY<{_type_text(item.type)}{_requirement(item)}>"
    if t.is_map(kind):
        value = kind.item_field
        return f"MAP<{_type_text(kind.key_type)}, {_type_text(value.type)}{_requirement(value)}>"
    if t.is_struct(kind):
        members = (f"{_quoted(m.name)}: {_type_text(m.type)}{_requirement(m)}" for m in kind)
        return f"STRUCT<{', '.join(members)}>"
    raise ValueError(f"{kind} has no DDL")
