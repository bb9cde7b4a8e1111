"""Private keys of datasets, as people and programs read it: where they are, never what they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from odfbuild.report.forms.table import render_table
from odfbuild.wording import count

if TYPE_CHECKING:
    from odfbuild.inspect.keys import DatasetKey


def render_keys(found: Sequence[DatasetKey]) -> str:
    """A row for each dataset, and how many have no key here."""
    if not found:
        return "No dataset has a chain yet."
    rows = [(each.dataset or "(none here)", _place(each), str(each.id)) for each in found]
    table = render_table(("NAME", "PRIVATE KEY", "PUBLIC KEY"), rows, frozenset())
    missing = sum(each.place is None for each in found)
    if not missing:
        return table
    have = "dataset has" if missing == 1 else "datasets have"
    return f"{table}\n\n{missing} {have} no private key here; without it, `push` signs nothing."


def _place(key: DatasetKey) -> str:
    if key.place is None:
        return "-"
    return "file" if "/" in key.place else key.place


def keys_to_data(found: Sequence[DatasetKey]) -> list[dict[str, Any]]:
    """The same as plain values."""
    return [{"name": each.dataset, "id": str(each.id), "private_key": each.place} for each in found]


def render_imported(new: Sequence[DatasetKey], known: Sequence[DatasetKey]) -> str:
    """A line on what was imported, and one on what was here already."""
    lines = [f"Imported {count(len(new), 'private key')}{_of(new)}."] if new else []
    if known:
        was = "was" if len(known) == 1 else "were"
        lines.append(f"{count(len(known), 'private key')} {was} here already{_of(known)}.")
    return "\n".join(lines)


def _of(keys: Sequence[DatasetKey]) -> str:
    return ": " + ", ".join(each.dataset or str(each.id) for each in keys)
