"""What the YAML of a dbt project says of its tables: columns, tests, tags, owners, settings.

The same entries stand in the project's own files and, resolved, in `target/manifest.json`. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from odfbuild.exchange.dbt.model import Column, GenericTest, Place

_REFERENCE = re.compile(r"\s*(?:\{\{\s*)?(ref|source)\s*\((.*)\)\s*(?:\}\})?\s*", re.DOTALL)
_TEXT = re.compile(r"""(['"])(.*?)\1""")
_SETTINGS_OF_A_TEST = ("config", "arguments", "name", "severity", "where", "description", "tags")
_MAPPINGS = ("meta", "column_types", "docs", "persist_docs", "contract", "grants")
_UNITS = {"minute": "m", "hour": "h", "day": "d"}

Data = Mapping[str, Any]


def mapping(value: Any) -> Data:
    """The value itself if it is a mapping, else an empty one."""
    return value if isinstance(value, dict) else {}


def entries(value: Any) -> list[Data]:
    """The mappings of a list; of anything else none."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def reference(text: Any) -> tuple[str, ...] | None:
    """`("ref", "orders")` of `ref('orders')`, likewise `source`; `None` for any other text."""
    found = _REFERENCE.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        return None
    words = tuple(each[2] for each in _TEXT.finditer(found[2]))
    return (found[1], *words) if words else None


def columns_of(data: Data) -> tuple[Column, ...]:
    """The columns that an entry describes."""
    listed = data.get("columns") or []
    found = listed.values() if isinstance(listed, dict) else entries(listed)
    return tuple(
        Column(
            str(each["name"]),
            _text(each.get("data_type")),
            str(each.get("description") or "").strip(),
        )
        for each in found
        if each.get("name")
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def tests_of(data: Data, place_of: Any) -> Iterable[GenericTest]:
    """The generic tests of an entry; `place_of` tells the place of a path in it."""
    yield from _tests(data, None, (), place_of)
    for number, column in enumerate(entries(data.get("columns"))):
        yield from _tests(column, str(column.get("name")), ("columns", number), place_of)


def _tests(
    data: Data, column: str | None, path: tuple[str | int, ...], place_of: Any
) -> Iterable[GenericTest]:
    for key in ("tests", "data_tests"):
        listed = data.get(key)
        for number, each in enumerate(listed if isinstance(listed, list) else ()):
            place = place_of((*path, key, number))
            if isinstance(each, str):
                yield GenericTest(name=each, column=column, place=place)
            elif isinstance(each, dict) and each:
                yield _test(each, column, place)


def _test(data: Data, column: str | None, place: Place) -> GenericTest:
    name, given = next(iter(data.items()))
    if name in _SETTINGS_OF_A_TEST or "test_name" in data:
        name, given = str(data.get("test_name")), data
    given = mapping(given)
    config = {**data, **given, **mapping(given.get("config")), **mapping(data.get("config"))}
    arguments = {key: value for key, value in given.items() if key not in _SETTINGS_OF_A_TEST}
    arguments.pop("test_name", None)
    arguments |= mapping(given.get("arguments"))
    if config.get("where"):
        arguments["where"] = config["where"]
    return GenericTest(
        name=str(name),
        column=arguments.pop("column_name", column),
        arguments=arguments,
        severity=str(config.get("severity") or "error").lower(),
        place=place,
    )


def config_at(tree: Any, parts: Iterable[str]) -> dict[str, Any]:
    """What `dbt_project.yml` sets for the table at `parts`: the project, folders, its name."""
    config: dict[str, Any] = {}
    rest = [*parts]
    while isinstance(tree, dict):
        for key, value in tree.items():
            name = key.removeprefix("+")
            if key != name or not isinstance(value, dict) or name in _MAPPINGS:
                _set(config, name, value)
        tree = tree.get(rest.pop(0)) if rest else None
    return config


def merged(*configs: Data) -> dict[str, Any]:
    """Settings of which the later ones hold; tags and `meta` add up."""
    config: dict[str, Any] = {}
    for each in configs:
        for key, value in each.items():
            _set(config, key.removeprefix("+"), value)
    return config


def _set(config: dict[str, Any], key: str, value: Any) -> None:
    if key == "tags":
        config[key] = list(dict.fromkeys([*listed(config.get(key)), *listed(value)]))
    elif key == "meta":
        config[key] = {**mapping(config.get(key)), **mapping(value)}
    else:
        config[key] = value


def listed(value: Any) -> list[str]:
    """One text or several as a list."""
    if value is None or value == "":
        return []
    return [str(each) for each in value] if isinstance(value, list | tuple) else [str(value)]


def owners_of(config: Data, groups: Mapping[str, str]) -> tuple[str, ...]:
    """Owners by `meta.owner`, else the one of its group."""
    owner = mapping(config.get("meta")).get("owner")
    if isinstance(owner, dict):
        owner = owner.get("email") or owner.get("name")
    found = listed(owner)
    group = config.get("group")
    if not found and isinstance(group, str):
        found = listed(groups.get(group))
    return tuple(found)


def owner_of(data: Data) -> str | None:
    """E-mail address or name of the owner of a group or an exposure."""
    owner = mapping(data.get("owner"))
    found = owner.get("email") or owner.get("name")
    words = listed(found)
    return words[0] if words else None


def age(freshness: Any) -> str | None:
    """`error_after`, else `warn_after`, such as `36h`."""
    for key in ("error_after", "warn_after"):
        after = mapping(mapping(freshness).get(key))
        count, unit = after.get("count"), _UNITS.get(str(after.get("period")))
        if isinstance(count, int) and count > 0 and unit:
            return f"{count}{unit}"
    return None


def external(data: Data, source: Data) -> str | None:
    """Where the files of a source are: what dbt-duckdb and dbt-external-tables take for it."""
    for each in (data, source):
        metas = (mapping(each.get("meta")), mapping(mapping(each.get("config")).get("meta")))
        config = mapping(each.get("config"))
        for place in (*metas, config):
            location = place.get("external_location")
            if isinstance(location, str):
                return location.replace("{name}", str(data.get("name")))
    location = mapping(data.get("external")).get("location")
    return location if isinstance(location, str) else None
