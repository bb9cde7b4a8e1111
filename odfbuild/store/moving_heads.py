"""The manifest of a promotion: which heads move together.

A promotion moves one head after the other. Before the first one it writes `<state>/.promotion`, the
old and the new head of each dataset; when all have moved it removes that file. A reader who asks
for a consistent set of heads takes the old ones while the file is there. So all heads change at one
moment for that reader: when the file goes. A promotion that was killed leaves it, and goes on from
there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.store.files import read_inside
from odfbuild.values import Value

if TYPE_CHECKING:
    from odfbuild.store.workspace import Workspace

MANIFEST = ".promotion"
_Heads = Mapping[str, str | None]


class Manifest(Value, kw_only=True):
    """The heads before and after the promotion of `branch`, by alias; `None`: there was none."""

    branch: str
    before: _Heads
    after: Mapping[str, str]

    def to_text(self) -> str:
        """The text of its file."""
        heads = {name: {"from": self.before[name], "to": head} for name, head in self.after.items()}
        return json.dumps({"branch": self.branch, "heads": heads}, indent=1) + "\n"

    def moved(self, heads: Mapping[str, bytes]) -> set[str]:
        """Those of the datasets whose heads have moved to where they are promoted."""
        now = {name: head.decode("ascii", "replace") for name, head in heads.items()}
        return {name for name, head in self.after.items() if now.get(name) == head}

    def undone(self, heads: Mapping[str, bytes]) -> dict[str, bytes]:
        """`heads` with the old ones of datasets that were promoted."""
        found = dict(heads)
        for name in self.moved(heads):
            before = self.before[name]
            if before is None:
                del found[name]
            else:
                found[name] = before.encode()
        return found


def read_manifest(state: Path) -> Manifest | None:
    """The manifest of a promotion that is going on, or was killed; `None`: there is none.

    A file that nobody can read says nothing.
    """
    try:
        data = json.loads(read_inside(str(state / MANIFEST)))
        heads = {str(name): (each["from"], str(each["to"])) for name, each in data["heads"].items()}
        return Manifest(
            branch=str(data["branch"]),
            before={name: None if old is None else str(old) for name, (old, _) in heads.items()},
            after={name: new for name, (_, new) in heads.items()},
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


class Unfinished(Value):
    """A promotion that was killed: of all `names`, these have `moved`."""

    branch: str
    names: frozenset[str]
    moved: frozenset[str] = field(default_factory=frozenset)


def unfinished(workspace: Workspace) -> Unfinished | None:
    """The promotion that was killed; `None` while it is going on, or its branch was deleted."""
    manifest = read_manifest(workspace.state)
    if manifest is None or not _counts(manifest, workspace) or workspace.holders(manifest.after):
        return None
    stores = {name: workspace.dataset(name) for name in manifest.after}
    moved = {n for n, store in stores.items() if str(store.main_head()) == manifest.after[n]}
    return Unfinished(manifest.branch, frozenset(manifest.after), frozenset(moved))


def _counts(manifest: Manifest, workspace: Workspace) -> bool:
    """Whether anything is left of the branch; otherwise nobody can finish its promotion."""
    return any(workspace.dataset(n).branch_head(manifest.branch) for n in manifest.after)


_ATTEMPTS = 50


def consistent_heads(workspace: Workspace) -> dict[str, bytes]:
    """The heads of all datasets as they were at one moment, before or after each promotion.

    They are read until two readings agree. So many times at most: after a promotion, applies may
    move single heads on for ever.
    """

    def read() -> tuple[Manifest | None, dict[str, bytes]]:
        return read_manifest(workspace.state), workspace.heads()

    before = read()
    for _ in range(_ATTEMPTS):
        now = read()
        if now == before:
            break
        before = now
    manifest, heads = before
    if manifest is None or not _counts(manifest, workspace):
        return heads
    return manifest.undone(heads)
