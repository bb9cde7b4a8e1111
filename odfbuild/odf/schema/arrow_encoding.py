"""Attributes of columns that say how Arrow lays their values out.

Sources: ODF RFC-016; reference behaviour, "ODF schema".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from odfbuild.errors import QueryError
from odfbuild.odf.model import (
    DataField,
    DataSchema,
    DataTypeBinary,
    DataTypeDate,
    DataTypeDecimal,
    DataTypeList,
    DataTypeOption,
    DataTypeString,
    DataTypeStruct,
)

BUFFER = "arrow.apache.org/bufferEncoding"
DATE = "arrow.apache.org/dateEncoding"
DECIMAL = "arrow.apache.org/decimalEncoding"


class InvalidAttributeError(QueryError):
    """E0532: an encoding attribute that is not well formed."""

    def __init__(self, problem: str) -> None:
        super().__init__(
            problem, code="E0532", help="correct or remove that attribute of the column"
        )


_KINDS = {
    BUFFER: ("kind", ("Contiguous", "View", "RunEnd")),
    DATE: ("unit", ("Day", "Millisecond")),
}


IN_BUFFERS = (DataTypeString, DataTypeBinary, DataTypeList)
"""Types whose values have a buffer of their own, which may be laid out in several ways."""

_TYPES = {
    BUFFER: IN_BUFFERS,
    DATE: (DataTypeDate,),
    DECIMAL: (DataTypeDecimal,),
}


def encoding_of(extra: Mapping[str, Any] | None) -> dict[str, dict[str, Any]] | None:
    """The encoding attributes among `extra`, in canonical spelling; `None` without any.

    Enum values may begin with a small letter. `InvalidAttributeError` for what is malformed.
    """
    found = (
        {key: extra[key] for key in (BUFFER, DATE, DECIMAL) if key in (extra or {})}
        if extra
        else {}
    )
    return {key: _read_encoding(key, value) for key, value in found.items()} or None


def unfit_encodings(schema: DataSchema) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Encoding attributes that say nothing about their columns: where, and why."""
    for index, field in enumerate(schema.fields):
        for path, problem in _unfit(field):
            yield ("fields", index, *path), problem


def _unfit(field: DataField) -> Iterator[tuple[tuple[str | int, ...], str]]:
    kind = field.type.inner if isinstance(field.type, DataTypeOption) else field.type
    for key in _TYPES.keys() & (field.extra or {}).keys():
        try:
            encoding_of({key: (field.extra or {})[key]})
        except InvalidAttributeError as error:
            yield ("extra", key), error.message
            continue
        if getattr(kind, "fixed_length", None) is not None:
            yield ("extra", key), f"'{key}' is not for values of a fixed length"
        elif not isinstance(kind, _TYPES[key]):
            names = ", ".join(each.KIND for each in _TYPES[key])
            yield ("extra", key), f"'{key}' is for {names}, and '{field.name}' is {kind.KIND}"
    if isinstance(kind, DataTypeStruct):
        for index, member in enumerate(kind.fields):
            for path, problem in _unfit(member):
                yield ("type", "fields", index, *path), problem


def _read_encoding(key: str, value: Any) -> dict[str, Any]:
    def refuse() -> InvalidAttributeError:
        return InvalidAttributeError(f"not a valid '{key}': {json.dumps(value)}")

    if not isinstance(value, Mapping):
        raise refuse()
    result = dict(value)
    if key in _KINDS:
        name, spellings = _KINDS[key]
        text = value.get(name)
        if not isinstance(text, str) or text[:1].upper() + text[1:] not in spellings:
            raise refuse()
        result[name] = text[:1].upper() + text[1:]
    elif not isinstance(value.get("bitWidth"), int):
        raise refuse()
    for name in ("offsetBitWidth", "runEndsBitWidth", "bitWidth"):
        if value.get(name) is not None and not isinstance(value[name], int):
            raise refuse()
    return result
