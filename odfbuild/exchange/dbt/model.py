"""A dbt project as plain values, from whichever files it was read.

`sources.py` reads the project's own files, `manifest.py` what dbt wrote to `target/`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from odfbuild.values import Value

Kind = Literal["model", "seed", "source", "snapshot"]
OTHERS = {
    "semantic_models": "semantic model",
    "metrics": "metric",
    "saved_queries": "saved query",
}
"""What has no counterpart here, by its key in files of dbt."""
MARKER = "odfbuild_input_{}_"
"""Stands in a query for a table that it reads, until its alias is known."""


class Place(Value):
    """A file of the dbt project, relative to its folder, and a line from 1 (`None`: all of it)."""

    file: str
    line: int | None = None

    def __str__(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"


class Note(Value):
    """What someone has to look at, and where."""

    text: str
    place: Place


class Query(Value):
    """A rendered query: in place of the tables that it reads stands `MARKER` with their number."""

    sql: str
    inputs: tuple[str, ...]
    """Ids of what it reads, by number."""
    notes: tuple[Note, ...] = ()


class Column(Value):
    """A column as the project describes it; `type` in the dialect of its database."""

    name: str
    type: str | None = None
    description: str = ""


class GenericTest(Value, kw_only=True):
    """A generic test of a node; `name` with its package, such as `dbt_utils.accepted_range`."""

    name: str
    column: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    severity: str = "error"
    place: Place


class Singular(Value):
    """A test that is a query of its own, or why it could not be rendered."""

    name: str
    place: Place
    query: Query | None
    problem: Note | None = None


class UnitTest(Value, kw_only=True):
    """A unit test of dbt, as its YAML says it; `model` is an id or what no model is called."""

    name: str
    model: str
    given: tuple[Mapping[str, Any], ...]
    expect: Mapping[str, Any]
    overrides: Mapping[str, Any] = field(default_factory=dict)
    place: Place


class Exposure(Value):
    """Who uses which nodes (by id)."""

    name: str
    place: Place
    reads: tuple[str, ...]
    owner: str | None = None


class Other(Value):
    """What has no equivalent here, such as a metric."""

    kind: str
    name: str
    place: Place


class Node(Value, kw_only=True):
    """A table of the project.

    A model or snapshot has a `query`, or a `problem` that says why there is none. A seed has its
    CSV file at `place`, a source may have files at `location`.
    """

    id: str
    kind: Kind
    name: str
    table: str
    """What it is called in its database."""
    schema: str | None = None
    group: str | None = None
    """Of a source: the name of its source."""
    place: Place
    query: Query | None = None
    problem: Note | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    description: str = ""
    columns: tuple[Column, ...] = ()
    tests: tuple[GenericTest, ...] = ()
    tags: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    location: str | None = None
    max_age: str | None = None
    """Of a source: the age from which dbt calls it stale, as odfbuild writes ages."""


class DbtProject(Value, kw_only=True):
    """All that is moved; `read_from` names the files that it came from."""

    name: str
    dialect: str
    """In the words of sqlglot."""
    read_from: str
    nodes: tuple[Node, ...]
    singular: tuple[Singular, ...] = ()
    unit_tests: tuple[UnitTest, ...] = ()
    exposures: tuple[Exposure, ...] = ()
    others: tuple[Other, ...] = ()
