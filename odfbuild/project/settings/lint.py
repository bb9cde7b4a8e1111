"""The rules of `odfbuild lint` and their levels: `lint` of odfbuild.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from odfbuild.declared_settings import Fits, schema_of
from odfbuild.values import Value


class Rule(Value):
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
        Rule("L020", "local-time", "a conversion from local time, which may be no time, or two"),
        Rule("L021", "event-time-column", "an event time that the source does not declare"),
        Rule("L022", "date-pattern", "minutes for months in the pattern of a date, or vice versa"),
        Rule("L023", "unnamed-column", "a column of a result without a name"),
        Rule("L024", "comma-join", "tables behind a comma, and no condition"),
        Rule("L025", "lone-query", "a file with a query and no definition beside it"),
        Rule("L026", "cursor-misses", "a cursor of a database, and which changes it does not see"),
    )
}
"""All rules by name, in the order of their codes."""

Level = Literal["off", "warn", "error"]
Levels = Annotated[
    Mapping[str, Level],
    Fits(
        additionalProperties=False,
        properties={
            rule.name: {**schema_of(Level), "description": rule.about} for rule in RULES.values()
        },
    ),
]
"""Levels by the names of rules."""
