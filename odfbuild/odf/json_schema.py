"""The protocol's objects as JSON Schema (2020-12), for editors and for other tools.

Made from the event types alone. The schemas say what is accepted; what only code can check, such
as the grammar of names and hashes, stands there as a `format` (`formats`). Pure.
"""

from __future__ import annotations

import inspect
from functools import cache
from types import UnionType
from typing import Any

from odfbuild.odf.formats import FORMATS
from odfbuild.odf.introspect import (
    Field,
    FieldType,
    Scalar,
    Table,
    Union,
    Vector,
    fields_of,
    is_member,
)
from odfbuild.odf.plain_form import MANIFEST_VERSIONS, SHORT_FORMS, is_read_step, spellings, to_data
from odfbuild.odf.registry import enums, objects, union_docs, unions

Schema = dict[str, Any]
DIALECT = "https://json-schema.org/draft/2020-12/schema"
_PREFIX = "#/$defs/"


def catalogue() -> dict[str, str]:
    """Everything that has a schema: names, manifests first, and the first line about each."""
    found = {name: each["description"] for name, each in _definitions().items()}
    names = sorted(found, key=lambda name: (name not in MANIFEST_VERSIONS, name))
    return {name: found[name].partition("\n")[0] for name in names}


def schema_named(text: str) -> Schema | None:
    """The schema of a manifest, event or other object, in whatever letter case; `None`: no such."""
    names = {name.lower(): name for name in _definitions()}
    name = names.get(text.lower())
    if name is None:
        return None
    return manifest_schema(name) if name in MANIFEST_VERSIONS else schema_of(name)


def schema_of(name: str) -> Schema:
    """The schema of one object, union or enum by its name; `KeyError` if there is none."""
    return {
        "$schema": DIALECT,
        "title": name,
        **_definitions()[name],
        "$defs": _reachable(_definitions()[name]),
    }


def schema_for(kind: Any) -> Schema:
    """The schema of what is decoded as a class, a union, a member of one, or an enum."""
    if is_member(kind):
        schema = _union((kind,))
    else:
        schema = _union(kind.__args__) if isinstance(kind, UnionType) else _ref(kind.__name__)
    return {**schema, "$defs": _reachable(schema)}


@cache
def manifest_schema(kind: str) -> Schema:
    """The schema of a manifest (`DatasetSnapshot`, `MetadataBlock`), with what it needs."""
    return {
        "$schema": DIALECT,
        "title": f"{kind} manifest",
        "type": "object",
        "properties": {
            "kind": {"const": kind},
            "version": {"enum": list(MANIFEST_VERSIONS[kind])},
            "content": _ref(kind),
        },
        "required": ["kind", "version", "content"],
        "additionalProperties": False,
        "$defs": _reachable(_ref(kind)),
    }


def _reachable(schema: Schema) -> Schema:
    """The definitions that a schema refers to, and those that these refer to."""
    known, found = _definitions(), set[str]()
    waiting = _names(schema)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting |= _names(known[name])
    return {name: known[name] for name in sorted(found)}


def _names(schema: Any) -> set[str]:
    if isinstance(schema, dict):
        own = {schema["$ref"].removeprefix(_PREFIX)} if "$ref" in schema else set[str]()
        return own.union(*map(_names, schema.values()))
    if isinstance(schema, list):
        return set[str]().union(*map(_names, schema))
    return set()


@cache
def _definitions() -> Schema:
    found: Schema = {}
    for name, kind in enums().items():
        values = list(spellings(tuple(member.name for member in kind)))
        found[name] = {"description": inspect.getdoc(kind), "enum": values}
    for name, cls in objects().items():
        found[name] = _object(cls)
    about = union_docs()
    for name, members in unions().items():
        found[name] = {"description": about[name], **_union(members)}
    return dict(sorted(found.items()))


def _object(cls: type) -> Schema:
    properties: Schema = {}
    required = []
    if is_member(cls):
        properties["kind"] = {"enum": _kinds(cls)}
        required.append("kind")
    for field in fields_of(cls):
        properties[field.key] = _property(cls, field)
        if not field.optional:
            required.append(field.key)
    schema: Schema = {
        "description": inspect.getdoc(cls),
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
    if is_read_step(cls):
        ddl = {"properties": {"schema": {"type": "array"}}, "required": ["schema", "ddlSchema"]}
        schema["not"] = {"type": "object", **ddl}
    return schema


def _property(cls: type, field: Field) -> Schema:
    choices = [_type(field.type)]
    if is_read_step(cls) and field.key == "schema":
        # Up to 0.37 the list of DDL columns was called `schema`.
        choices.append({"type": "array", "items": {"type": "string"}})
    if field.optional:
        choices.append({"type": "null"})
    schema = choices[0] if len(choices) == 1 else {"anyOf": choices}
    return schema if field.implied is None else {**schema, "default": to_data(field.implied)}


def _union(members: tuple[type, ...]) -> Schema:
    branches = [
        {
            "if": {"properties": {"kind": {"enum": _kinds(member)}}, "required": ["kind"]},
            "then": _ref(member.__name__),
        }
        for member in members
    ]
    tagged: Schema = {
        "type": "object",
        "properties": {"kind": {"enum": [name for each in members for name in _kinds(each)]}},
        "required": ["kind"],
        "allOf": branches,
    }
    plain = [each for each in members if all(field.optional for field in fields_of(each))]
    if members[0].__name__.startswith(SHORT_FORMS) and plain:
        names = [name for each in plain for name in _kinds(each)]
        return {"anyOf": [{"enum": names}, tagged]}
    return tagged


def _type(kind: FieldType) -> Schema:
    match kind:
        case Vector(item):
            return {"type": "array", "items": _type(item)}
        case Table(cls):
            return _ref(cls.__name__)
        case Union(members):
            return _ref(next(name for name, each in unions().items() if each == members))
        case Scalar(wire, python):
            return _ref(python.__name__) if wire.startswith("enum") else dict(_SCALARS[wire])


def _kinds(cls: type) -> list[str]:
    return list(spellings((cls.KIND,)))  # type: ignore[attr-defined]


def _ref(name: str) -> Schema:
    return {"$ref": f"{_PREFIX}{name}"}


def _integer(low: int, high: int) -> Schema:
    return {"type": "integer", "minimum": low, "maximum": high}


def _formatted(wire: str, **more: str) -> Schema:
    plain = "string" if FORMATS[wire].plain is str else "object"
    return {"type": plain, "format": FORMATS[wire].name, **more}


_SCALARS: dict[str, Schema] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "u64": _integer(0, 2**64 - 1),
    "u32": _integer(0, 2**32 - 1),
    "i32": _integer(-(2**31), 2**31 - 1),
    "i16": _integer(-(2**15), 2**15 - 1),
    "bytes": _formatted("bytes", contentEncoding="base64"),
    "multihash": _formatted("multihash", description="A multihash in multibase text."),
    "id": _formatted("id", pattern="^did:odf:", description="Identity of a dataset."),
    "ref": _formatted("ref", description="Name or DID of a dataset."),
    "alias": _formatted("alias", description="Name of a dataset."),
    "timestamp": _formatted("timestamp", description="Date and time (RFC 3339)."),
    "open_map": _formatted("open_map"),
}
