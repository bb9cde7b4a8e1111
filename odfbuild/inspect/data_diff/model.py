"""How the records of a dataset differ between two states. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from odfbuild.errors import OdfbuildError

SAMPLES = 20
"""How many records are shown of a dataset."""


class Change(StrEnum):
    """What happened to a record."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


class ColumnChange(StrEnum):
    """What happened to a column."""

    ADDED = "added"
    REMOVED = "removed"
    RETYPED = "retyped"
    RENAMED = "renamed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A record that differs: `old` and `new` are its values, `key` those that identify it.

    Of a changed record, `old` and `new` have the columns that differ; of others, all but the key.
    Values are as JSON holds them.
    """

    change: Change
    key: Mapping[str, Any]
    old: Mapping[str, Any] = field(default_factory=dict)
    new: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaDifference:
    """A column that only one state has, or that has another type or name; types as people write."""

    change: ColumnChange
    column: str
    old_type: str | None = None
    new_type: str | None = None
    old_name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRate:
    """In how many of the records that both states have a column has another value.

    `rounding` of them are floating point numbers that differ by less than one in a thousand
    million, as another order of additions makes them.
    """

    column: str
    changed: int
    rounding: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """What values a column has in one state.

    `quantiles` are the 5th, 50th and 95th percentile of numbers and times, `top` the most frequent
    values of columns with few of them and their numbers. `exact` is false where `distinct` and
    `quantiles` are estimated.
    """

    records: int
    nulls: int
    distinct: int
    least: Any = None
    greatest: Any = None
    quantiles: tuple[Any, Any, Any] | None = None
    top: tuple[tuple[Any, int], ...] = ()
    exact: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """The distributions of a column in both states, where they differ by more than a little.

    `shifts` say in what: `nulls`, `range`, `quantiles`, `distinct`, `top`.
    """

    column: str
    old: Distribution
    new: Distribution
    shifts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """The columns by which records are recognised, and where they come from (`origin`).

    `repeated` keys that differ have several records in a state: these count as removed and added.
    """

    columns: tuple[str, ...]
    origin: str
    repeated: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DataDiff:
    """The differences of one dataset between the states `old` and `new` (named for people).

    Without a `key` whole records are compared, so that none of them is changed. `unread` slices
    are in both states and were not read for the comparison. `notes` say what the numbers are about
    where that is not all records of the dataset.
    """

    dataset: str
    old: str
    new: str
    key: Key | None = None
    old_records: int = 0
    new_records: int = 0
    added: int = 0
    removed: int = 0
    changed: int = 0
    schema: tuple[SchemaDifference, ...] = ()
    rates: tuple[ColumnRate, ...] = ()
    samples: tuple[Sample, ...] = ()
    drift: tuple[Drift, ...] = ()
    unread: int = 0
    notes: tuple[str, ...] = ()

    @property
    def common(self) -> int:
        """Records that both states have, changed or not."""
        return self.old_records - self.removed

    @property
    def differs(self) -> bool:
        """Whether there is anything to tell."""
        return bool(self.added or self.removed or self.changed or self.schema)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The differences of several datasets between the states `old` and `new`.

    `same` have none. Those in `errors` could not be compared. `notes` say what else there is to
    know, such as how much was read.
    """

    old: str
    new: str
    diffs: tuple[DataDiff, ...] = ()
    same: tuple[str, ...] = ()
    errors: tuple[OdfbuildError, ...] = ()
    notes: tuple[str, ...] = ()
