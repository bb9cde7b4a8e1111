"""How far datasets lag behind the clock, as text and plain values. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from odfbuild.inspect.ages import DatasetAge
from odfbuild.report.forms.table import render_table
from odfbuild.wording import count


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
    damaged = sum(each.status == "damaged" for each in ages)
    more = f", {damaged} damaged" if damaged else ""
    return f"{table}\n\nFreshness: {count(asked, 'dataset')} with a limit, {stale} stale{more}."


def ages_to_data(ages: Sequence[DatasetAge]) -> list[dict[str, Any]]:
    """The same as plain values, ages in seconds."""
    return [
        {
            "name": each.name,
            "watermark": str(each.watermark) if each.watermark else None,
            "age_seconds": each.age.total_seconds() if each.age is not None else None,
            "max_age_seconds": each.limit.total_seconds() if each.limit is not None else None,
            "late_files": each.late_files,
            "status": None if each.status == "-" else each.status,
            "error": each.error.code if each.error is not None else None,
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
