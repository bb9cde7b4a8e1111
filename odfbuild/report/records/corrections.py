"""What became of records since a time, counted by period, as text and as plain values. Pure."""

from __future__ import annotations

from collections import Counter
from typing import Any

from odfbuild.inspect.corrections import Correction, Corrections, RecordChange
from odfbuild.odf.records import plain_value
from odfbuild.odf.timestamp import Timestamp
from odfbuild.report.forms.table import render_table
from odfbuild.wording import count

_LENGTHS = {"day": 10, "month": 7, "year": 4}
"""How many characters of a time in RFC 3339 name its day, month or year."""


def render_corrections(found: Corrections, period: str, limit: int) -> str:
    """How many records of each period were corrected, retracted or late, and the first of them."""
    then = found.then
    lines = [
        f"{found.dataset} since block #{then.blocks - 1} {then.head.short} of {then.system_time}, "
        f"watermark {then.watermark or 'none'}: {count(found.now.blocks - then.blocks, 'block')}"
    ]
    if not found.found:
        return "\n".join([*lines, "No record was corrected or retracted, and none arrived late."])
    rows = [
        (when, *(f"{fates[fate]:,}" for fate in RecordChange))
        for when, fates in _by_period(found, period).items()
    ]
    header = ("event time", *(fate.value for fate in RecordChange))
    lines += ["", render_table(header, rows, frozenset({1, 2, 3}))]
    if limit:
        lines += ["", *map(_line, found.found[:limit])]
    if limit and len(found.found) > limit:
        lines.append(f"… and {count(len(found.found) - limit, 'more record')}")
    return "\n".join(lines)


def corrections_to_data(found: Corrections, period: str) -> dict[str, Any]:
    """The same as plain values, with all records."""
    return {
        "dataset": found.dataset,
        "since": {
            "sequenceNumber": found.then.blocks - 1,
            "blockHash": str(found.then.head),
            "systemTime": str(found.then.system_time),
            "watermark": _text(found.then.watermark),
        },
        "blocks": found.now.blocks - found.then.blocks,
        "boundary": str(found.boundary),
        "periods": [
            {"eventTime": when, **{fate.value: fates[fate] for fate in RecordChange}}
            for when, fates in _by_period(found, period).items()
        ],
        "records": [
            {
                "fate": each.fate.value,
                "eventTime": str(each.event_time),
                "before": each.before and {k: plain_value(v) for k, v in each.before.items()},
                "after": each.after and {k: plain_value(v) for k, v in each.after.items()},
            }
            for each in found.found
        ],
    }


def _by_period(found: Corrections, period: str) -> dict[str, Counter[RecordChange]]:
    periods: dict[str, Counter[RecordChange]] = {}
    for each in found.found:
        periods.setdefault(str(each.event_time)[: _LENGTHS[period]], Counter())[each.fate] += 1
    return periods


def _line(each: Correction) -> str:
    return f"{each.fate.value:<9}  {each.event_time}  {', '.join(_values(each))}"


def _values(each: Correction) -> list[str]:
    """All values of a record; of a corrected one, how those changed that did."""
    before, after = each.before, each.after
    if before is None or after is None:
        return [f"{name} {plain_value(value)}" for name, value in (before or after or {}).items()]
    return [
        f"{name} {plain_value(before.get(name))}"
        + ("" if before.get(name) == after.get(name) else f" → {plain_value(after.get(name))}")
        for name in dict.fromkeys((*before, *after))
    ]


def _text(time: Timestamp | None) -> str | None:
    return None if time is None else str(time)
