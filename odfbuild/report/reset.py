"""What a reset means."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from odfbuild.report.forms.words import short
from odfbuild.wording import count

if TYPE_CHECKING:
    from odfbuild.apply.reset import Reset


def render_resets(resets: Iterable[Reset]) -> str:
    """What goes, dataset by dataset, and who cannot go on without it."""
    lines = []
    chosen = list(resets)
    names = {reset.name for reset in chosen}
    for reset in chosen:
        target = "to its definition" if reset.events else f"to block {short(reset.to)}"
        gone = f"{count(reset.records, 'record')} in {count(reset.blocks, 'block')}"
        lines.append(f"  {reset.name}: {target}; {gone} will be gone")
        broken = [reader for reader in reset.readers if reader not in names]
        if broken:
            lines.append(f"      read by {', '.join(broken)}: to be computed again afterwards")
    return "\n".join(lines)


def resets_to_data(resets: Iterable[Reset]) -> list[dict[str, Any]]:
    """The same as plain values."""
    return [
        {
            "name": reset.name,
            "from": str(reset.head),
            "to": str(reset.to),
            "keeps_definition_only": bool(reset.events),
            "records": reset.records,
            "blocks": reset.blocks,
            "readers": list(reset.readers),
        }
        for reset in resets
    ]
