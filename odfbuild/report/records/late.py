"""Records that came too late, as text and as plain values."""

from __future__ import annotations

from typing import Any

from odfbuild.inspect.late import Late
from odfbuild.plan.refusal import as_data
from odfbuild.report.forms.table import render_table
from odfbuild.wording import count

_HEADER = ("INPUT", "OFFSET", "EVENT TIME", "WATERMARK THEN")


def render_late(late: Late, limit: int) -> str:
    """The newest `limit` of them as a table, and how many there are."""
    what = f"{late.dataset}: {count(len(late.found), 'record')} arrived after "
    what += "the window was closed" if late.has_windows else "the watermark passed them"
    if not late.found:
        return f"{what}."
    rows = [
        (each.dataset, f"{each.offset:,}", str(each.event_time), str(each.watermark))
        for each in late.found[-limit:]
    ]
    header = _HEADER if late.has_windows else ("DATASET", *_HEADER[1:])
    shown = f"; the newest {limit:,} are:" if len(late.found) > limit else ":"
    return f"{what}{shown}\n{render_table(header, rows, frozenset({1}))}"


def late_to_data(late: Late, limit: int) -> dict[str, Any]:
    """The same as plain values."""
    return {
        "name": late.dataset,
        "windows": late.has_windows,
        "total": len(late.found),
        "records": as_data(late.found[-limit:]),
    }
