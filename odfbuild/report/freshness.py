"""How far datasets lag behind the clock, from their watermarks. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from odfbuild.odf.timestamp import Timestamp
from odfbuild.project.settings.freshness import Freshness, max_age
from odfbuild.report.forms.table import render_table
from odfbuild.wording import count


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetAge:
    """A dataset, its watermark (`None`: it has none), how old that is, and how old it may be.

    So many `late_files` of its source are never read.
    """

    name: str
    watermark: Timestamp | None
    age: timedelta | None
    limit: timedelta | None
    late_files: int = 0

    @property
    def status(self) -> str:
        """`fresh` or `stale` where a limit is declared, else `-`."""
        if self.limit is None:
            return "-"
        return "fresh" if self.age is not None and self.age <= self.limit else "stale"


def ages_of(
    watermarks: Mapping[str, Timestamp | None],
    declared: Sequence[Freshness],
    now: Timestamp,
    late: Mapping[str, int] | None = None,
) -> list[DatasetAge]:
    """The ages of datasets by their watermarks at the time `now`, and what is declared of them.

    `late` are numbers of late files.
    """
    ages = [age_of(name, each, now, max_age(declared, name)) for name, each in watermarks.items()]
    return [replace(each, late_files=(late or {}).get(each.name, 0)) for each in ages]


def age_of(
    name: str, watermark: Timestamp | None, now: Timestamp, limit: timedelta | None
) -> DatasetAge:
    """The age of a dataset at the time `now`; one that is ahead of the clock is of age zero."""
    age = None
    if watermark is not None:
        age = max(timedelta(), timedelta(milliseconds=now.millis - watermark.millis))
    return DatasetAge(name=name, watermark=watermark, age=age, limit=limit)


def render_ages(ages: Sequence[DatasetAge]) -> str:
    """A table, and how many datasets are older than they may be."""
    rows = [
        (
            each.name,
            str(each.watermark) if each.watermark else "-",
            spelled(each.age) if each.age is not None else "-",
            spelled(each.limit) if each.limit is not None else "-",
            each.status,
        )
        for each in ages
    ]
    stale = sum(each.status == "stale" for each in ages)
    asked = sum(each.limit is not None for each in ages)
    table = render_table(("NAME", "WATERMARK", "AGE", "MAY BE", "STATUS"), rows, frozenset({2, 3}))
    late = "".join(
        f"\n! {each.name}: {count(each.late_files, 'file')} came late and "
        f"{'is' if each.late_files == 1 else 'are'} never read; see `odfbuild drift {each.name}`"
        for each in ages
        if each.late_files
    )
    table += f"\n{late}" if late else ""
    return f"{table}\n\nFreshness: {count(asked, 'dataset')} with a limit, {stale} stale."


def ages_to_data(ages: Sequence[DatasetAge]) -> list[dict[str, Any]]:
    """The same as plain values, ages in seconds."""
    return [
        {
            "name": each.name,
            "watermark": str(each.watermark) if each.watermark else None,
            "age_seconds": each.age.total_seconds() if each.age is not None else None,
            "max_age_seconds": each.limit.total_seconds() if each.limit is not None else None,
            "late_files": each.late_files,
            "status": each.status if each.limit is not None else None,
        }
        for each in ages
    ]


def spelled(age: timedelta) -> str:
    """The two largest units that are not nought: `3d 4h`, `12m`, `0s`."""
    seconds = int(age.total_seconds())
    parts = []
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)):
        number, seconds = divmod(seconds, size)
        if number:
            parts.append(f"{number}{unit}")
    return " ".join(parts[:2]) or "0s"
