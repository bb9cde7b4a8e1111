"""Objects as plain data, the form in which people write them in YAML, and how names are spelled.

Sources: metadata reference; RFC-013 (spelling of enums).
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from enum import Enum
from typing import Any

from odfbuild.odf.identity import DatasetAlias, DatasetId
from odfbuild.odf.introspect import fields_of, is_member
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp

MANIFEST_VERSIONS: Mapping[str, tuple[int, ...]] = {
    "DatasetSnapshot": (1,),
    "MetadataBlock": (2, 3),
}
_WRITTEN_VERSION = {"DatasetSnapshot": 1, "MetadataBlock": 3}


def to_data(value: Any) -> Any:
    """Canonical plain data of an object: fields in order, absent ones left out, `kind` first."""
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, Multihash | DatasetId | DatasetAlias | Timestamp):
        return str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, tuple | list):
        return [to_data(item) for item in value]
    if isinstance(value, Mapping):
        return {key: to_data(item) for key, item in sorted(value.items())}
    if value is None or isinstance(value, str | bool | int | float):
        return value
    data: dict[str, Any] = {"kind": value.KIND} if is_member(type(value)) else {}
    for field in fields_of(type(value)):
        item = getattr(value, field.name)
        if item is not None:
            data[field.key] = to_data(item)
    return data


def to_manifest(value: Any) -> dict[str, Any]:
    """Canonical plain data of a snapshot or block, wrapped in its manifest."""
    kind = type(value).__name__
    return {"kind": kind, "version": _WRITTEN_VERSION[kind], "content": to_data(value)}


def spellings(names: tuple[str, ...]) -> dict[str, str]:
    """PascalCase, camelCase and lowercase to PascalCase (RFC-013)."""
    table = {}
    for name in names:
        for spelling in (name, name[0].lower() + name[1:], name.lower()):
            table[spelling] = name
    return table


SHORT_FORMS = ("DataType", "EventTimeSource", "SourceCaching")
"""Unions whose members may be written as their name alone."""


def is_read_step(cls: type) -> bool:
    """Whether `schema` of an object may be a list of DDL columns, as it was up to 0.37."""
    return cls.__name__.startswith("ReadStep")
