"""Plain data, as people write it in YAML, to objects of the protocol.

The JSON Schema of an object says what data it is made from (`json_schema`), with the rules that
only code can check as formats (`formats`). The decoders here take what that schema takes, and
nothing else, a hundred times faster; where they give up, the schema tells all that is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import cache
from types import UnionType
from typing import Any, TypeVar, overload

from odfbuild.odf import model
from odfbuild.odf.formats import FORMATS
from odfbuild.odf.introspect import (
    FieldType,
    Scalar,
    Table,
    Union,
    Vector,
    fields_of,
    is_member,
)
from odfbuild.odf.plain_form import (
    MANIFEST_VERSIONS,
    SHORT_FORMS,
    is_read_step,
    spellings,
    to_data,
    to_manifest,
)

__all__ = [
    "MANIFEST_VERSIONS",
    "SHORT_FORMS",
    "from_data",
    "from_manifest",
    "is_read_step",
    "spellings",
    "to_data",
    "to_manifest",
]

Object = TypeVar("Object")
_Decoder = Callable[[Any], Any]


class _Misfit(Exception):
    """Data that is not right beyond doubt."""


@overload
def from_data(cls: type[Object], data: Any) -> Object: ...
@overload
def from_data(cls: UnionType, data: Any) -> Any: ...
def from_data(cls: Any, data: Any) -> Any:
    """Decode plain data into an object of `cls`; raises `DecodeErrors` with everything wrong.

    `cls` may also be a union (such as `model.MetadataEvent`), a member of one, or an enum.
    """
    try:
        return _decoder_of(cls)(data)
    except (_Misfit, RecursionError):
        from odfbuild.odf.json_schema import schema_for

        raise _refused(schema_for(cls), data) from None


def from_manifest(kind: str, data: Any) -> Any:
    """Unwrap `{kind, version, content}` and decode the content; errors as `from_data`."""
    try:
        _require(isinstance(data, dict) and data.keys() == {"kind", "version", "content"})
        version = data["version"]
        _require(data["kind"] == kind and not isinstance(version, bool))
        _require(version in MANIFEST_VERSIONS[kind])
        return _decoder_of(getattr(model, kind))(data["content"])
    except (_Misfit, RecursionError):
        from odfbuild.odf.json_schema import manifest_schema

        raise _refused(manifest_schema(kind), data) from None


def _refused(schema: Any, data: Any) -> Exception:
    from odfbuild.odf.decode_errors import DecodeError, DecodeErrors
    from odfbuild.odf.schema_errors import errors_of

    try:
        found = errors_of(schema, data)
    except RecursionError:
        found = [DecodeError((), "values are nested deeper than any object needs", data)]
    assert found, "decoders refuse nothing that the schema takes"
    return DecodeErrors(found)


def _require(holds: bool) -> None:
    if not holds:
        raise _Misfit


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

    def decode(data: Any) -> Any:
        if not made:
            made.append(make())
        return made[0](data)

    return decode


def _vector_decoder(item: _Decoder) -> _Decoder:
    def decode(data: Any) -> Any:
        if not isinstance(data, list):
            raise _Misfit
        return tuple([item(each) for each in data])

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

    def decode(data: Any) -> Any:
        if not compiled:
            compile_fields()
        if not isinstance(data, dict):
            raise _Misfit
        if ddl and isinstance(data.get("schema"), list) and "ddlSchema" not in data:
            # Up to 0.37 the list of DDL columns was called `schema`.
            data = {("ddlSchema" if key == "schema" else key): data[key] for key in data}
        values = {}
        for key, item in data.items():
            entry = table.get(key)
            if entry is None:
                if key == "kind" and tagged:
                    continue
                raise _Misfit
            if item is not None:
                values[entry[0]] = entry[1](item)
        for key in required:
            if data.get(key) is None:
                raise _Misfit
        return cls(**values)

    return decode


def _enum_decoder(cls: type[Enum]) -> _Decoder:
    by_spelling = spellings(tuple(member.name for member in cls))

    def decode(data: Any) -> Any:
        name = by_spelling.get(data) if isinstance(data, str) else None
        if name is None:
            raise _Misfit
        return cls[name]

    return decode


def _union_decoder(union: Union) -> _Decoder:
    members = {member.KIND: member for member in union.members}  # type: ignore[attr-defined]
    by_spelling = spellings(tuple(members))
    decoders = {each: _object_decoder(members[name], True) for each, name in by_spelling.items()}
    short = union.members[0].__name__.startswith(SHORT_FORMS)

    def decode(data: Any) -> Any:
        kind = data.get("kind") if isinstance(data, dict) else data if short else None
        decoder = decoders.get(kind) if isinstance(kind, str) else None
        if decoder is None:
            raise _Misfit
        return decoder(data if isinstance(data, dict) else {})

    return decode


# --- Scalars ---


def _of_type(kind: type) -> _Decoder:
    def decode(data: Any) -> Any:
        if not isinstance(data, kind):
            raise _Misfit
        return data

    return decode


def _integer(low: int, high: int) -> _Decoder:
    def decode(data: Any) -> Any:
        if not isinstance(data, int) or isinstance(data, bool) or not low <= data <= high:
            raise _Misfit
        return data

    return decode


def _parsed(kind: type, parse: Callable[[Any], Any]) -> _Decoder:
    def decode(data: Any) -> Any:
        if not isinstance(data, kind):
            raise _Misfit
        try:
            return parse(data)
        except ValueError:
            raise _Misfit from None

    return decode


_SCALARS: dict[str, _Decoder] = {
    "string": _of_type(str),
    "bool": _of_type(bool),
    "u64": _integer(0, 2**64 - 1),
    "u32": _integer(0, 2**32 - 1),
    "i32": _integer(-(2**31), 2**31 - 1),
    "i16": _integer(-(2**15), 2**15 - 1),
    **{wire: _parsed(each.plain, each.parse) for wire, each in FORMATS.items()},
}
