"""Attributes of columns, such as descriptions: how those of a source become those of a dataset.

Pure. Source: Open Data Fabric, "Schema Evolution" (attributes may change at any time), RFC-016.
"""

from __future__ import annotations

from dataclasses import replace

from odfbuild.odf.model import (
    DataField,
    DataSchema,
    DataType,
    DataTypeList,
    DataTypeOption,
    DataTypeStruct,
    Extra,
    SetDataSchema,
)
from odfbuild.odf.schema.compare import ENCODING_KEYS, Comparison, compare, strip_encoding

_NOTHING = DataSchema(fields=())


def redescribed(
    committed: SetDataSchema, before: DataSchema | None, after: DataSchema | None
) -> SetDataSchema | None:
    """`committed` with the attributes that `after` gives otherwise than `before` did.

    Both are what a source declared, `None` where it declared nothing. Columns, members and items
    keep their attributes where both say the same, and their types, order and being required always.
    `None` when nothing is described otherwise.
    """
    present = in_odf_form(committed)
    old, new = before or _NOTHING, after or _NOTHING
    earlier = {field.name: field for field in strip_encoding(old).fields}
    wanted = {field.name: field for field in strip_encoding(new).fields}
    fields = tuple(
        _described_if(field, earlier.get(field.name), wanted.get(field.name))
        for field in present.fields
    )
    extra = present.extra if (old.extra or None) == (new.extra or None) else new.extra or None
    if fields == present.fields and extra == present.extra:
        return None
    return SetDataSchema(schema=DataSchema(fields=fields, extra=extra))


def only_redescribes(committed: SetDataSchema, new: SetDataSchema) -> bool:
    """Whether two schemas differ in attributes and in nothing else."""
    both = strip_encoding(in_odf_form(committed)), strip_encoding(in_odf_form(new))
    return compare(*both, ignore_attributes=True) is not Comparison.NON_EQUIVALENT


def in_odf_form(committed: SetDataSchema) -> DataSchema:
    """The columns of a schema that may be in the Arrow form."""
    if committed.schema is not None:
        return committed.schema
    from odfbuild.odf.schema.arrow_form import odf_form, read_schema

    return strip_encoding(odf_form(read_schema(committed)))


def _described_if(field: DataField, before: DataField | None, after: DataField | None) -> DataField:
    """`field` as `after` describes it, where `before` described it otherwise."""
    if after is None:
        return field
    now = _described(field, after)
    was = _described(field, before or DataField(name=field.name, type=field.type))
    return field if now == was else now


def _described(field: DataField, source: DataField) -> DataField:
    """`field` with the attributes of `source`, but those that say how values lie in memory."""
    kept = {key: value for key, value in (field.extra or {}).items() if key in ENCODING_KEYS}
    extra: Extra | None = {**kept, **(source.extra or {})} or None
    return DataField(name=field.name, type=_with_members(field.type, source.type), extra=extra)


def _with_members(kind: DataType, source: DataType) -> DataType:
    if isinstance(source, DataTypeOption):
        source = source.inner
    match kind:
        case DataTypeOption():
            return DataTypeOption(inner=_with_members(kind.inner, source))
        case DataTypeList() if isinstance(source, DataTypeList):
            return replace(kind, item_type=_with_members(kind.item_type, source.item_type))
        case DataTypeStruct() if isinstance(source, DataTypeStruct):
            given = {member.name: member for member in source.fields}
            return DataTypeStruct(
                fields=tuple(
                    _described(member, given[member.name]) if member.name in given else member
                    for member in kind.fields
                )
            )
    return kind
