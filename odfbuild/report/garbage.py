"""What garbage collection found."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from odfbuild.report.forms.words import size
from odfbuild.wording import count

if TYPE_CHECKING:
    from odfbuild.apply.collect import Collection
    from odfbuild.apply.collect_stored import StoredCollection

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


def render_stored(found: StoredCollection, *, removed: bool) -> str:
    """What goes from a storage by kind, and what nobody here can know."""
    kinds = Counter(each.name.partition("/")[0] for each in found.garbage)
    lines = [f"  {kind}: {count(number, 'object')}" for kind, number in sorted(kinds.items())]
    verb = "Removed" if removed else "Would remove"
    lines.append(
        f"{verb} {count(len(found.garbage), 'object')} of {found.address}, {size(found.size)}; "
        f"{count(found.used, 'object')} in use."
    )
    if not removed and found.garbage:
        lines.append(
            "In use is what blocks in this clone, in branches and tags that it fetched, and in the "
            "storage refer to. What a clone committed and did not push is not known here."
        )
    return "\n".join(lines)


def stored_to_data(found: StoredCollection, *, removed: bool) -> dict[str, Any]:
    """The same as plain values."""
    return {
        "removed": removed,
        "storage": found.address,
        "size": found.size,
        "used": found.used,
        "garbage": [{"name": each.name, "size": each.size} for each in found.garbage],
    }
