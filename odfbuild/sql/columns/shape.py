"""The shape of a query: its text with other names for its inputs.

Templates make many queries that differ in the names of what they read only. What is found of one
shape holds for all of them, so each is parsed once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from odfbuild.odf.model import TransformSql


class Shape(NamedTuple):
    """A transformation, and by the name of each input what it is called in there."""

    transform: TransformSql
    names: Mapping[str, str]

    def is_told_of(self, columns: Iterable[str]) -> bool:
        """Whether an input's name became that of a column, so that the shape tells another one."""
        return any(name in column for column in columns for name in self.names.values())


def shape_of(transform: TransformSql, aliases: Iterable[str]) -> Shape | None:
    """The shape of a transformation; `None` where it is that of no other one.

    Only a name in backquotes that is nothing else in the query is replaced.
    """
    steps = transform.queries or ()
    names = {alias: f"input{number}__" for number, alias in enumerate(aliases)}
    texts = [step.query for step in steps]
    for alias, name in names.items():
        texts = [text.replace(f"`{alias}`", f"`{name}`") for text in texts]
    left = "\n".join(texts).lower()
    if any(step.alias for step in steps) or any(alias.lower() in left for alias in names):
        return None
    queries = tuple(replace(step, query=text) for step, text in zip(steps, texts, strict=True))
    called = {alias.lower(): name for alias, name in names.items()}
    tables = transform.temporal_tables and tuple(
        replace(table, name=called.get(table.name.lower(), table.name))
        for table in transform.temporal_tables
    )
    return Shape(replace(transform, queries=queries, temporal_tables=tables), names)
