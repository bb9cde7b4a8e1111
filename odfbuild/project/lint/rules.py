"""The rules of `odfbuild lint`, their levels, and what they find."""

from __future__ import annotations

from typing import Any

from odfbuild.values import dataclass

Path = tuple[str | int, ...]

LEVELS = ("off", "warn", "error")


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule; `about` says in one line what it finds."""

    code: str
    name: str
    about: str


RULES = {
    rule.name: rule
    for rule in (
        Rule("L001", "unused-input", "an input or a step of a query that no query uses"),
        Rule("L002", "select-star", "`*` over an input: a new column changes the result"),
        Rule("L005", "copied-query", "three or more queries that differ in literals only"),
        Rule("L007", "unpinned-image", "a container image without digest"),
        Rule("L008", "open-transport", "data fetched over a connection that anyone can change"),
        Rule("L009", "written-secret", "a password or token in the definition"),
        Rule("L010", "ambiguous-text", "plain text that YAML 1.1 takes for another value"),
        Rule("L011", "no-description", "a dataset without description"),
        Rule("L012", "file-name", "a file that is not named after its dataset"),
    )
}
"""All rules by name, in the order of their codes."""

SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        rule.name: {"type": "string", "enum": list(LEVELS), "description": rule.about}
        for rule in RULES.values()
    },
    "description": "Levels of rules for `odfbuild lint` (default: warn)",
}
"""What `lint` of odfbuild.yaml may hold."""


@dataclass(frozen=True, slots=True)
class Flaw:
    """What a rule found in a definition.

    `path` leads to the value below `content` (empty: the whole of it), `query` to line and column
    (from 1) in query number `step` of the transform at `path`, `length` is how much to underline.
    """

    rule: str
    message: str
    help: str
    path: Path = ()
    query: tuple[int, int, int] | None = None
    length: int = 1
    notes: tuple[str, ...] = ()
