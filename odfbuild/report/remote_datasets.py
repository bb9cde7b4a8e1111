"""The list of datasets of a repository: `ls --remote`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from odfbuild.exchange.repositories.listing import ListedDataset
from odfbuild.report.forms.table import render_table


def render_remote(repository: str, listed: Sequence[ListedDataset]) -> str:
    """Datasets as a table, by name, and below it what is wrong with any."""
    if not listed:
        return f"There are no datasets in {repository}."
    rows = [
        (
            each.alias or each.name,
            "-" if each.blocks is None else f"{each.blocks:,}",
            "-" if each.updated is None else str(each.updated),
            "-" if each.head is None else each.head.short,
        )
        for each in sorted(listed, key=lambda each: each.alias or each.name)
    ]
    lines = [render_table(("NAME", "BLOCKS", "LAST BLOCK", "HEAD"), rows, frozenset({1}))]
    lines += [f"{each.name}: {each.problem}" for each in listed if each.problem is not None]
    if any(each.alias is not None for each in listed):
        lines.append(
            f"To pull one of these, write {repository}/did:odf:… with its identity from --json."
        )
    return "\n".join(lines)


def remote_to_data(listed: Sequence[ListedDataset]) -> list[dict[str, Any]]:
    """The same as plain values, with full hashes."""
    return [
        {
            "name": each.name,
            "alias": each.alias,
            "head": None if each.head is None else str(each.head),
            "blocks": each.blocks,
            "updated": None if each.updated is None else str(each.updated),
            "problem": None if each.problem is None else str(each.problem),
        }
        for each in listed
    ]
