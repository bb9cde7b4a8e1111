"""Checks of data, by patterns of dataset names: `checks` of odfbuild.yaml.

They are about the records of a step before it is committed, `kAnonymous` about the state that the
step leads to; `odfbuild test` asks the same of all records that are committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from odfbuild.declared_settings import setting
from odfbuild.project.settings.by_name import Name, Patterns, matching
from odfbuild.records.checks import (
    AcceptedValues,
    Asked,
    Check,
    KAnonymous,
    NotNull,
    Relationship,
    RowCount,
    Sql,
    Unique,
)
from odfbuild.values import Value

Path = tuple[str | int, ...]
"""Where a check is declared, below `checks`: number of the entry, kind, number or name."""

Columns = tuple[Name, ...]


class Related(Value):
    """The column of another dataset that has the values of one."""

    to: Name = setting()
    field: Name = setting()


class Declared(Value):
    """Checks by patterns of names; those whose severity is `warn` stop nothing."""

    match: Patterns = setting()
    not_null: Columns = setting((), "Columns that have a value in every record")
    unique: tuple[Columns, ...] = setting(
        (), "Lists of columns whose values together no two records share"
    )
    accepted_values: Mapping[str, tuple[Any, ...]] = setting({}, "The only values of a column")
    relationships: Mapping[str, Related] = setting(
        {}, "Columns whose values are there in a column of another dataset"
    )
    row_count: RowCount | None = setting(None, "How many records a step may have")
    k_anonymous: KAnonymous | None = setting(
        None, "Columns of whose values each combination must have at least `k` records in the state"
    )
    sql: Mapping[str, Name] = setting(
        {}, "Queries over `slice` that must find nothing, by what they say"
    )
    severity: Literal["error", "warn"] = setting("error")

    @property
    def checks(self) -> Iterator[tuple[Check, Path]]:
        """All of them, with their paths in the entry."""
        for number, column in enumerate(self.not_null):
            yield NotNull(column), ("notNull", number)
        for number, columns in enumerate(self.unique):
            yield Unique(columns), ("unique", number)
        for column, values in self.accepted_values.items():
            yield AcceptedValues(column, values), ("acceptedValues", column)
        for column, target in self.relationships.items():
            yield Relationship(column, target.to, target.field), ("relationships", column)
        if self.row_count not in (None, RowCount()):
            yield self.row_count, ("rowCount",)
        if self.k_anonymous is not None:
            yield self.k_anonymous, ("kAnonymous",)
        for name, query in self.sql.items():
            yield Sql(name, query), ("sql", name)


def referred_to(declared: Iterable[Declared], name: str) -> dict[str, Path]:
    """The datasets whose columns the checks of a dataset refer to, each with the place of one."""
    found: dict[str, Path] = {}
    for asked in checks_of(declared, name):
        if isinstance(asked.check, Relationship) and asked.check.to.lower() != name.lower():
            found.setdefault(asked.check.to, asked.path)
    return found


def checks_of(declared: Iterable[Declared], name: str) -> tuple[Asked, ...]:
    """The checks of a dataset: those of all entries that match."""
    return tuple(
        Asked(check, each.severity == "warn", (number, *path))
        for number, each in enumerate(declared)
        if matching(each, name) is not None
        for check, path in each.checks
    )
