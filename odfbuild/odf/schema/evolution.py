"""How the schema of a dataset grows: optional columns may be added, nothing else changes.

Works on the Arrow schemas of data slices, and writes the result in the form (Arrow or ODF) that the
chain uses. Pure. Source: Open Data Fabric, "Schema Evolution".
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from odfbuild.odf.model import DataSchema, SetDataSchema
from odfbuild.odf.schema.compare import incompatibilities

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Growth:
    """What becomes of a schema: `added` columns, or the `problems` that make the change breaking.

    `schema` has the columns in the order of the new records; it is the committed one when nothing
    is added. `broken` are the committed columns that would be missing or of another type.
    """

    schema: pa.Schema
    added: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()


def grow(committed: pa.Schema, new: pa.Schema) -> Growth:
    """Let records with schema `new` join a dataset with the schema `committed`.

    Records that exist have no value in an added column, so it must be optional.
    """
    added = tuple(name for name in new.names if name not in committed.names)
    problems = incompatibilities(committed, _without(new, added))
    problems += [
        f"column '{name}' is new and required, and older records have no value in it"
        for name in added
        if not new.field(name).nullable
    ]
    if problems:
        broken = tuple(name for name in committed.names if _is_broken(name, committed, new))
        return Growth(committed, added, tuple(problems), broken)
    if not added:
        return Growth(committed)
    fields = [new.field(n) if n in added else committed.field(n) for n in new.names]
    import pyarrow as pa

    return Growth(pa.schema(fields, committed.metadata), added)


def required_as(schema: pa.Schema, committed: pa.Schema) -> pa.Schema:
    """`schema` with all that required which `committed` requires, in columns, members and items.

    A source or a query seldom knows that there are no nulls; the writer refuses those it meets.
    """
    import pyarrow as pa

    fields = [
        _required_as(field, committed.field(field.name)) if field.name in committed.names else field
        for field in schema
    ]
    return pa.schema(fields, schema.metadata)


def described_as(schema: pa.Schema, other: pa.Schema) -> pa.Schema:
    """`schema` with the attributes of `other`, in columns, members and items that both have."""
    import pyarrow as pa

    fields = [
        _described_as(field, other.field(field.name)) if field.name in other.names else field
        for field in schema
    ]
    return pa.schema(fields, other.metadata or schema.metadata)


def _described_as(new: pa.Field, old: pa.Field) -> pa.Field:
    import pyarrow as pa

    t, kind = pa.types, new.type
    if t.is_list(kind) and _is_any_list(old.type):
        kind = pa.list_(_described_as(kind.value_field, old.type.value_field))
    elif t.is_struct(kind) and t.is_struct(old.type):
        kind = pa.struct(
            [
                _described_as(member, old.type.field(member.name))
                if old.type.get_field_index(member.name) >= 0
                else member
                for member in kind
            ]
        )
    return new.with_type(kind).with_metadata(old.metadata)


def _required_as(new: pa.Field, old: pa.Field) -> pa.Field:
    kind = _parts_required_as(new.type, old.type)
    return new.with_type(kind).with_nullable(new.nullable and old.nullable)


def _parts_required_as(new: pa.DataType, old: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    t = pa.types
    for is_kind, make in ((t.is_list, pa.list_), (t.is_large_list, pa.large_list)):
        if is_kind(new) and _is_any_list(old):
            return make(_required_as(new.value_field, old.value_field))
    if t.is_struct(new) and t.is_struct(old):
        return pa.struct(
            [
                _required_as(member, old.field(member.name))
                if old.get_field_index(member.name) >= 0
                else member
                for member in new
            ]
        )
    if t.is_map(new) and t.is_map(old):
        value = _required_as(new.item_field, old.item_field)
        return pa.map_(new.key_field, value, keys_sorted=new.keys_sorted)
    return new


def _is_any_list(kind: pa.DataType) -> bool:
    import pyarrow as pa

    t = pa.types
    return bool(t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind))


def grown_event(committed: SetDataSchema, growth: Growth) -> SetDataSchema:
    """The event that commits a schema that grew, in the form of the one before."""
    from odfbuild.odf.schema.arrow_schema import to_odf, to_raw

    if committed.schema is None:
        return SetDataSchema(raw_arrow_schema=to_raw(growth.schema))
    known = {field.name: field for field in committed.schema.fields}
    fields = to_odf(growth.schema).fields
    return SetDataSchema(
        schema=DataSchema(
            fields=tuple(known.get(field.name, field) for field in fields),
            extra=committed.schema.extra,
        )
    )


def _is_broken(name: str, committed: pa.Schema, new: pa.Schema) -> bool:
    import pyarrow as pa

    if name not in new.names:
        return True
    old, now = (pa.schema([schema.field(name)]) for schema in (committed, new))
    return bool(incompatibilities(old, now))


def _without(schema: pa.Schema, names: Collection[str]) -> pa.Schema:
    import pyarrow as pa

    return pa.schema([field for field in schema if field.name not in names], schema.metadata)
