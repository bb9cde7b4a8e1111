"""Who works on datasets, as people and programs read it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from odfbuild.report.forms.table import render_table
from odfbuild.store.lock_holders import LockHolder


def render_holders(found: Sequence[LockHolder]) -> str:
    """A table with a line for each process."""
    if not found:
        return "No dataset is locked."
    rows = [
        (
            str(each.pid),
            each.host or "-",
            each.command or "-",
            each.since or "-",
            "-" if each.silent is None else f"{each.silent:.0f} s ago",
            ", ".join(each.aliases),
        )
        for each in found
    ]
    titles = ("PROCESS", "HOST", "COMMAND", "SINCE", "HEARTBEAT", "DATASETS")
    return render_table(titles, rows, frozenset({0}))


def holders_to_data(found: Sequence[LockHolder]) -> list[dict[str, Any]]:
    """The same as plain values; `silent_seconds` since the last heartbeat."""
    return [
        {
            "pid": each.pid,
            "host": each.host or None,
            "command": each.command or None,
            "since": each.since or None,
            "silent_seconds": None if each.silent is None else round(each.silent),
            "datasets": list(each.aliases),
        }
        for each in found
    ]
