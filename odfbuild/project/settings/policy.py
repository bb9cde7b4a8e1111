"""Allowed kinds of change, by name patterns: `policies` of odfbuild.yaml."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from odfbuild.project.settings.by_name import MATCH, matching, patterns_of
from odfbuild.values import dataclass

RULED = ("additive", "forward-only", "rebuild")
"""The kinds of change that a policy can say something about. Breaking ones are always refused."""

_RULE = {"type": "string", "enum": ["allow", "refuse"], "default": "allow"}
_ABOUT = {
    "additive": "New columns, all others as before",
    "forward-only": "Other logic or another source: only new records change",
    "rebuild": "Dropping the history to rebuild it; `refuse` protects the dataset",
}

SCHEMA: dict[str, Any] = {
    "type": "array",
    "description": "What may happen to datasets, by name; of several that match, the last one wins",
    "items": {
        "type": "object",
        "additionalProperties": False,
        "required": ["match"],
        "properties": {
            "match": MATCH,
            **{kind: {**_RULE, "description": _ABOUT[kind]} for kind in RULED},
        },
    },
}
"""What `policies` may hold."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Datasets whose name matches one of `match`, and for kinds of change whether they may be."""

    match: tuple[str, ...]
    allowed: tuple[tuple[str, bool], ...]


def policies_from(data: Iterable[Mapping[str, Any]]) -> tuple[Policy, ...]:
    """Policies from what `SCHEMA` lets through."""
    return tuple(
        Policy(
            patterns_of(each),
            tuple((kind, each[kind] == "allow") for kind in RULED if kind in each),
        )
        for each in data
    )


def refusing(policies: Iterable[Policy], name: str, kind: str) -> str | None:
    """The pattern by which a kind of change is refused for a dataset; `None`: it is allowed."""
    pattern: str | None = None
    for policy in policies:
        ruled = dict(policy.allowed)
        matched = matching(policy, name)
        if matched is not None and kind in ruled:
            pattern = None if ruled[kind] else matched
    return pattern
