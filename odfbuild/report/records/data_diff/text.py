"""A difference of records as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from odfbuild.inspect.data_diff.model import Comparison
from odfbuild.report.forms.words import paint
from odfbuild.report.records.data_diff.view import DiffView, closing, views

_COLORS = {"+": "green", "-": "red", "~": "yellow"}


def render_data_diff(found: Comparison, *, color: bool = False) -> str:
    """All datasets that differ, with samples, and how many there are.

    How much was read is not said again: a command says so before it begins.
    """
    lines: list[str] = []
    for each in views(found):
        lines += [*_lines(each, color), ""]
    return "\n".join([*lines, closing(found)])


def _lines(seen: DiffView, color: bool) -> Iterator[str]:
    yield f"{paint('~', 'yellow', on=color)} {seen.name}  {seen.states}"
    yield f"    {seen.summary}"
    if seen.key:
        yield f"    {seen.key}"
    yield from (f"    note: {each}" for each in seen.notes)
    yield from _part("columns", [_rate(seen, *each) for each in seen.rates])
    yield from _part("schema", seen.schema)
    yield from _part("distributions", seen.drift)
    samples = (
        f"{paint(each.sign, _COLORS[each.sign], on=color)} "
        + "  ".join(filter(None, (each.key, each.text)))
        for each in seen.samples
    )
    yield from _part("samples", list(samples))


def _rate(seen: DiffView, column: str, number: str, part: str) -> str:
    width = max(len(name) for name, _, _ in seen.rates)
    return f"{column.ljust(width)}  {number}, {part}"


def _part(title: str, lines: tuple[str, ...] | list[str]) -> Iterator[str]:
    if lines:
        yield f"    {title}"
        yield from (f"      {each}" for each in lines)
