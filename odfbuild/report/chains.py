"""What `odfbuild chains move` did, as text and data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odfbuild.report.forms.table import render_table
from odfbuild.wording import count

if TYPE_CHECKING:
    from odfbuild.apply.move_chains import MovedChains


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
