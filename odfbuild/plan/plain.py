"""Events as plain values for people and JSON: names in camelCase, hashes and times as text.

The form is that of the YAML manifests; absent fields are left out.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import fields
from enum import Enum
from functools import cache
from typing import Any


def to_plain(value: object) -> Any:
    """`value`, an object of the specification or a part of one, as dicts, lists, numbers, text."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple | list):
        return [to_plain(item) for item in value]
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    kind: Any = type(value)
    if not kind.__module__.startswith("odfbuild.odf.model"):
        return str(value)
    plain: dict[str, Any] = {"kind": kind.KIND} if hasattr(kind, "KIND") else {}
    for attribute, name in _names(kind):
        item = getattr(value, attribute)
        if item is not None:
            plain[name] = to_plain(item)
    return plain


@cache
def _names(kind: Any) -> tuple[tuple[str, str], ...]:
    return tuple((field.name, _camel(field.name)) for field in fields(kind))


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)
