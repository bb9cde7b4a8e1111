"""Blocks of a chain beside the commits that brought them: `blame`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from odfbuild.project.git.notes import CommitInfo
from odfbuild.report.forms.table import render_table
from odfbuild.survey.blame import BlamedBlock

_HEADER = ("block", "event", "commit", "date", "author", "subject")
_SHORT = 10


def render_blame(found: Sequence[BlamedBlock]) -> str:
    """A line for each block, in the order given."""
    if not found:
        return "There are no blocks."
    return render_table(_HEADER, [_row(each) for each in found])


def blame_to_data(found: Sequence[BlamedBlock]) -> list[dict[str, Any]]:
    """The same as plain values, with whole hashes."""
    return [
        {
            "sequenceNumber": each.block.sequence_number,
            "blockHash": str(each.hash),
            "event": each.block.event.KIND,
            "systemTime": str(each.block.system_time),
            "commit": commit_to_data(each.commit),
        }
        for each in found
    ]


def commit_to_data(commit: CommitInfo | None) -> dict[str, str] | None:
    """A commit as plain values."""
    if commit is None:
        return None
    return {
        "hash": commit.hash,
        "author": commit.author,
        "date": commit.time,
        "subject": commit.subject,
    }


def _row(each: BlamedBlock) -> tuple[str, ...]:
    block = (f"#{each.block.sequence_number}", each.block.event.KIND)
    commit = each.commit
    if commit is None:
        return (*block, "-", str(each.block.system_time)[:10], "-", "not committed")
    return (*block, commit.hash[:_SHORT], commit.time[:10], commit.author, commit.subject)
