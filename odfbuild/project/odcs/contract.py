"""Contracts as files of a project: what they promise, each with its place.

Read as far as odfbuild can hold a dataset to it: columns, types, required values, rules and age.
Source: Open Data Contract Standard 3.1.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import lru_cache
from typing import Any, NoReturn

from odfbuild.errors import Location, ProjectError
from odfbuild.project.model import Config
from odfbuild.project.odcs.quality import checks_of_rule
from odfbuild.project.settings.by_name import matching
from odfbuild.project.source import read_text
from odfbuild.project.yaml.source import locate, read_documents
from odfbuild.records.checks import Check, NotNull, Unique
from odfbuild.values import Value

Path = tuple[str | int, ...]

_AGES = ("latency", "freshness")
"""What contracts call the greatest age of records."""
_UNITS = {
    "s": ("s", "sec", "second", "seconds"),
    "m": ("m", "min", "minute", "minutes"),
    "h": ("h", "hr", "hour", "hours"),
    "d": ("d", "day", "days"),
    "w": ("w", "week", "weeks"),
}
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
"""Seconds of each unit of an age."""


class PromisedColumn(Value, kw_only=True):
    """A column by its name; types are `None` where the contract does not say them."""

    name: str
    logical: str | None
    physical: str | None
    path: Path


class Promise(Value):
    """A check that a contract asks for."""

    check: Check
    path: Path


class Contract(Value, kw_only=True):
    """What a file promises of a dataset. Paths lead to places in the file."""

    file: str
    text: str
    columns: tuple[PromisedColumn, ...]
    checks: tuple[Promise, ...]
    max_age: timedelta | None = None
    age_path: Path = ()

    def place(self, path: Path) -> Location:
        """Where something stands in the file."""
        return locate(self.text, self.file, 0, path)


def contracts_of(config: Config, dataset: str) -> Iterator[Contract]:
    """The contracts of a dataset; `ProjectError` E0399 for a file that is none."""
    for each in config.contracts:
        if matching(each, dataset) is not None:
            path = config.root / each.file
            config.boundary.check_open(path)
            yield read_contract(read_text(path, each.file), each.file, dataset)


def read_contract(text: str, file: str, dataset: str) -> Contract:
    """The part of a contract that is about a dataset: the schema that has its name, or the only.

    `ProjectError` E0399 when the text is no contract, or has no such part.
    """
    reader = _Reader(text, file)
    data = _data(text, file)
    if not isinstance(data, dict) or data.get("kind") != "DataContract":
        reader.refuse("its `kind` is not `DataContract`", ("kind",))
    version = data.get("apiVersion")
    if not isinstance(version, str) or not version.startswith("v3."):
        reader.refuse("its `apiVersion` is not one of v3", ("apiVersion",))
    number, schema = reader.schema_of(data, dataset)
    inside: Path = ("schema", number)
    columns: list[PromisedColumn] = []
    checks = [*_rules(schema, None, inside)]
    for index, each in enumerate(reader.objects(schema, "properties", inside)):
        at = (*inside, "properties", index)
        name = each.get("physicalName") or each.get("name")
        if not isinstance(name, str):
            reader.refuse("a property has no `name`", at)
        columns.append(
            PromisedColumn(
                name=name,
                logical=_text(each, "logicalType"),
                physical=_text(each, "physicalType"),
                path=at,
            )
        )
        if each.get("required") is True:
            checks.append(Promise(NotNull(name), (*at, "required")))
        if each.get("unique") is True:
            checks.append(Promise(Unique((name,)), (*at, "unique")))
        checks += _rules(each, name, at)
    max_age, age_path = reader.age(data)
    return Contract(
        file=file,
        text=text,
        columns=tuple(columns),
        checks=tuple(checks),
        max_age=max_age,
        age_path=age_path,
    )


@lru_cache(16)
def _data(text: str, file: str) -> Any:
    """The first document; one contract may be about many datasets."""
    documents = read_documents(text, file)
    return documents[0] if documents else None


class _Reader(Value):
    """The text of a file, and errors with places in it."""

    text: str
    file: str

    def refuse(self, why: str, path: Path) -> NoReturn:
        """Raise the error for what is no contract."""
        raise ProjectError(
            f"this is no data contract that can be read: {why}",
            code="E0399",
            location=locate(self.text, self.file, 0, path),
            help="write it in the form of the Open Data Contract Standard 3, as `odfbuild passport "
            "DATASET --format odcs` prints it, or correct `contracts` in odfbuild.yaml",
        )

    def schema_of(self, data: Mapping[str, Any], dataset: str) -> tuple[int, Mapping[str, Any]]:
        """The schema of a dataset, and its number."""
        schemas = self.objects(data, "schema", ())
        for number, each in enumerate(schemas):
            names = (each.get("physicalName"), each.get("name"))
            if dataset.lower() in [name.lower() for name in names if isinstance(name, str)]:
                return number, each
        if len(schemas) != 1:
            self.refuse(f"none of its schemas is called '{dataset}'", ("schema",))
        return 0, schemas[0]

    def objects(self, data: Mapping[str, Any], key: str, path: Path) -> list[dict[str, Any]]:
        """A list of objects; empty where there is none."""
        found = data.get(key) or []
        if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
            self.refuse(f"`{key}` is not a list of objects", (*path, key))
        return found

    def age(self, data: Mapping[str, Any]) -> tuple[timedelta | None, Path]:
        """The least of the ages that it names, and where; `None`: it names none."""
        found: list[tuple[timedelta, Path]] = []
        for index, each in enumerate(self.objects(data, "slaProperties", ())):
            if each.get("property") in _AGES:
                path: Path = ("slaProperties", index)
                unit = next((u for u, names in _UNITS.items() if each.get("unit") in names), "")
                try:
                    seconds = float(each["value"]) * SECONDS[unit]
                    found.append((timedelta(seconds=seconds), path))
                except (KeyError, TypeError, ValueError, OverflowError):
                    why = "an age has a number as `value`, and s, m, h, d or w as `unit`"
                    self.refuse(why, path)
        return min(found, key=lambda each: each[0], default=(None, ()))


def _text(data: Mapping[str, Any], key: str) -> str | None:
    found = data.get(key)
    return found if isinstance(found, str) else None


def _rules(data: Mapping[str, Any], column: str | None, path: Path) -> Iterator[Promise]:
    found = data.get("quality")
    for index, rule in enumerate(found if isinstance(found, list) else ()):
        # A rule that only warns is no promise.
        if isinstance(rule, dict) and rule.get("severity") not in ("warning", "info"):
            for check in checks_of_rule(rule, column):
                yield Promise(check, (*path, "quality", index))
