"""Replication slots of sources of changes, as people and programs read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from odfbuild.report.forms.table import render_table
from odfbuild.report.forms.words import size

if TYPE_CHECKING:
    from odfbuild.ingest.fetch.database.changes.manage import SlotStatus


def render_slots(found: Sequence[SlotStatus]) -> str:
    """A row for each dataset, then what should be done."""
    if not found:
        return "No dataset reads changes of a database."
    rows = [
        (
            each.dataset,
            each.slot,
            f"{each.status}, in use" if each.in_use else each.status,
            size(each.held_bytes),
        )
        for each in found
    ]
    table = render_table(("NAME", "SLOT", "STATUS", "LOG KEPT"), rows)
    warnings = [each.warning for each in found if each.warning]
    return "\n".join([table, *([""] if warnings else []), *warnings])


def slots_to_data(found: Sequence[SlotStatus]) -> list[dict[str, Any]]:
    """The same as plain values."""
    return [
        {
            "name": each.dataset,
            "slot": each.slot,
            "status": each.status,
            "held_bytes": each.held_bytes,
            "in_use": each.in_use,
        }
        for each in found
    ]
