"""What the migration of a dbt project gives: files to write, and what became of each part."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from odfbuild.exchange.dbt.model import Note, Place
from odfbuild.values import Value

Status = Literal["moved", "by hand", "not moved"]
STATUSES: tuple[Status, ...] = ("moved", "by hand", "not moved")


class Item(Value, kw_only=True):
    """A part of the dbt project: a table, a test, an exposure.

    `moved`: it is valid here; notes say what is different. `by hand`: it was written as far as
    possible, and notes say what is missing. `not moved`: nothing was written, and notes say why.
    """

    kind: str
    name: str
    place: Place
    status: Status
    target: str | None = None
    """The dataset or file that it became."""
    notes: tuple[Note, ...] = ()


class Migrated(Value, kw_only=True):
    """Files relative to the new project: texts, and data files to copy there."""

    project: str
    read_from: str
    texts: Mapping[str, str]
    copies: Mapping[str, Path]
    items: tuple[Item, ...]
    definitions: Mapping[str, str]
    """Files of definitions by id in dbt."""
