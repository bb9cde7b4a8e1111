"""All that a JSON Schema of the protocol finds wrong in data, in words and with paths.

Of the branches of a schema those count that the data was meant for: nobody is told that an object
could also have been `null`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker, validators

from odfbuild.odf.decode_errors import (
    DecodeError,
    missing,
    not_one_of,
    unknown,
    wrong_type,
)
from odfbuild.odf.formats import FORMATS, Format

_WORDS = {"string": "a string", "boolean": "true or false", "integer": "a whole number"}
_WORDS |= {"array": "a list", "object": "an object"}
_MISSING = "missing_field"
_BY_NAME = {each.name: each for each in FORMATS.values()}
_CHECKER = FormatChecker(())


def _add(form: Format) -> None:
    def fits(data: object) -> bool:
        if isinstance(data, form.plain):
            form.parse(data)
        return True

    _CHECKER.checks(form.name, raises=ValueError)(fits)


for _format in FORMATS.values():
    _add(_format)

_TYPES = Draft202012Validator.TYPE_CHECKER.redefine(
    "integer", lambda _, data: isinstance(data, int) and not isinstance(data, bool)
)
"""JSON Schema takes 5.0 for a whole number, too."""


_VALIDATOR: Any = validators.extend(  # type: ignore[no-untyped-call]
    Draft202012Validator, type_checker=_TYPES
)


RULES = {"integer": "a whole number is written without a fraction"}
RULES |= {name: each.words for name, each in _BY_NAME.items()}
"""All that is refused though the keywords of JSON Schema let it pass."""


def validator_of(schema: Mapping[str, Any]) -> Any:
    """What decides: the keywords of a schema, and these rules."""
    return _VALIDATOR(schema, format_checker=_CHECKER)


def errors_of(schema: Mapping[str, Any], data: Any) -> list[DecodeError]:
    """All that is wrong in a document, in the order in which it is written."""
    validator = validator_of(schema)
    found: dict[Any, DecodeError] = {}
    for error in validator.iter_errors(data):
        for each in _told(error, validator):
            # Only keys can be missing twice at a place.
            found.setdefault((each.path, each.kind == _MISSING and each.message), each)
    return sorted(found.values(), key=lambda each: _position(each, data))


def _position(error: DecodeError, data: Any) -> list[int]:
    """Where a value stands in data; what is missing comes last in its object."""
    position = []
    for key in error.path:
        if isinstance(data, dict):
            position.append(list(data).index(key))
            data = data[key]
        else:
            position.append(int(key))
            data = data[int(key)]
    return [*position, sys.maxsize] if error.kind == _MISSING else position


def _told(error: Any, validator: Any) -> Iterator[DecodeError]:
    """One error of the library in our words: one or more, none where another one says it."""
    schema, data, path = error.schema, error.instance, tuple(error.absolute_path)
    match error.validator:
        case "additionalProperties":
            known = schema["properties"]
            # The `kind` of a member of a union is not one of its fields.
            names = tuple(key for key in known if key != "kind" or "enum" not in known[key])
            yield from (unknown(path, key, names) for key in data if key not in known)
        case "required":
            yield from (missing(path, key) for key in schema["required"] if key not in data)
        case "type" | "enum" if data is None and path and isinstance(path[-1], str):
            yield missing(path[:-1], path[-1])
        case "type":
            yield wrong_type(path, _wanted(schema), data)
        case "enum" if path == ("version",):
            versions = " or ".join(map(str, schema["enum"]))
            kind = validator.schema["properties"]["kind"]["const"]
            yield DecodeError(path, f"version of {kind} must be {versions}", data)
        case "enum":
            # Of the spellings of a name the main one begins with a capital.
            yield not_one_of(path, data, tuple(n for n in schema["enum"] if n[0].isupper()))
        case "const":
            wanted = schema["const"]
            yield DecodeError(path, f"expected kind {wanted}", data, wanted)
        case "minimum" | "maximum":
            low, high = schema["minimum"], schema["maximum"]
            yield DecodeError(path, f"{data} is outside of {low} to {high}", data)
        case "format":
            nearest = _BY_NAME[schema["format"]].nearest
            meant = nearest(data) if isinstance(data, str) else None
            yield DecodeError(path, str(error.cause), data, meant)
        case "not":  # DDL columns under both of their names
            yield wrong_type((*path, "schema"), "an object", data["schema"])
        case "anyOf":
            yield from _of_branch(error, validator)


def _wanted(schema: Mapping[str, Any]) -> str:
    if "format" in schema:
        return _BY_NAME[schema["format"]].words
    return "an object with `kind`" if "allOf" in schema else _WORDS[schema["type"]]


def _of_branch(error: Any, validator: Any) -> Iterator[DecodeError]:
    """What is wrong in the branch that was meant."""
    data, branches = error.instance, error.validator_value
    meant = next(n for n, each in enumerate(branches) if not each.keys() & {"enum", "const"})
    if isinstance(data, list):
        lists = (n for n, each in enumerate(branches) if each.get("type") == "array")
        meant = next(lists, meant)
    if isinstance(data, str) and "enum" in branches[0]:
        # A name alone stands for an object of that kind with nothing else in it.
        whole = validator.evolve(schema={**branches[meant], "$defs": validator.schema["$defs"]})
        for each in whole.iter_errors({"kind": data}):
            for told in _told(each, whole):
                at = (*error.absolute_path, *(key for key in told.path if key != "kind"))
                yield replace(told, path=at)
        return
    for each in error.context:
        if each.schema_path[0] == meant:
            yield from _told(each, validator)
