"""How the schema of a dataset grows: by optional columns, and optional members of structures.

Nothing else changes: a column keeps its name, its place and the rest of its type. Works on the
Arrow schemas of data slices, and writes the result in the form (Arrow or ODF) that the chain uses.
Pure. Source: Open Data Fabric, "Schema Evolution"; reference behaviour, chain validation.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from odfbuild.odf.model import DataSchema, SetDataSchema
from odfbuild.odf.schema import arrow
from odfbuild.odf.schema.arrow_form import odf_form
from odfbuild.odf.schema.arrow_raw import write_raw
from odfbuild.odf.schema.compare import incompatibilities, strip_encoding
from odfbuild.values import Value


class SchemaGrowth(Value):
    """What becomes of a schema: `added` columns, or the `problems` that make the change breaking.

    `schema` has the columns in the order of the new records; it is the committed one when nothing
    is added. `added` names the members that join structures, too, as in `address.zip`; `grown` are
    the columns that they join. `broken` are the committed columns that would be missing or of
    another type, `wider` those whose new type would hold every value: name, committed type, new
    type.
    """

    schema: arrow.Schema
    added: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    wider: tuple[tuple[str, arrow.Type, arrow.Type], ...] = ()
    grown: tuple[str, ...] = ()


def grow(committed: arrow.Schema, new: arrow.Schema) -> SchemaGrowth:
    """Let records with schema `new` join a dataset with the schema `committed`.

    Records that exist have no value in an added column, so it must be optional.
    """
    columns = tuple(name for name in new.names if name not in committed.names)
    grown, members = _with_members(committed, new)
    problems = incompatibilities(grown, _without(new, columns))
    problems += [
        f"column '{name}' is new and required, and older records have no value in it"
        for name, field in (*((n, new.field(n)) for n in columns), *members)
        if not field.nullable
    ]
    added = (*columns, *(path for path, _ in members))
    if problems:
        broken = tuple(name for name in committed.names if _is_broken(name, grown, new))
        kinds = [(n, committed.field(n).type, new.field(n).type) for n in broken if n in new.names]
        wider = tuple(each for each in kinds if holds_all_of(each[2], each[1]))
        return SchemaGrowth(committed, added, tuple(problems), broken, wider)
    if not added:
        return SchemaGrowth(committed)
    fields = [new.field(n) if n in columns else grown.field(n) for n in new.names]
    changed = tuple(e.name for e in committed if e.type != grown.field(e.name).type)
    return SchemaGrowth(arrow.schema(fields, committed.metadata), added, grown=changed)


def _with_members(
    committed: arrow.Schema, new: arrow.Schema
) -> tuple[arrow.Schema, list[tuple[str, arrow.Field]]]:
    """The committed columns with the members that structures in `new` have beside their own."""
    members: list[tuple[str, arrow.Field]] = []
    fields = [
        _grown(each, new.field(each.name), each.name, members) if each.name in new.names else each
        for each in committed
    ]
    return arrow.schema(fields, committed.metadata), members


def _grown(
    old: arrow.Field, new: arrow.Field, path: str, members: list[tuple[str, arrow.Field]]
) -> arrow.Field:
    """`old` with members of `new`, which join the `members`; those that it has keep their order."""
    if old.type.name != "struct" or new.type.name != "struct":
        return old
    own = {each.name: each for each in old.type.fields}
    if [each.name for each in new.type.fields if each.name in own] != [*own]:
        return old
    members += [(f"{path}.{e.name}", e) for e in new.type.fields if e.name not in own]
    fields = tuple(
        _grown(own[each.name], each, f"{path}.{each.name}", members) if each.name in own else each
        for each in new.type.fields
    )
    return replace(old, type=replace(old.type, fields=fields))


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
    known = {f.name: f for f in committed.schema.fields if f.name not in growth.grown}
    fields = strip_encoding(odf_form(growth.schema)).fields
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


# --- Types that hold every value of another type ---


# A column that has records keeps its type: the specification restricts changes of a schema to new
# columns ("Schema Evolution"), and peers read earlier slices by the newest schema or by none. So
# this decides only what to suggest.

_EXACT_BITS = {"float32": 24, "float64": 53}
"""Of the whole numbers that a float holds without gaps."""


def holds_all_of(new: arrow.Type, old: arrow.Type) -> bool:
    """Whether `new` is another type of numbers, and has every value of `old`."""
    if new == old:
        return False
    if old.name in arrow.INTEGERS:
        return _holds_integers(new, old)
    if old.name in arrow.DECIMALS and new.name in arrow.DECIMALS:
        return new.scale >= old.scale and _before_point(new) >= _before_point(old)
    return old.name in arrow.FLOATS and new.name in arrow.FLOATS and new.bits > old.bits


def _holds_integers(new: arrow.Type, old: arrow.Type) -> bool:
    is_signed = old.name in arrow.SIGNED
    if new.name in arrow.DECIMALS:
        return _before_point(new) >= len(str(2 ** (old.bits - is_signed)))
    if new.name in _EXACT_BITS:
        return _EXACT_BITS[new.name] >= old.bits - is_signed
    if new.name in arrow.UNSIGNED:
        return not is_signed and new.bits > old.bits
    return new.name in arrow.SIGNED and new.bits > old.bits


def _before_point(kind: arrow.Type) -> int:
    return kind.precision - kind.scale
