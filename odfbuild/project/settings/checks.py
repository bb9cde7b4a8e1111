"""Checks of data, by patterns of dataset names: `checks` of odfbuild.yaml.

They are about the records of a step before it is committed; `odfbuild test` asks the same of all
records that are committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from odfbuild.engine.checks import (
    AcceptedValues,
    Asked,
    Check,
    NotNull,
    Relationship,
    RowCount,
    Sql,
    Unique,
)
from odfbuild.project.settings.by_name import MATCH, matching, patterns_of
from odfbuild.values import dataclass

Path = tuple[str | int, ...]
"""Where a check is declared, below `checks`: number of the entry, kind, number or name."""

_NAME = {"type": "string", "minLength": 1}
_COLUMNS = {"type": "array", "items": _NAME}
_COUNT = {"type": "integer", "minimum": 0}

SCHEMA: dict[str, Any] = {
    "type": "array",
    "description": "Conditions on records before they are committed, by names of datasets",
    "items": {
        "type": "object",
        "additionalProperties": False,
        "required": ["match"],
        "properties": {
            "match": MATCH,
            "notNull": {**_COLUMNS, "description": "Columns that have a value in every record"},
            "unique": {
                "type": "array",
                "items": _COLUMNS,
                "description": "Lists of columns whose values together no two records share",
            },
            "acceptedValues": {
                "type": "object",
                "additionalProperties": {"type": "array", "items": {}},
                "description": "The only values of a column",
            },
            "relationships": {
                "type": "object",
                "additionalProperties": {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["to", "field"],
                    "properties": {"to": _NAME, "field": _NAME},
                },
                "description": "Columns whose values are there in a column of another dataset",
            },
            "rowCount": {
                "type": "object",
                "additionalProperties": False,
                "properties": {"min": _COUNT, "max": _COUNT},
                "description": "How many records a step may have",
            },
            "sql": {
                "type": "object",
                "additionalProperties": _NAME,
                "description": "Queries over `slice` that must find nothing, by what they say",
            },
            "severity": {"type": "string", "enum": ["error", "warn"], "default": "error"},
        },
    },
}
"""What `checks` may hold."""


@dataclass(frozen=True, slots=True)
class Declared:
    """Checks with their paths, by patterns of names; those that only `warn` stop nothing."""

    match: tuple[str, ...]
    checks: tuple[tuple[Check, Path], ...]
    warn: bool


def checks_from(data: Iterable[Mapping[str, Any]]) -> tuple[Declared, ...]:
    """Checks from what `SCHEMA` lets through."""
    return tuple(
        Declared(
            patterns_of(each),
            tuple((check, (number, *path)) for check, path in _checks(each)),
            each.get("severity") == "warn",
        )
        for number, each in enumerate(data)
    )


def checks_of(declared: Iterable[Declared], name: str) -> tuple[Asked, ...]:
    """The checks of a dataset: those of all entries that match."""
    return tuple(
        Asked(check, each.warn, path)
        for each in declared
        if matching(each, name) is not None
        for check, path in each.checks
    )


def _checks(data: Mapping[str, Any]) -> Iterator[tuple[Check, Path]]:
    for number, column in enumerate(data.get("notNull", ())):
        yield NotNull(column), ("notNull", number)
    for number, columns in enumerate(data.get("unique", ())):
        yield Unique(tuple(columns)), ("unique", number)
    for column, values in data.get("acceptedValues", {}).items():
        yield AcceptedValues(column, tuple(values)), ("acceptedValues", column)
    for column, target in data.get("relationships", {}).items():
        check = Relationship(column, target["to"], target["field"])
        yield check, ("relationships", column)
    if bounds := data.get("rowCount"):
        yield RowCount(bounds.get("min"), bounds.get("max")), ("rowCount",)
    for name, query in data.get("sql", {}).items():
        yield Sql(name, query), ("sql", name)
