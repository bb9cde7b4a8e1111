"""How the schema of a dataset grows: optional columns may be added, nothing else changes.

Works on the Arrow schemas of data slices, and writes the result in the form (Arrow or ODF) that the
chain uses. Pure. Source: Open Data Fabric, "Schema Evolution".
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from odfbuild.odf.model import DataSchema, SetDataSchema
from odfbuild.odf.schema import arrow
from odfbuild.odf.schema.arrow_form import odf_form
from odfbuild.odf.schema.arrow_raw import write_raw
from odfbuild.odf.schema.compare import incompatibilities
from odfbuild.values import Value


class SchemaGrowth(Value):
    """What becomes of a schema: `added` columns, or the `problems` that make the change breaking.

    `schema` has the columns in the order of the new records; it is the committed one when nothing
    is added. `broken` are the committed columns that would be missing or of another type.
    """

    schema: arrow.Schema
    added: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()


def grow(committed: arrow.Schema, new: arrow.Schema) -> SchemaGrowth:
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
        return SchemaGrowth(committed, added, tuple(problems), broken)
    if not added:
        return SchemaGrowth(committed)
    fields = [new.field(n) if n in added else committed.field(n) for n in new.names]
    return SchemaGrowth(arrow.schema(fields, committed.metadata), added)


def required_as(schema: arrow.Schema, committed: arrow.Schema) -> arrow.Schema:
    """`schema` with all that required which `committed` requires, in columns, members and items.

    A source or a query seldom knows that there are no nulls; the writer refuses those it meets.
    Times get the unit of those that are committed, and UUIDs their form (text, or not), which the
    writer gives them.
    """
    fields = [
        _required_as(field, committed.field(field.name)) if field.name in committed.names else field
        for field in schema
    ]
    return arrow.schema(fields, schema.metadata)


def described_as(schema: arrow.Schema, other: arrow.Schema) -> arrow.Schema:
    """`schema` with the attributes of `other`, in columns, members and items that both have."""
    fields = [
        _described_as(field, other.field(field.name)) if field.name in other.names else field
        for field in schema
    ]
    return arrow.schema(fields, other.metadata or schema.metadata)


def _described_as(new: arrow.Field, old: arrow.Field) -> arrow.Field:
    both = zip(new.type.fields, _counterparts(new.type, old.type), strict=True)
    inner = tuple(_described_as(one, other) if other else one for one, other in both)
    kind = replace(new.type, fields=inner)
    return replace(new, type=kind, metadata=old.metadata)


def _required_as(new: arrow.Field, old: arrow.Field) -> arrow.Field:
    both = zip(new.type.fields, _counterparts(new.type, old.type), strict=True)
    inner = tuple(_required_as(one, other) if other else one for one, other in both)
    kind = replace(new.type, fields=inner)
    if new.type.name == old.type.name == "timestamp":
        kind = replace(kind, unit=old.type.unit)
    texts = [each.type.name in arrow.TEXTS for each in (new, old)]
    if (new.is_uuid or texts[0]) and (old.is_uuid or texts[1]) and any((new.is_uuid, old.is_uuid)):
        kind = old.type
    return replace(new, type=kind, nullable=new.nullable and old.nullable)


def _counterparts(new: arrow.Type, old: arrow.Type) -> list[arrow.Field | None]:
    """For each part of a type the part of `old` that is the same member, item or value."""
    if new.name in _SEQUENCES and old.name in _SEQUENCES:
        return [old.item]
    if new.name == old.name == "map":
        return [None, old.fields[1]]
    if new.name == old.name == "struct":
        members = {each.name: each for each in old.fields}
        return [members.get(each.name) for each in new.fields]
    return [None] * len(new.fields)


_SEQUENCES = (*arrow.LISTS, "fixed_size_list")


def grown_event(committed: SetDataSchema, growth: SchemaGrowth) -> SetDataSchema:
    """The event that commits a schema that grew, in the form of the one before."""

    if committed.schema is None:
        return SetDataSchema(raw_arrow_schema=write_raw(growth.schema))
    known = {field.name: field for field in committed.schema.fields}
    fields = odf_form(growth.schema).fields
    return SetDataSchema(
        schema=DataSchema(
            fields=tuple(known.get(field.name, field) for field in fields),
            extra=committed.schema.extra,
        )
    )


def _is_broken(name: str, committed: arrow.Schema, new: arrow.Schema) -> bool:
    if name not in new.names:
        return True
    old, now = (arrow.schema([schema.field(name)]) for schema in (committed, new))
    return bool(incompatibilities(old, now))


def _without(schema: arrow.Schema, names: Collection[str]) -> arrow.Schema:
    return arrow.schema([field for field in schema if field.name not in names], schema.metadata)
