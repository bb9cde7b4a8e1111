"""Required members of structs and items of lists, in Arrow arrays.

Where a struct or a list is null, Arrow still keeps values of its parts, and engines write nulls
there. Arrow's casts and its Parquet writer do not take such parts for required ones; the
functions here do.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def missing_in(values: pa.Array, field: pa.Field, name: str) -> tuple[str, int] | None:
    """The first of a column and its parts that `field` requires and that is null, and how often.

    Parts of what is null itself are not missing.
    """
    if not field.nullable and values.null_count:
        return name, values.null_count
    kind = field.type
    if not pa.types.is_nested(kind):
        return None
    present = values.drop_null()
    if pa.types.is_struct(kind):
        parts = [(present.field(member.name), member, f"{name}.{member.name}") for member in kind]
    elif pa.types.is_map(kind):
        parts = [(_entries(present).field(1), kind.item_field, f"{name}[]")]
    else:
        parts = [(pc.list_flatten(present), kind.value_field, f"{name}[]")]
    return next(filter(None, (missing_in(*part) for part in parts)), None)


def all_optional(kind: pa.DataType) -> pa.DataType:
    """`kind` with members and items that may be null."""
    t = pa.types
    if t.is_struct(kind):
        return pa.struct([_optional(member) for member in kind])
    if t.is_map(kind):
        return pa.map_(kind.key_field, _optional(kind.item_field), kind.keys_sorted)
    if t.is_fixed_size_list(kind):
        return pa.list_(_optional(kind.value_field), kind.list_size)
    if t.is_list(kind):
        return pa.list_(_optional(kind.value_field))
    if t.is_large_list(kind):
        return pa.large_list(_optional(kind.value_field))
    return kind


def _optional(field: pa.Field) -> pa.Field:
    return field.with_type(all_optional(field.type)).with_nullable(True)


def as_required(values: pa.Array, field: pa.Field) -> pa.Array:
    """`values` as `field` says, which are of `all_optional(field.type)` and miss nothing."""
    kind = field.type
    mask = values.is_null() if field.nullable and values.null_count else None
    if pa.types.is_struct(kind):
        members = [as_required(values.field(at), member) for at, member in enumerate(kind)]
        if not members:
            return values
        return pa.StructArray.from_arrays(members, fields=list(kind), mask=mask)
    if pa.types.is_fixed_size_list(kind):
        first, size = values.offset, kind.list_size
        items = as_required(
            values.values[first * size : (first + len(values)) * size], kind.field(0)
        )
        return pa.FixedSizeListArray.from_arrays(items, type=kind, mask=mask)
    if pa.types.is_map(kind):
        entries = _entries(values)
        parts = (entries.field(0), as_required(entries.field(1), kind.item_field))
        return pa.MapArray.from_arrays(_offsets(values, pa.int32()), *parts, type=kind, mask=mask)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        make, number = (
            (pa.ListArray, pa.int32())
            if pa.types.is_list(kind)
            else (pa.LargeListArray, pa.int64())
        )
        items = as_required(pc.list_flatten(values), kind.value_field)
        return make.from_arrays(_offsets(values, number), items, type=kind, mask=mask)
    if field.nullable or not values.null_count:
        return values
    # Whatever stands below a null is a value as good as any.
    buffers = [None, *values.buffers()[1:]]
    return pa.Array.from_buffers(kind, len(values), buffers, offset=values.offset)


def _entries(values: pa.MapArray) -> pa.StructArray:
    """Keys and values of all maps that are not null."""
    kind = values.type
    entry = pa.struct([pa.field("key", kind.key_type), pa.field("value", kind.item_type)])
    return pc.list_flatten(values.cast(pa.list_(entry)))


def _offsets(values: pa.Array, number: pa.DataType) -> pa.Array:
    """Where each list would begin if those that are null had no items, and where the last ends."""
    as_list = values
    if pa.types.is_map(values.type):
        as_list = values.cast(pa.list_(pa.struct([values.type.key_field, values.type.item_field])))
    lengths = pc.fill_null(pc.list_value_length(as_list), 0).cast(number)
    return pa.concat_arrays([pa.array([0], number), pc.cumulative_sum(lengths)])
