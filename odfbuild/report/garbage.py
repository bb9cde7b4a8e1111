"""What garbage collection found."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from odfbuild.report.forms.words import size
from odfbuild.wording import count

if TYPE_CHECKING:
    from odfbuild.apply.collect import Collection

_NOUNS = {
    "block": "block",
    "data": "data object",
    "checkpoint": "checkpoint",
    "staging": "staging file",
    "scratch": "scratch folder",
    "side-cars": "set of side-cars",
    "unfinished dataset": "unfinished dataset",
    "deleted dataset": "deleted dataset",
}


def render_collection(found: Collection, *, removed: bool) -> str:
    """A line for each dataset, then how much space that is."""
    lines = []
    for name in dict.fromkeys(each.dataset for each in found.garbage):
        own = [each for each in found.garbage if each.dataset == name]
        kinds = Counter(each.kind for each in own)
        what = ", ".join(count(number, _NOUNS[kind]) for kind, number in kinds.items())
        total = size(sum(each.size for each in own))
        lines.append(f"  {name or 'beside the datasets'}: {what} ({total})")
    for branch in sorted({name for each in found.branches for name in each.branches}):
        held = [each for each in found.branches if branch in each.branches]
        lines.append(f"  branch {branch}: closed, {count(len(held), 'dataset')}")
    lines += [f"  {name}: skipped, another process holds its lock" for name in found.held]
    verb = "Removed" if removed else "Would remove"
    total = f"{verb} {count(len(found.garbage), 'file')}, {size(found.size)}."
    return "\n".join([*lines, *([""] if lines else []), total])


def collection_to_data(found: Collection, *, removed: bool) -> dict[str, Any]:
    """The same as plain values."""
    return {
        "removed": removed,
        "size": found.size,
        "held": list(found.held),
        "branches": sorted({name for each in found.branches for name in each.branches}),
        "garbage": [
            {
                "dataset": each.dataset or None,
                "kind": each.kind,
                "path": str(each.path),
                "size": each.size,
            }
            for each in found.garbage
        ],
    }
