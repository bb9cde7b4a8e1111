"""The event times in a data file, from its statistics alone."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from odfbuild.values import Value

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Times(Value):
    """A span in milliseconds, both ends included; infinite where nothing is known."""

    first: float
    last: float

    def meets(self, other: Times) -> bool:
        """Whether two spans have a time in common."""
        return self.first <= other.last and other.first <= self.last


ALWAYS = Times(float("-inf"), float("inf"))


def event_times(file: Path, column: str) -> Times:
    """Where the values of `column` lie."""
    import pyarrow.parquet as pq

    metadata = pq.read_metadata(file)
    index = metadata.schema.names.index(column)
    groups = range(metadata.num_row_groups)
    found = [metadata.row_group(group).column(index).statistics for group in groups]
    if any(each is None or not each.has_min_max for each in found):
        return ALWAYS
    return covering(Times(_millis(each.min), _millis(each.max)) for each in found)


def covering(spans: Iterable[Times]) -> Times:
    """The least span that holds all of `spans`."""
    found = list(spans)
    return Times(
        min((each.first for each in found), default=float("inf")),
        max((each.last for each in found), default=float("-inf")),
    )


def _millis(value: datetime | date) -> float:
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    elif value.tzinfo is None:
        value = value.replace(tzinfo=UTC)
    return (value - _EPOCH) / timedelta(milliseconds=1)
