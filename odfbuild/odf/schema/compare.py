"""Compare schemas: equality, supersets, differences, and what a chain or a slice may not change.

Works on ODF schemas; `incompatibilities` on Arrow schemas of data slices. Pure. Source: Open Data
Fabric, "Schema Evolution"; reference behaviour, chain validation and data writer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any

from odfbuild.odf.defaults import same_meaning
from odfbuild.odf.model import (
    DataField,
    DataSchema,
    DataType,
    DataTypeList,
    DataTypeMap,
    DataTypeOption,
    DataTypeStruct,
)
from odfbuild.odf.schema import arrow
from odfbuild.odf.schema.ddl import ddl_of_both
from odfbuild.values import Value

ENCODING_KEYS = (
    "arrow.apache.org/bufferEncoding",
    "arrow.apache.org/dateEncoding",
    "arrow.apache.org/decimalEncoding",
)


class Comparison(Enum):
    """How two schemas relate; ignored differences make them equivalent, not identical."""

    IDENTICAL = "Identical"
    EQUIVALENT = "Equivalent"
    NON_EQUIVALENT = "NonEquivalent"


class Difference(Value, kw_only=True):
    """One difference. `item` is its kind, `field` the column; `inner` says what changed inside.

    Kinds: FieldAdded, FieldRemoved, FieldReordered (with both indices), FieldTypeChanged,
    FieldAttributesChanged, SchemaAttributesChanged; inside types BecameOptional, BecameRequired,
    TypeChanged, StructDiff, ListDiff, MapKeyDiff, MapValueDiff.
    """

    item: str
    field: str | None = None
    index_left: int | None = None
    index_right: int | None = None
    inner: tuple[Difference, ...] = ()
    optional: bool = False


# --- Difference ---


def diff(left: DataSchema, right: DataSchema) -> tuple[Difference, ...]:
    """What turns `left` into `right`: changes of common columns, then removed, then added ones."""
    own = [] if _extra(left) == _extra(right) else [Difference(item="SchemaAttributesChanged")]
    return (*own, *_diff_fields(left.fields, right.fields))


def _diff_fields(left: Sequence[DataField], right: Sequence[DataField]) -> tuple[Difference, ...]:
    places = {field.name: (index, field) for index, field in enumerate(right)}
    names = {field.name for field in left}
    found: list[Difference] = []
    removed: list[Difference] = []
    for index, field in enumerate(left):
        if field.name not in places:
            removed.append(Difference(item="FieldRemoved", field=field.name))
            continue
        place, other = places[field.name]
        if place != index:
            found.append(
                Difference(
                    item="FieldReordered", field=field.name, index_left=index, index_right=place
                )
            )
        inner = _diff_types(field.type, other.type)
        if inner:
            found.append(Difference(item="FieldTypeChanged", field=field.name, inner=inner))
        if _extra(field) != _extra(other):
            found.append(Difference(item="FieldAttributesChanged", field=field.name))
    added = [
        Difference(
            item="FieldAdded", field=field.name, optional=isinstance(field.type, DataTypeOption)
        )
        for field in right
        if field.name not in names
    ]
    return (*found, *removed, *added)


def _diff_types(left: DataType, right: DataType) -> tuple[Difference, ...]:
    if left == right:
        return ()
    match left, right:
        case DataTypeOption(), DataTypeOption():
            return _diff_types(left.inner, right.inner)
        case DataTypeOption(), _:
            return (Difference(item="BecameRequired"), *_diff_types(left.inner, right))
        case _, DataTypeOption():
            return (Difference(item="BecameOptional"), *_diff_types(left, right.inner))
        case DataTypeStruct(), DataTypeStruct():
            return _wrap("StructDiff", _diff_fields(left.fields, right.fields))
        case DataTypeList(), DataTypeList() if left.fixed_length == right.fixed_length:
            return _wrap("ListDiff", _diff_types(left.item_type, right.item_type))
        case DataTypeMap(), DataTypeMap() if bool(left.keys_sorted) == bool(right.keys_sorted):
            keys = _wrap("MapKeyDiff", _diff_types(left.key_type, right.key_type))
            return keys + _wrap("MapValueDiff", _diff_types(left.value_type, right.value_type))
    return () if same_meaning(left, right) else (Difference(item="TypeChanged"),)


def _wrap(item: str, inner: tuple[Difference, ...]) -> tuple[Difference, ...]:
    return (Difference(item=item, inner=inner),) if inner else ()


def _extra(value: DataSchema | DataField) -> dict[str, Any]:
    return dict(value.extra or {})


# --- Comparison ---

_OPTIONALITY = {"BecameOptional", "BecameRequired"}
_ATTRIBUTES = {"FieldAttributesChanged", "SchemaAttributesChanged"}


def compare(
    left: DataSchema,
    right: DataSchema,
    *,
    ignore_attributes: bool = False,
    ignore_optionality: bool = False,
    ignore_order: bool = False,
) -> Comparison:
    """Whether two schemas are the same but for what is to be ignored."""
    differences = diff(left, right)
    if not differences:
        return Comparison.IDENTICAL
    ignored: set[str] = set()
    ignored |= _ATTRIBUTES if ignore_attributes else set()
    ignored |= _OPTIONALITY if ignore_optionality else set()
    ignored |= {"FieldReordered"} if ignore_order else set()
    if all(leaf.item in ignored for leaf in _leaves(differences)):
        return Comparison.EQUIVALENT
    return Comparison.NON_EQUIVALENT


def _leaves(differences: Sequence[Difference]) -> Iterator[Difference]:
    for each in differences:
        if each.inner:
            yield from _leaves(each.inner)
        else:
            yield each


# --- What a chain may not change ---


def forbidden_changes(
    current: DataSchema, new: DataSchema, *, ignore_optionality: bool = False
) -> list[str]:
    """Changes of the committed schema that the chain refuses, in words; empty when there are none.

    Allowed are other attributes, another order and new optional columns, at any depth.
    """
    return list(_forbidden(diff(current, new), "", ignore_optionality))


def _forbidden(
    differences: Sequence[Difference], path: str, ignore_optionality: bool
) -> Iterator[str]:
    for each in differences:
        name = ".".join(part for part in (path, each.field) if part)
        match each.item:
            case "FieldRemoved":
                yield f"column '{name}' is removed"
            case "FieldAdded" if not each.optional:
                yield f"column '{name}' is new and not optional"
            case "BecameOptional" if not ignore_optionality:
                yield f"column '{name}' becomes optional"
            case "BecameRequired" if not ignore_optionality:
                yield f"column '{name}' becomes required"
            case "TypeChanged":
                yield f"column '{name}' changes its type"
        yield from _forbidden(each.inner, name, ignore_optionality)


def strip_encoding(schema: DataSchema) -> DataSchema:
    """The schema without the attributes that say how Arrow lays its values out in memory."""
    fields = tuple(_strip_field(field) for field in schema.fields)
    return DataSchema(fields=fields, extra=_without_encoding(schema.extra))


def _strip_field(field: DataField) -> DataField:
    return DataField(
        name=field.name, type=_strip_type(field.type), extra=_without_encoding(field.extra)
    )


def _strip_type(kind: DataType) -> DataType:
    match kind:
        case DataTypeOption():
            return DataTypeOption(inner=_strip_type(kind.inner))
        case DataTypeStruct():
            return DataTypeStruct(fields=tuple(_strip_field(field) for field in kind.fields))
        case DataTypeList():
            return replace(kind, item_type=_strip_type(kind.item_type))
        case DataTypeMap():
            return replace(
                kind, key_type=_strip_type(kind.key_type), value_type=_strip_type(kind.value_type)
            )
    return kind


def _without_encoding(extra: Any) -> Any:
    kept = {key: value for key, value in (extra or {}).items() if key not in ENCODING_KEYS}
    return kept or None


# --- What a slice may not change ---


def incompatibilities(committed: arrow.Schema, new: arrow.Schema) -> list[str]:
    """Why records with schema `new` cannot join a dataset with `committed`; empty when they can.

    Same columns in the same order and of the same types; how Arrow lays out text, bytes and lists
    does not count. A column may not become nullable, but the other way round is fine.
    Attributes are those of the dataset: a column without any takes them over.
    """
    problems = [f"column '{name}' is missing" for name in committed.names if name not in new.names]
    problems += [f"column '{name}' is new" for name in new.names if name not in committed.names]
    common = [name for name in committed.names if name in new.names]
    if not problems and committed.names != new.names:
        problems.append(
            f"the columns stand in another order: {', '.join(new.names)}, "
            f"committed: {', '.join(committed.names)}"
        )
    for name in common:
        problems += _field_problems(committed.field(name), new.field(name), name)
    return problems


def _field_problems(old: arrow.Field, new: arrow.Field, name: str) -> Iterator[str]:
    if new.nullable and not old.nullable:
        yield f"column '{name}' may hold nulls now, and may not in the committed schema"
    if _attributes(new) not in ({}, _attributes(old)):
        yield f"column '{name}' has other attributes than in the committed schema"
    yield from _type_problems(old.type, new.type, name)


def _attributes(field: arrow.Field) -> dict[bytes, bytes]:
    # Keys that Parquet readers add say where a column came from, not what it is.
    metadata = field.metadata or {}
    return {key: value for key, value in metadata.items() if not key.startswith(b"PARQUET:")}


def _type_problems(old: arrow.Type, new: arrow.Type, name: str) -> Iterator[str]:
    family = _family(old)
    if family != _family(new):
        found, committed = ddl_of_both(new, old)
        yield f"column '{name}' is {found} now, and {committed} in the committed schema"
    elif family == "list":
        yield from _field_problems(old.item, new.item, f"{name}[]")
    elif family == "struct":
        names = [field.name for field in old.fields], [field.name for field in new.fields]
        if names[0] != names[1]:
            yield f"column '{name}' has members {', '.join(names[1])}, committed: " + ", ".join(
                names[0]
            )
            return
        for before, after in zip(old.fields, new.fields, strict=True):
            yield from _field_problems(before, after, f"{name}.{before.name}")


def _family(kind: arrow.Type) -> object:
    """Types that a slice may use for one another share a family; others are their own."""
    if kind.name in arrow.TEXTS:
        return "text"
    if kind.name in arrow.BYTES:
        return "bytes"
    if kind.name in arrow.LISTS:
        return "list"
    return "struct" if kind.name == "struct" else kind
