"""Branches as text, Markdown and JSON, and what deleting them removes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from odfbuild.inspect.branches import Base, Branch, BranchDataset
from odfbuild.odf.timestamp import Timestamp
from odfbuild.report.forms.markdown import escaped
from odfbuild.report.forms.table import markdown_table, render_table
from odfbuild.report.forms.words import short, size
from odfbuild.report.freshness import spelled
from odfbuild.wording import count, named

if TYPE_CHECKING:
    from odfbuild.apply.branches import BranchDeletion

_HEADER = ("BRANCH", "AGE", "DATASETS", "BLOCKS", "RECORDS", "SIZE", "HEADS", "LIMIT")
_RIGHT = frozenset({2, 3, 4, 5})
_DATASETS = ("DATASET", "BLOCKS", "RECORDS", "SIZE", "BLOCK", "HEAD")
_DATASETS_RIGHT = frozenset({1, 2, 3})

_WORDS = {
    Base.UNMOVED: "unmoved",
    Base.NEW: "no head yet",
    Base.TAKEN: "another dataset took the name",
    Base.DELETED: "deleted since",
    Base.RESET: "reset since",
    Base.PROMOTED: "has all blocks",
    Base.DAMAGED: "not readable",
}


def render_branches(found: Sequence[Branch], now: Timestamp, *, markdown: bool = False) -> str:
    """A table with a line for each branch."""
    if not found:
        return "There are no branches."
    rows = [
        (
            each.name,
            _age(each.created, now),
            f"{len(each.datasets):,}",
            f"{each.ahead:,}",
            f"{each.records:,}",
            size(each.own),
            _heads(each),
            ", ".join(each.limits) or "-",
        )
        for each in found
    ]
    return (markdown_table if markdown else render_table)(_HEADER, rows, _RIGHT)


def render_branch(branch: Branch, now: Timestamp, *, markdown: bool = False) -> str:
    """One branch: what it holds, dataset by dataset."""
    rows = [
        (
            each.name,
            f"+{each.ahead:,}",
            f"+{each.records:,}",
            size(each.own),
            short(each.head),
            _head(each),
        )
        for each in branch.datasets
    ]
    table = (markdown_table if markdown else render_table)(_DATASETS, rows, _DATASETS_RIGHT)
    title = (
        f"Branch {branch.name}: {count(len(branch.datasets), 'dataset')}, {_lasted(branch, now)}"
    )
    plain = escaped if markdown else str
    lines = [f"### {plain(title)}" if markdown else title, "", table, ""]
    lines += [f"Computed over a part of the inputs: {plain(each)}." for each in branch.limits]
    lines.append(f"Deleting it frees {size(branch.own)}.")
    lines += [plain(f"{each.name}: {each.problem}") for each in branch.datasets if each.problem]
    return "\n".join(lines)


def branch_to_data(branch: Branch) -> dict[str, Any]:
    """A branch as plain values; `size` in bytes."""
    return {
        "name": branch.name,
        "created": _text(branch.created),
        "updated": _text(branch.updated),
        "blocks": branch.ahead,
        "records": branch.records,
        "size": branch.own,
        "promoted": branch.is_promoted,
        "limits": list(branch.limits),
        "git_branches": sorted(branch.git_branches),
        "datasets": [
            {
                "name": each.name,
                "head": _text(each.head),
                "left": _text(each.left),
                "base": each.base.value,
                "blocks": each.ahead,
                "records": each.records,
                "behind": each.behind,
                "size": each.own,
                "created": _text(each.created),
                "updated": _text(each.updated),
                "limit": _text(each.limit),
                "problem": _text(each.problem),
            }
            for each in branch.datasets
        ],
    }


def render_deletion(planned: Sequence[BranchDeletion], gone: Sequence[Branch]) -> str:
    """What goes: each branch, and the datasets that exist nowhere else."""
    lines = [
        f"  {each.name}: {count(len(each.datasets), 'dataset')}, {_ahead(each)}" for each in gone
    ]
    alone = [each.name for each in planned if each.alone]
    if alone:
        keys = " with their private keys" if any(not e.keep_key for e in planned) else ""
        lines.append(f"  these datasets are nowhere else and go{keys}: {named(alone)}")
    lines.append(f"Deleting frees {size(sum(each.size for each in planned))}.")
    return "\n".join(lines)


def deletion_to_data(planned: Sequence[BranchDeletion]) -> dict[str, Any]:
    """The same as plain values; `size` in bytes."""
    return {
        "branches": sorted({branch for each in planned for branch in each.branches}),
        "size": sum(each.size for each in planned),
        "datasets": [
            {
                "name": each.name,
                "branches": {name: str(head) for name, head in each.branches.items()},
                "blocks": each.blocks,
                "objects": each.objects,
                "size": each.size,
                "deleted": each.alone,
            }
            for each in planned
        ],
    }


def _ahead(branch: Branch) -> str:
    if branch.is_promoted:
        return "promoted"
    blocks = count(branch.ahead, "block")
    return f"{blocks} with {count(branch.records, 'record')} that no head has"


def _heads(branch: Branch) -> str:
    """How the heads have moved since, in a few words."""
    if branch.is_promoted:
        return "promoted"
    moved = [
        f"{branch.count(base)} {base.value}"
        for base in Base
        if base not in (Base.UNMOVED, Base.NEW) and branch.count(base)
    ]
    return ", ".join(moved) or "unmoved"


def _head(dataset: BranchDataset) -> str:
    if dataset.base is Base.MOVED:
        return f"moved by {count(dataset.behind, 'block')}"
    return _WORDS[dataset.base]


def _lasted(branch: Branch, now: Timestamp) -> str:
    if branch.created is None:
        return "nobody knows since when"
    of_git = f" on Git branch {named(sorted(branch.git_branches))}" if branch.git_branches else ""
    return f"created {_age(branch.created, now)} ago{of_git}"


def _age(since: Timestamp | None, now: Timestamp) -> str:
    if since is None:
        return "-"
    return spelled(max(timedelta(), timedelta(milliseconds=now.millis - since.millis)))


def _text(value: object) -> str | None:
    return None if value is None else str(value)
