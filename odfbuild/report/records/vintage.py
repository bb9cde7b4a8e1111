"""What records were made from, and by which query, as a tree with a table and as plain values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from odfbuild.inspect.vintage import Era, Vintage
from odfbuild.plan.refusal import as_data
from odfbuild.report.forms.table import render_table
from odfbuild.report.forms.words import short
from odfbuild.wording import count


def render_vintage(found: Vintage, eras: Sequence[Era]) -> str:
    """The tree of upstream datasets at the blocks that were read, and the queries of records."""
    lines = [_line(found), *_tree(found.inputs, "")]
    if eras:
        rows = [
            (
                f"{era.first:,} to {era.last:,}",
                f"SetTransform #{era.sequence_number}",
                str(era.since)[:10],
                era.engine,
                " ".join(era.query.split()),
            )
            for era in eras
        ]
        lines += ["", render_table(("records", "made by", "since", "engine", "query"), rows)]
    return "\n".join(lines)


def vintage_to_data(found: Vintage, eras: Sequence[Era]) -> dict[str, Any]:
    """The same as plain values, with whole hashes and queries."""
    return {**as_data(found), "eras": as_data(eras)}


def _tree(inputs: Sequence[Vintage], margin: str) -> Iterator[str]:
    for number, each in enumerate(inputs, 1):
        last = number == len(inputs)
        yield f"{margin}{'└─' if last else '├─'} {_line(each)}"
        yield from _tree(each.inputs, margin + ("   " if last else "│  "))


def _line(each: Vintage) -> str:
    if each.block is None:
        return f"{each.name}  nothing was read of it yet"
    number = "" if each.sequence_number is None else f" #{each.sequence_number}"
    parts = [f"block{number} {short(each.block)}", _records(each)]
    if each.system_time is not None:
        parts.append(f"{str(each.system_time)[:19]}Z")
    return f"{each.name}  {', '.join(parts)}{_standing(each)}"


def _records(each: Vintage) -> str:
    if each.last_offset is None:
        return "no records"
    return f"records 0 to {each.last_offset:,}"


def _standing(each: Vintage) -> str:
    if each.repeated:
        return " (what it was made from is told above)"
    if each.sequence_number is None:
        return " (its chain is not here)"
    if each.behind is None:
        return " (not part of its chain any more)"
    return f" ({count(each.behind, 'newer block')} not read)" if each.behind else ""
