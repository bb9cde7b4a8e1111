"""Queries that shape data, and what they read."""

from __future__ import annotations

from typing import ClassVar

from odfbuild.odf.identity import DatasetRef
from odfbuild.odf.model.record import Record


class SqlQueryStep(Record):
    """A query; with an alias it becomes a view for later steps, without one it is the result."""

    alias: str | None = None
    query: str


class TemporalTable(Record):
    """A stream turned into a temporal table (as-of joins)."""

    name: str
    primary_key: tuple[str, ...]


class TransformSql(Record):
    """SQL in the dialect of `engine`. Committed in normal form: `queries` only."""

    KIND: ClassVar[str] = "Sql"

    engine: str
    version: str | None = None
    query: str | None = None
    queries: tuple[SqlQueryStep, ...] | None = None
    temporal_tables: tuple[TemporalTable, ...] | None = None


Transform = TransformSql
"""Processing that shapes data."""


class TransformInput(Record):
    """An input of a transformation; committed with a DID and an alias."""

    dataset_ref: DatasetRef
    alias: str | None = None
