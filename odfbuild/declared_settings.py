"""Settings, each declared once: its type, its default, what it is about, which values fit.

A frozen dataclass has a field made by `setting` for each of them. Its JSON Schema follows from
that, and so does what data becomes. The schema decides what is right; `read` takes only what is
right beyond doubt, without the library for schemas, which takes a tenth of a second to import.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, field, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from odfbuild.odf.introspect import camel

Schema = dict[str, Any]


class Fits:
    """In `Annotated`: keywords of JSON Schema about a type, and what its data becomes.

    Data is of type `plain`, and `made` turns it into the value; without them it is the value.
    """

    def __init__(
        self, plain: Any = None, made: Callable[[Any], Any] | None = None, **keywords: Any
    ) -> None:
        self.plain, self.made, self.keywords = plain, made, keywords


class Misfit(ValueError):
    """Data that may be wrong: the schema tells whether, and why."""


def setting(default: Any = MISSING, about: str = "", *, key: str = "") -> Any:
    """A field that files may set; `key` is its name there where that is not the field's.

    A `key` with a point, as in `mqtt.idleSeconds`, is one of an object within.
    """
    metadata = {"about": about, "key": key}
    if default == {}:
        return field(default_factory=dict, metadata=metadata)
    return field(default=default, metadata=metadata)


class _Setting(NamedTuple):
    name: str
    form: Any
    default: Any
    about: str


@cache
def _settings(cls: Any) -> dict[str, Any]:
    """The settings of a class by key; those of objects within as dictionaries of their own."""
    hints = get_type_hints(cls, include_extras=True)
    found: dict[str, Any] = {}
    for each in fields(cls):
        if "about" not in each.metadata:
            continue
        *outer, key = (each.metadata["key"] or camel(each.name)).split(".")
        into = found
        for name in outer:
            into = into.setdefault(name, {})
        default = None if each.default_factory is not MISSING else each.default
        into[key] = _Setting(each.name, hints[each.name], default, each.metadata["about"])
    return found


# --- Values ---


def read(form: Any, data: Any) -> Any:
    """What data becomes: a value of `form`. `Misfit` unless it is right beyond doubt."""
    if isinstance(form, type) and is_dataclass(form):
        return _read_object(form, data)
    if isinstance(form, type) and issubclass(form, Enum):
        _require(data in [each.value for each in form])
        return form(data)
    inner, origin = get_args(form), get_origin(form)
    if origin is Annotated:
        return _read_fitting(inner[0], inner[1], data)
    if origin is Literal:
        _require(not isinstance(data, bool) and data in inner)
    elif origin in (Union, UnionType):
        one, other = _alternatives(inner)
        return read(one if other is None or isinstance(data, dict) else other, data)
    elif origin is tuple:
        _require(isinstance(data, list))
        return tuple(read(inner[0], each) for each in data)
    elif origin is Mapping:
        _require(isinstance(data, dict))
        return {key: read(inner[1], each) for key, each in data.items()}
    elif form in (int, float):
        _require(isinstance(data, int | float) and not isinstance(data, bool))
        _require(form is float or data == data // 1)
    elif form is not Any:
        _require(isinstance(data, form))
    return data


def _read_object(cls: Any, data: Any) -> Any:
    found = dict(_read_keys(_settings(cls), data))
    required = {each.name for each in fields(cls) if _is_required(each)}
    _require(required <= found.keys())
    return cls(**found)


def _read_keys(settings: Mapping[str, Any], data: Any) -> Iterator[tuple[str, Any]]:
    _require(isinstance(data, dict) and data.keys() <= settings.keys())
    for key, value in data.items():
        known = settings[key]
        if isinstance(known, dict):
            yield from _read_keys(known, value)
        else:
            yield known.name, read(known.form, value)


def _read_fitting(form: Any, fits: Fits, data: Any) -> Any:
    value = read(fits.plain or form, data)
    for keyword, wanted in fits.keywords.items():
        if keyword == "minLength":
            _require(len(data) >= wanted)
        elif keyword == "pattern":
            _require(re.search(wanted, data) is not None)
        elif keyword == "minimum":
            _require(not data < wanted)
        elif keyword == "exclusiveMinimum":
            _require(not data <= wanted)  # as schemas compare, which let NaN pass
        elif keyword == "enum":
            _require(data in wanted)
        elif keyword == "properties":
            _require(data.keys() <= wanted.keys())
    return fits.made(value) if fits.made else value


def _require(holds: bool) -> None:
    if not holds:
        raise Misfit


def _is_required(each: Any) -> bool:
    return each.default is MISSING and each.default_factory is MISSING


# --- Schemas ---

_NAMES = {str: "string", int: "integer", float: "number", bool: "boolean"}


def schema_of(form: Any, *, only: tuple[str, ...] = ()) -> Schema:
    """The JSON Schema of the data that `form` is read from; of an object `only` some keys."""
    if isinstance(form, type) and is_dataclass(form):
        required = {each.name for each in fields(form) if _is_required(each)}
        settings = _settings(form)
        return _object({key: settings[key] for key in only or settings}, required)
    if isinstance(form, type) and issubclass(form, Enum):
        return {"type": "string", "enum": [each.value for each in form]}
    inner, origin = get_args(form), get_origin(form)
    if origin is Annotated:
        return {**schema_of(inner[1].plain or inner[0]), **inner[1].keywords}
    if origin is Literal:
        one = {"const": inner[0]}
        return one if len(inner) == 1 else {"type": "string", "enum": list(inner)}
    if origin in (Union, UnionType):
        one, other = _alternatives(inner)
        if other is None:
            return schema_of(one)
        return {"if": {"type": "object"}, "then": schema_of(one), "else": schema_of(other)}
    if origin is tuple:
        return {"type": "array", "items": schema_of(inner[0])}
    if origin is Mapping:
        values = schema_of(inner[1])
        return {"type": "object", **({"additionalProperties": values} if values else {})}
    return {} if form is Any else {"type": _NAMES[form]}


def _alternatives(forms: tuple[Any, ...]) -> tuple[Any, Any | None]:
    """What data is read as: one form, or an object and what else it may be."""
    forms = tuple(each for each in forms if each is not NoneType)
    return forms[0], forms[1] if len(forms) > 1 else None


def _object(settings: Mapping[str, Any], required: set[str]) -> Schema:
    needed = [k for k, s in settings.items() if isinstance(s, _Setting) and s.name in required]
    return {
        "type": "object",
        "additionalProperties": False,
        **({"required": needed} if needed else {}),
        "properties": {key: _property(each, required) for key, each in settings.items()},
    }


def _property(known: Any, required: set[str]) -> Schema:
    if isinstance(known, dict):
        return _object(known, required)
    schema = schema_of(known.form)
    if isinstance(known.default, str | int | float) and not _is_made(known.form):
        schema["default"] = known.default
    return {**schema, **({"description": known.about} if known.about else {})}


def _is_made(form: Any) -> bool:
    """Whether values are others than what files say."""
    return get_origin(form) is Annotated and get_args(form)[1].made is not None


def document_schema(title: str, form: Any) -> Schema:
    """The schema of a whole file."""
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, "title": title, **schema_of(form)}
