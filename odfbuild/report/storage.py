"""Which objects are here and which in the storage, as text and data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from odfbuild.report.forms.table import render_table
from odfbuild.report.forms.words import size
from odfbuild.store.transfer import StoredObject
from odfbuild.wording import count

if TYPE_CHECKING:
    from odfbuild.apply.move_chains import MovedChains


def render_held(found: Sequence[StoredObject]) -> str:
    """A row for each dataset: its objects, how many of them are here and how many there."""
    rows = [
        (
            name,
            str(len(each)),
            size(sum(x.here or x.stored or 0 for x in each)),
            str(sum(x.here is not None for x in each)),
            str(sum(x.stored is not None for x in each)),
            str(sum(x.is_lost for x in each)),
        )
        for name, each in _by_dataset(found)
    ]
    if not rows:
        return "No dataset has data yet."
    header = ("NAME", "OBJECTS", "SIZE", "HERE", "STORED", "MISSING")
    return render_table(header, rows, frozenset(range(1, 6)))


def held_to_data(found: Sequence[StoredObject]) -> dict[str, Any]:
    """The same for programs, object by object; sizes in bytes, null where it is not."""
    return {
        "datasets": [
            {
                "name": name,
                "objects": [
                    {"kind": x.kind, "hash": str(x.hash), "here": x.here, "stored": x.stored}
                    for x in each
                ],
            }
            for name, each in _by_dataset(found)
        ],
    }


def render_copied(found: Sequence[StoredObject], copied: Sequence[StoredObject], verb: str) -> str:
    """A line on what was copied, and one on what is in neither place."""
    bytes_ = size(sum(x.here or x.stored or 0 for x in copied))
    lines = [f"{verb} {count(len(copied), 'object')}, {bytes_}." if copied else "Nothing to copy."]
    lost = sum(x.is_lost for x in found)
    if lost:
        lines.append(
            f"{count(lost, 'object')} of the history {'is' if lost == 1 else 'are'} neither here "
            "nor in the storage: push where they are."
        )
    return "\n".join(lines)


def _by_dataset(found: Iterable[StoredObject]) -> list[tuple[str, list[StoredObject]]]:
    return [(name, list(each)) for name, each in groupby(found, key=lambda x: x.dataset)]


def render_moved(moved: MovedChains, *, dry_run: bool) -> str:
    """A row for each dataset whose blocks were copied, and what to commit."""
    copied = [each for each in moved.chains if each.blocks]
    place = f"the storage {moved.storage}" if moved.to == "storage" else "Git"
    blocks = sum(each.blocks for each in copied)
    lines = []
    if copied:
        rows = [(each.name, f"{each.blocks:,}") for each in copied]
        lines.append(render_table(("NAME", "BLOCKS"), rows, frozenset({1})))
    verb = "Would move" if dry_run else "Moved"
    of = f" of {count(len(copied), 'dataset')}" if copied else ""
    lines.append(f"{verb} {count(blocks, 'block')}{of} to {place}.")
    if not dry_run and (copied or not moved.declared):
        lines.append(
            f"odfbuild.yaml has `chains: {moved.to}`; commit it together with the chains: "
            "git add --all && git commit"
        )
    return "\n".join(lines)


def moved_to_data(moved: MovedChains) -> dict[str, Any]:
    """The same for programs."""
    return {
        "to": moved.to,
        "storage": moved.storage,
        "declared": moved.declared,
        "datasets": [{"name": each.name, "blocks": each.blocks} for each in moved.chains],
    }
