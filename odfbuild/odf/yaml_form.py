"""Objects as plain data, the form in which people write them in YAML, and back.

The decoder is strict and typed: unknown keys, wrong types and wrong spellings are errors, all of
a document at once, each with its path. Sources: metadata reference; RFC-013 (spelling of enums).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from types import UnionType
from typing import Any, TypeVar, overload

from odfbuild.odf import model
from odfbuild.odf.decode_errors import (
    DecodeError,
    DecodeErrors,
    Path,
    missing,
    not_one_of,
    unknown,
    wrong_type,
)
from odfbuild.odf.extra import extra_problem
from odfbuild.odf.identity import DatasetAlias, DatasetId, name_like, parse_ref
from odfbuild.odf.introspect import (
    FieldType,
    Scalar,
    Table,
    Union,
    Vector,
    fields_of,
    is_member,
)
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp

Object = TypeVar("Object")

MANIFEST_VERSIONS: Mapping[str, tuple[int, ...]] = {
    "DatasetSnapshot": (1,),
    "MetadataBlock": (2, 3),
}
_WRITTEN_VERSION = {"DatasetSnapshot": 1, "MetadataBlock": 3}


_BROKEN = object()
_Decoder = Callable[[Any, Path, "list[DecodeError]"], Any]


@overload
def from_data(cls: type[Object], data: Any) -> Object: ...
@overload
def from_data(cls: UnionType, data: Any) -> Any: ...
def from_data(cls: Any, data: Any) -> Any:
    """Decode plain data into an object of `cls`; raises `DecodeErrors` with everything wrong.

    `cls` may also be a union (such as `model.MetadataEvent`), a member of one, or an enum.
    """
    errors: list[DecodeError] = []
    value = _decoder_of(cls)(data, (), errors)
    if errors:
        raise DecodeErrors(errors)
    return value


def from_manifest(kind: str, data: Any) -> Any:
    """Unwrap `{kind, version, content}` and decode the content; errors as `from_data`."""
    errors: list[DecodeError] = []
    if not isinstance(data, dict):
        raise DecodeErrors([wrong_type((), "an object", data)])
    for key in data:
        if key not in ("kind", "version", "content"):
            errors.append(unknown((), key, ("kind", "version", "content")))
    for key in ("kind", "version", "content"):
        if key not in data:
            errors.append(missing((), key))
    if errors:
        raise DecodeErrors(errors)
    if data["kind"] != kind:
        errors.append(DecodeError(("kind",), f"expected kind {kind}", data["kind"], kind))
    versions = MANIFEST_VERSIONS[kind]
    if isinstance(data["version"], bool) or data["version"] not in versions:
        known = " or ".join(map(str, versions))
        errors.append(
            DecodeError(("version",), f"version of {kind} must be {known}", data["version"])
        )
    value = _decoder_of(getattr(model, kind))(data["content"], ("content",), errors)
    if errors:
        raise DecodeErrors(errors)
    return value


def to_data(value: Any) -> Any:
    """Canonical plain data of an object: fields in order, absent ones left out, `kind` first."""
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, Multihash | DatasetId | DatasetAlias | Timestamp):
        return str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, tuple | list):
        return [to_data(item) for item in value]
    if isinstance(value, Mapping):
        return {key: to_data(item) for key, item in sorted(value.items())}
    if value is None or isinstance(value, str | bool | int | float):
        return value
    data: dict[str, Any] = {"kind": value.KIND} if is_member(type(value)) else {}
    for field in fields_of(type(value)):
        item = getattr(value, field.name)
        if item is not None:
            data[field.key] = to_data(item)
    return data


def to_manifest(value: Any) -> dict[str, Any]:
    """Canonical plain data of a snapshot or block, wrapped in its manifest."""
    kind = type(value).__name__
    return {"kind": kind, "version": _WRITTEN_VERSION[kind], "content": to_data(value)}


# --- Decoders, compiled once per type ---


@cache
def _decoder_of(kind: Any) -> _Decoder:
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _enum_decoder(kind)
    if is_member(kind):
        return _union_decoder(Union((kind,)))
    if isinstance(kind, type):
        return _object_decoder(kind)
    return _union_decoder(Union(kind.__args__))


def _field_decoder(kind: FieldType) -> _Decoder:
    match kind:
        case Scalar(wire, python):
            return _enum_decoder(python) if wire.startswith("enum") else _SCALARS[wire]
        case Table(cls):
            return _decoder_of(cls)
        case Union():
            return _lazy(lambda: _union_decoder(kind))
        case Vector(item):
            return _vector_decoder(_field_decoder(item))


def _lazy(make: Callable[[], _Decoder]) -> _Decoder:
    """Data types contain data types: compile a union when it is first met."""
    made: list[_Decoder] = []

    def decode(data: Any, path: Path, errors: list[DecodeError]) -> Any:
        if not made:
            made.append(make())
        return made[0](data, path, errors)

    return decode


def _vector_decoder(item: _Decoder) -> _Decoder:
    def decode(data: Any, path: Path, errors: list[DecodeError]) -> Any:
        if not isinstance(data, list):
            errors.append(wrong_type(path, "a list", data))
            return _BROKEN
        return tuple([item(each, (*path, index), errors) for index, each in enumerate(data)])

    return decode


def _object_decoder(cls: type, tagged: bool = False) -> _Decoder:
    """`tagged`: the `kind` of a member of a union stands among its fields."""
    table: dict[str, tuple[str, _Decoder]] = {}
    required: list[str] = []
    compiled: list[bool] = []

    def compile_fields() -> None:
        for field in fields_of(cls):
            table[field.key] = (field.name, _field_decoder(field.type))
            if not field.optional:
                required.append(field.key)
        compiled.append(True)

    ddl = is_read_step(cls)

    def decode(data: Any, path: Path, errors: list[DecodeError]) -> Any:
        if not compiled:
            compile_fields()
        if not isinstance(data, dict):
            errors.append(wrong_type(path, "an object", data))
            return _BROKEN
        if ddl and isinstance(data.get("schema"), list) and "ddlSchema" not in data:
            # Up to 0.37 the list of DDL columns was called `schema`.
            data = {("ddlSchema" if key == "schema" else key): data[key] for key in data}
        values = {}
        before = len(errors)
        for key, item in data.items():
            entry = table.get(key)
            if entry is None:
                if key == "kind" and tagged:
                    continue
                errors.append(unknown(path, key, tuple(table)))
            elif item is not None:
                values[entry[0]] = entry[1](item, (*path, key), errors)
        for key in required:
            if data.get(key) is None:
                errors.append(missing(path, key))
        return cls(**values) if len(errors) == before else _BROKEN

    return decode


def spellings(names: tuple[str, ...]) -> dict[str, str]:
    """PascalCase, camelCase and lowercase to PascalCase (RFC-013)."""
    table = {}
    for name in names:
        for spelling in (name, name[0].lower() + name[1:], name.lower()):
            table[spelling] = name
    return table


def _enum_decoder(cls: type[Enum]) -> _Decoder:
    by_spelling = spellings(tuple(member.name for member in cls))

    def decode(data: Any, path: Path, errors: list[DecodeError]) -> Any:
        name = by_spelling.get(data) if isinstance(data, str) else None
        if name is None:
            errors.append(not_one_of(path, data, tuple(member.name for member in cls)))
            return _BROKEN
        return cls[name]

    return decode


SHORT_FORMS = ("DataType", "EventTimeSource", "SourceCaching")
"""Unions whose members may be written as their name alone."""


def is_read_step(cls: type) -> bool:
    """Whether `schema` of an object may be a list of DDL columns, as it was up to 0.37."""
    return cls.__name__.startswith("ReadStep")


def _union_decoder(union: Union) -> _Decoder:
    members = {member.KIND: member for member in union.members}  # type: ignore[attr-defined]
    by_spelling = spellings(tuple(members))
    decoders = {each: _object_decoder(members[name], True) for each, name in by_spelling.items()}
    short = union.members[0].__name__.startswith(SHORT_FORMS)

    def decode(data: Any, path: Path, errors: list[DecodeError]) -> Any:
        if isinstance(data, dict):
            kind = data.get("kind")
            decoder = decoders.get(kind) if isinstance(kind, str) else None
            if decoder is not None:
                return decoder(data, path, errors)
            if kind is None:
                errors.append(missing(path, "kind"))
            else:
                errors.append(not_one_of((*path, "kind"), kind, tuple(members)))
            return _BROKEN
        if short and isinstance(data, str):
            decoder = decoders.get(data)
            if decoder is not None:
                return decoder({}, path, errors)
            errors.append(not_one_of(path, data, tuple(members)))
            return _BROKEN
        errors.append(wrong_type(path, "an object with `kind`", data))
        return _BROKEN

    return decode


# --- Scalars ---


def _text(data: Any, path: Path, errors: list[DecodeError]) -> Any:
    if isinstance(data, str):
        return data
    errors.append(wrong_type(path, "a string", data))
    return _BROKEN


def _bool(data: Any, path: Path, errors: list[DecodeError]) -> Any:
    if isinstance(data, bool):
        return data
    errors.append(wrong_type(path, "true or false", data))
    return _BROKEN


def _integer(low: int, high: int) -> _Decoder:
    def decode(data: Any, path: Path, errors: list[DecodeError]) -> Any:
        if isinstance(data, int) and not isinstance(data, bool):
            if low <= data <= high:
                return data
            errors.append(DecodeError(path, f"{data} is outside of {low} to {high}", data))
            return _BROKEN
        errors.append(wrong_type(path, "a whole number", data))
        return _BROKEN

    return decode


def _parsed(
    parse: Callable[[str], Any], what: str, nearest: Callable[[str], str | None] = lambda _: None
) -> _Decoder:
    def decode(data: Any, path: Path, errors: list[DecodeError]) -> Any:
        if not isinstance(data, str):
            errors.append(wrong_type(path, what, data))
            return _BROKEN
        try:
            return parse(data)
        except ValueError as error:
            errors.append(DecodeError(path, str(error), data, nearest(data)))
            return _BROKEN

    return decode


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError("not base64 text") from None


def _name_in_ref(text: str) -> str | None:
    return None if text.startswith("did:") else name_like(text)


def _open_map(data: Any, path: Path, errors: list[DecodeError]) -> Any:
    if not isinstance(data, dict):
        errors.append(wrong_type(path, "an object", data))
        return _BROKEN
    if (problem := extra_problem(data)) is not None:
        errors.append(DecodeError(path, problem, data))
        return _BROKEN
    return data


_SCALARS: dict[str, _Decoder] = {
    "string": _text,
    "bool": _bool,
    "u64": _integer(0, 2**64 - 1),
    "u32": _integer(0, 2**32 - 1),
    "i32": _integer(-(2**31), 2**31 - 1),
    "i16": _integer(-(2**15), 2**15 - 1),
    "bytes": _parsed(_base64, "base64 text"),
    "multihash": _parsed(Multihash.parse, "a multihash"),
    "id": _parsed(DatasetId.parse, "a did:odf"),
    "ref": _parsed(parse_ref, "the name or DID of a dataset", _name_in_ref),
    "alias": _parsed(DatasetAlias.parse, "the name of a dataset", name_like),
    "timestamp": _parsed(Timestamp.parse, "a date and time (RFC 3339)"),
    "open_map": _open_map,
}
