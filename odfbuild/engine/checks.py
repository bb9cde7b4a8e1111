"""Checks on the records of one dataset."""

from __future__ import annotations

from typing import Annotated, Any

from odfbuild.declared_settings import Fits, setting
from odfbuild.values import dataclass

Count = Annotated[int, Fits(minimum=0)]


@dataclass(frozen=True, slots=True)
class NotNull:
    """A column has a value in every record."""

    column: str

    def __str__(self) -> str:
        return f"notNull: {self.column}"


@dataclass(frozen=True, slots=True)
class Unique:
    """No two records share the values of these columns; records without a value do not count."""

    columns: tuple[str, ...]

    def __str__(self) -> str:
        return f"unique: {', '.join(self.columns)}"


@dataclass(frozen=True, slots=True)
class AcceptedValues:
    """A column has one of these values, or none."""

    column: str
    values: tuple[Any, ...]

    def __str__(self) -> str:
        return f"acceptedValues: {self.column}"


@dataclass(frozen=True, slots=True)
class Relationship:
    """The values of a column are there in the column `field` of the dataset `to`."""

    column: str
    to: str
    field: str

    def __str__(self) -> str:
        return f"relationships: {self.column} to {self.to}.{self.field}"


@dataclass(frozen=True, slots=True)
class RowCount:
    """There are at least and at most so many records."""

    least: Count | None = setting(None, key="min")
    most: Count | None = setting(None, key="max")

    def __str__(self) -> str:
        bounds = (("at least", self.least), ("at most", self.most))
        return "rowCount: " + ", ".join(f"{word} {n}" for word, n in bounds if n is not None)


@dataclass(frozen=True, slots=True)
class Sql:
    """A query over the view `slice` finds nothing."""

    name: str
    query: str

    def __str__(self) -> str:
        return f"sql: {self.name}"


Check = NotNull | Unique | AcceptedValues | Relationship | RowCount | Sql


@dataclass(frozen=True, slots=True)
class Asked:
    """A check of one dataset, and its path below `checks` of odfbuild.yaml."""

    check: Check
    warn: bool
    path: tuple[str | int, ...] = ()
