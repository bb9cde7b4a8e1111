"""What keys and values of YAML files mean, and which may stand at a place.

Follows the JSON Schemas, which are generated from the event types and the declared settings. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from odfbuild.errors import Path
from odfbuild.project.resources import schema_text
from odfbuild.values import Value

Schema = Mapping[str, Any]
Kinds = Callable[[Path], str | None]
"""The text at a path of the document, such as that of `kind`; `None` where there is none."""

_RECORDED = ("AddData", "ExecuteTransform", "Seed")
"""Events that only a run appends: no definition has them."""
_FILES = {
    "DatasetSnapshot": "DatasetSnapshot.json",
    "Project": "Project.json",
    "UnitTests": "UnitTests.json",
}


class Explained(Value):
    """A key or value: `name`, what it means, what may stand there, and whether it must be there.

    `section` is the object of the specification that it belongs to, `shape` what follows a key:
    `value`, `object` or `list`.
    """

    name: str
    about: str = ""
    type: str = ""
    required: bool = False
    section: str | None = None
    shape: str = "value"

    @property
    def markdown(self) -> str:
        """What an editor shows."""
        first = f"**{self.name}**" + (f": {self.type}" if self.type else "")
        parts = [first + (", required" if self.required else "")]
        if self.about:
            parts.append(self.about)
        if self.section:
            parts.append(f"Open Data Fabric, section {self.section}")
        return "\n\n".join(parts)


def keys_at(kind: str, path: Path, kinds: Kinds) -> list[Explained]:
    """The keys that an object may have which `path` leads to, those that must be there first."""
    found = _follow(kind, path, kinds)
    if found is None:
        return []
    schema, _ = found
    required = schema.get("required", ())
    listed = [
        _explained(name, part, found, name in required, _root(kind))
        for name, part in schema.get("properties", {}).items()
    ]
    return sorted(listed, key=lambda each: not each.required)


def key_at(kind: str, path: Path, kinds: Kinds) -> Explained | None:
    """What the last key of a path means; `None` where nothing is known of it."""
    if not path or isinstance(path[-1], int):
        return None
    found = _follow(kind, path[:-1], kinds)
    if found is None:
        return None
    schema, _ = found
    part = schema.get("properties", {}).get(path[-1])
    if part is None:
        return None
    required = path[-1] in schema.get("required", ())
    return _explained(str(path[-1]), part, found, required, _root(kind))


def values_at(kind: str, path: Path, kinds: Kinds) -> list[Explained]:
    """The values that may stand at a path, as far as they can be listed; each in one spelling."""
    if not path:
        return []
    if path[-1] == "kind" and len(path) > 1:
        listed = _kinds_of(kind, path[:-1], kinds)
        if listed:
            return listed
    found = _follow(kind, path, kinds)
    return [] if found is None else list(_values(found[0]))


def _values(schema: Schema) -> Iterator[Explained]:
    about = schema.get("description", "")
    if "const" in schema:
        yield Explained(str(schema["const"]), about)
    elif "enum" in schema:
        seen: set[str] = set()
        for each in schema["enum"]:
            # The same word may be written in several ways: the first one is ours.
            if str(each).lower() not in seen:
                seen.add(str(each).lower())
                yield Explained(str(each), about)
    elif schema.get("type") == "boolean":
        yield Explained("true", about)
        yield Explained("false", about)


def _kinds_of(kind: str, path: Path, kinds: Kinds) -> list[Explained]:
    """The objects of which one stands at a path, told apart by `kind`."""
    parts = _follow(kind, path, kinds, chosen=False)
    if parts is None or "allOf" not in parts[0]:
        return []
    listed = []
    for each in parts[0]["allOf"]:
        name = each["if"]["properties"]["kind"]["enum"][0]
        if name in _RECORDED:
            continue
        target, section = _resolved(each["then"], _root(kind), None)
        listed.append(Explained(name, target.get("description", ""), "object", section=section))
    return listed


@cache
def _root(kind: str) -> Schema:
    schema: Schema = json.loads(schema_text(_FILES[kind]))
    return schema


def is_known(kind: str | None) -> bool:
    """Whether there is a schema for documents of a kind."""
    return kind in _FILES


def _resolved(schema: Schema, root: Schema, section: str | None) -> tuple[Schema, str | None]:
    """A schema without references and without the choice of leaving it out."""
    while True:
        if "$ref" in schema:
            section = schema["$ref"].rpartition("/")[2]
            schema = root["$defs"][section]
        elif "anyOf" in schema:
            parts = [each for each in schema["anyOf"] if each.get("type") != "null"]
            if len(parts) != 1:
                return schema, section
            schema = {**parts[0], **{k: v for k, v in schema.items() if k == "description"}}
        else:
            return schema, section


def _follow(
    kind: str, path: Path, kinds: Kinds, *, chosen: bool = True
) -> tuple[Schema, str | None] | None:
    """The schema of what a path leads to, and its object of the specification.

    `chosen`: of several objects that may stand there, the one that its `kind` names.
    """
    root = _root(kind)
    schema, section = root, None
    for number in range(len(path) + 1):
        schema, section = _resolved(schema, root, section)
        if "allOf" in schema and (chosen or number < len(path)):
            name = (kinds((*path[:number], "kind")) or "").lower()
            for each in schema["allOf"]:
                if name in map(str.lower, each["if"]["properties"]["kind"]["enum"]):
                    schema, section = _resolved(each["then"], root, section)
        if number == len(path):
            break
        part = path[number]
        if isinstance(part, int):
            below = schema.get("items")
        else:
            below = schema.get("properties", {}).get(part, schema.get("additionalProperties"))
        if not isinstance(below, Mapping):
            return None
        schema = below
    return schema, section


def _explained(
    name: str, part: Schema, around: tuple[Schema, str | None], required: bool, root: Schema
) -> Explained:
    owner, section = around
    target, of = _resolved(part, root, section)
    about = str(part.get("description") or target.get("description") or "")
    items = target.get("items")
    if not about and isinstance(items, Mapping):
        about = str(_resolved(items, root, None)[0].get("description", ""))
    if not about and owner.get("description"):
        about = f"Part of {section}: {owner['description']}"
    default = target.get("default", part.get("default"))
    if default is not None:
        about = f"{about}\n\nDefault: `{json.dumps(default)}`".strip()
    examples = target.get("examples")
    if examples:
        about += "\n\nFor example " + ", ".join(f"`{json.dumps(each)}`" for each in examples)
    shape = {"object": "object", "array": "list"}.get(str(target.get("type")), "value")
    is_object = of != section and shape == "object"
    return Explained(
        name, about.strip(), _type(target, root), required, of if is_object else section, shape
    )


def _type(schema: Schema, root: Schema) -> str:
    """The type of a value in words."""
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        listed = list(_values(schema))
        return "one of " + ", ".join(f"`{each.name}`" for each in listed)
    if "anyOf" in schema:
        parts = [each for each in schema["anyOf"] if each.get("type") != "null"]
        return " or ".join(
            dict.fromkeys(_type(_resolved(each, root, None)[0], root) for each in parts)
        )
    kind = str(schema.get("type", ""))
    if kind == "array":
        return f"list of {_type(_resolved(schema['items'], root, None)[0], root)}"
    return {"string": "text", "integer": "whole number", "boolean": "`true` or `false`"}.get(
        kind, kind
    )
