"""Checks on the records of one dataset."""

from __future__ import annotations

from typing import Annotated, Any

from odfbuild.declared_settings import Fits, setting
from odfbuild.values import Value

Count = Annotated[int, Fits(minimum=0)]
GroupSize = Annotated[int, Fits(minimum=2)]


class NotNull(Value):
    """A column has a value in every record."""

    column: str

    def __str__(self) -> str:
        return f"notNull: {self.column}"


class Unique(Value):
    """No two records share the values of these columns; records without a value do not count."""

    columns: tuple[str, ...]

    def __str__(self) -> str:
        return f"unique: {', '.join(self.columns)}"


class AcceptedValues(Value):
    """A column has one of these values, or none."""

    column: str
    values: tuple[Any, ...]

    def __str__(self) -> str:
        return f"acceptedValues: {self.column}"


class Relationship(Value):
    """The values of a column are there in the column `field` of the dataset `to`."""

    column: str
    to: str
    field: str

    def __str__(self) -> str:
        return f"relationships: {self.column} to {self.to}.{self.field}"


class RowCount(Value):
    """There are at least and at most so many records."""

    least: Count | None = setting(None, key="min")
    most: Count | None = setting(None, key="max")

    def __str__(self) -> str:
        bounds = (("at least", self.least), ("at most", self.most))
        return "rowCount: " + ", ".join(f"{word} {n}" for word, n in bounds if n is not None)


class KAnonymous(Value):
    """Each combination of values of these columns that occurs has at least `k` records.

    It is about the current state of the dataset, not the new records alone. A missing value is a
    value of its own. Source: L. Sweeney, "k-anonymity: a model for protecting privacy" (2002).
    """

    columns: tuple[str, ...] = setting()
    k: GroupSize = setting()

    def __str__(self) -> str:
        return f"kAnonymous: {', '.join(self.columns)} with k = {self.k}"


class Sql(Value):
    """A query over the view `slice` finds nothing."""

    name: str
    query: str

    def __str__(self) -> str:
        return f"sql: {self.name}"


Check = NotNull | Unique | AcceptedValues | Relationship | RowCount | KAnonymous | Sql


class Asked(Value):
    """A check of one dataset, and its path below `checks` of odfbuild.yaml."""

    check: Check
    warn: bool
    path: tuple[str | int, ...] = ()
