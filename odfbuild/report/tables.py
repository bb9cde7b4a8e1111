"""Published tables, listed and one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from odfbuild.plan.tables import TablePlan, TableStep
from odfbuild.report.forms.table import render_table
from odfbuild.report.forms.words import size
from odfbuild.report.outcome import error_to_data
from odfbuild.wording import count

if TYPE_CHECKING:
    from odfbuild.inspect.tables import TableFacts, TableGarbage
    from odfbuild.project.tables import Table

Listed = tuple["Table", TablePlan | None]
"""A table, and what a plan does with it."""

_WORDS = {
    TableStep.CREATE: "new",
    TableStep.UPDATE: "behind",
    TableStep.REWRITE: "to be written anew",
    TableStep.FOLLOW: "up to date",
    TableStep.LOOK: "not known here",
    TableStep.REFUSE: "refused",
}


def status_of(step: TablePlan | None) -> str:
    """How a table stands, in words."""
    return _WORDS[step.step] if step else "up to date"


def render_tables(found: Sequence[Listed]) -> str:
    """A row for each table."""
    if not found:
        return "No tables: `tables` in odfbuild.yaml declares them."
    rows = [
        (each.name, each.dataset, each.format, each.view, status_of(step), each.address)
        for each, step in found
    ]
    return render_table(("TABLE", "DATASET", "FORMAT", "VIEW", "STATUS", "PLACE"), rows)


def tables_to_data(found: Sequence[Listed]) -> dict[str, Any]:
    """The same as plain values."""
    return {
        "tables": [
            {**table_to_data(each), "status": step.step.value if step else "up_to_date"}
            | ({"because": step.because} if step else {})
            for each, step in found
        ]
    }


def table_to_data(table: Table) -> dict[str, Any]:
    """A table as it is declared."""
    return {
        "name": table.name,
        "dataset": table.dataset,
        "format": table.format,
        "address": table.address,
        "view": table.view,
        "partition_by": list(table.partition_by),
        "indices": list(table.indices),
        "sort": list(table.sort),
        "keep_seconds": int(table.keep.total_seconds()),
    }


def render_facts(found: TableFacts) -> str:
    """A table as it is, line by line."""
    table, state = found.table, found.state
    lines = [
        f"Table {table.name} of {table.dataset}",
        f"  format      {table.format}, {table.view}",
        f"  place       {table.address}",
    ]
    if table.partition_by:
        lines.append(f"  partitions  by {', '.join(table.partition_by)}")
    if table.indices:
        lines.append(f"  indices     {', '.join(table.indices)}")
    if state is not None:
        held = [
            None if state.partitions is None else count(state.partitions, "partition"),
            None if state.files is None else count(state.files, "file"),
            None if state.records is None else count(state.records, "record"),
            None if state.bytes is None else size(state.bytes),
        ]
        told = ", ".join(each for each in held if each is not None)
        lines += [f"  holds       {told}"] if told else []
        lines += [f"  block       {state.pin.block}"] if state.pin else []
        lines.append(f"  state       {state.token}")
    lines.append(f"  status      {found.lacks or 'up to date'}")
    return "\n".join(lines)


def facts_to_data(found: TableFacts) -> dict[str, Any]:
    """The same as plain values."""
    state = found.state
    pin = state.pin if state else None
    return {
        **table_to_data(found.table),
        "up_to_date": not found.lacks,
        "lacks": found.lacks or None,
        "state": state
        and {
            "token": state.token,
            "changed_by": state.changed_by,
            "partitions": state.partitions,
            "files": state.files,
            "records": state.records,
            "bytes": state.bytes,
            "dataset_id": str(pin.dataset_id) if pin else None,
            "block": str(pin.block) if pin else None,
            "last_offset": pin.last_offset if pin else None,
        },
    }


def render_collected(found: Sequence[TableGarbage], *, removed: bool) -> str:
    """What tables no longer need."""
    files = sum(len(each.garbage.files) for each in found)
    verb = "Removed" if removed else "Would remove"
    if not files:
        return "Tables: nothing to remove."
    lines = [
        f"  {each.table.name}: {count(len(each.garbage.files), 'file')}, {size(each.garbage.bytes)}"
        for each in found
        if each.garbage.files
    ]
    total = sum(each.garbage.bytes for each in found)
    return "\n".join([*lines, f"{verb} {count(files, 'file')} of tables, {size(total)}."])


def collected_to_data(found: Sequence[TableGarbage]) -> list[dict[str, Any]]:
    """The same as plain values."""
    return [
        {
            "table": each.table.name,
            "files": list(each.garbage.files),
            "bytes": each.garbage.bytes,
            "error": each.error and error_to_data(each.error),
        }
        for each in found
    ]
