"""Parts of plans as plain values, and back: refusals, places, and values field by field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from odfbuild.errors import Location, OdfbuildError, PlanError
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp
from odfbuild.values import Value

_V = TypeVar("_V", bound=Value)
_TEXTS = (Multihash, DatasetId, Timestamp)
"""Values that are texts in JSON."""


def as_data(value: Any) -> Any:
    """A value as JSON has it: fields by name, hashes and times as texts, enums by their values."""
    if isinstance(value, _TEXTS):
        return str(value)
    if isinstance(value, OdfbuildError):
        return refusal_to_data(value)
    if is_dataclass(value):
        return {each.name: as_data(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, tuple | list):
        return [as_data(each) for each in value]
    return value.value if isinstance(value, Enum) else value


def from_data(cls: type[_V], data: Mapping[str, Any]) -> _V:
    """The value that `as_data` gave; a refusal is one of its `dataset`. `KeyError`: a field lacks.

    Other keys are passed over.
    """
    found = {name: _made(form, data[name]) for name, form in _hints(cls).items()}
    if data.get("refusal") is not None:
        found["refusal"] = refusal_from_data(data["dataset"], data["refusal"])
    return cls(**found)


@cache
def _hints(cls: type[Value]) -> Mapping[str, Any]:
    hints = get_type_hints(cls)
    return {name: hints[name] for name in cls.__struct_fields__}


def _made(form: Any, data: Any) -> Any:
    if data is None:
        return None
    kind: Any = form if isinstance(form, type) else next(iter(get_args(form)))
    if get_origin(form) is tuple:
        return tuple(_made(kind, each) for each in data)
    if issubclass(kind, _TEXTS):
        return kind.parse(data)
    if issubclass(kind, Enum):
        return kind(data)
    return from_data(kind, data) if issubclass(kind, Value) else data


def refusal_to_data(error: OdfbuildError | None) -> dict[str, Any] | None:
    """What a refusal says, where, and the way out."""
    if error is None:
        return None
    return {
        "code": error.code,
        "message": error.message,
        "source": place_to_data(error.location),
        "notes": list(error.notes),
        "help": error.help,
    }


def refusal_from_data(dataset: str, data: Mapping[str, Any] | None) -> PlanError | None:
    """The refusal of a dataset, or of a table of it, that `refusal_to_data` gave."""
    if data is None:
        return None
    return PlanError(
        data["message"],
        code=data["code"],
        location=place_from_data(data["source"]),
        notes=tuple(data["notes"]),
        help=data["help"],
        dataset=dataset,
    )


def place_to_data(place: Location | None) -> dict[str, Any] | None:
    """A place in a file."""
    if place is None:
        return None
    return {
        "file": place.file,
        "line": place.line,
        "column": place.column,
        "instance": place.instance,
    }


def place_from_data(data: Mapping[str, Any] | None) -> Location | None:
    """The place that `place_to_data` gave."""
    if data is None:
        return None
    return Location(data["file"], data["line"], data["column"], instance=data["instance"])
