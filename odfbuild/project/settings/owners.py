"""Owners of datasets, by name patterns: `owners` of odfbuild.yaml.

As in a CODEOWNERS file, the last matching entry wins; an entry without owners removes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from odfbuild.project.settings.by_name import MATCH, last_matching, patterns_of
from odfbuild.values import dataclass

SCHEMA: dict[str, Any] = {
    "type": "array",
    "description": "Owners of datasets; of several entries that match, the last one wins",
    "items": {
        "type": "object",
        "additionalProperties": False,
        "required": ["match", "owners"],
        "properties": {
            "match": MATCH,
            "owners": {
                "type": "array",
                "items": {"type": "string", "minLength": 1},
                "description": "Teams or people: @data/rail, ann@example.org",
            },
        },
    },
}
"""What `owners` may hold."""


@dataclass(frozen=True, slots=True)
class Ownership:
    """Datasets whose name matches have these owners."""

    match: tuple[str, ...]
    owners: tuple[str, ...]


def owners_from(data: Iterable[Mapping[str, Any]]) -> tuple[Ownership, ...]:
    """Entries from what `SCHEMA` lets through."""
    return tuple(Ownership(patterns_of(each), tuple(each["owners"])) for each in data)


def owners_of(declared: Iterable[Ownership], name: str) -> tuple[str, ...]:
    """Whom to ask about a dataset; nobody where nothing is said."""
    found = last_matching(declared, name)
    return found.owners if found else ()
