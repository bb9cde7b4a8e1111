"""Lines above definitions: what the next run would do, and commands that show more. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from odfbuild.api.editor.subjects import View
from odfbuild.plan.model import Plan
from odfbuild.report.forms.rows import Row
from odfbuild.report.plan.view import view
from odfbuild.values import Value

PLAN = "odfbuild.plan"
EXPLAIN = "odfbuild.explain"
TEST = "odfbuild.test"
_INSTANCES = 3
"""Datasets of one template that are told one by one."""


class Lens(Value):
    """A line above a place: its text, the command behind it, and the datasets it is about."""

    at: tuple[int, int]
    title: str
    command: str
    datasets: tuple[str, ...]


def lenses_of(there: View, plan: Plan | None) -> Iterator[Lens]:
    """The lines above definitions and unit tests of a file; without a plan only the commands."""
    yield from _of_unit_tests(there)
    rows = {each.name: each for each in view(plan).rows} if plan is not None else {}
    known = {each.name for each in plan.datasets} if plan is not None else set()
    for at, document in _places(there):
        names = tuple(each.name for each in there.definitions_of(document))
        if not names:
            continue
        shown = [name for name in names if name in known]
        for name in shown[:_INSTANCES]:
            label = f"{name}: " if len(names) > 1 else ""
            yield Lens(at, label + _what(rows.get(name)), PLAN, (name,))
        if len(names) > _INSTANCES or not shown:
            yield Lens(at, "what would change", PLAN, names)
        if shown:
            yield Lens(at, "explain", EXPLAIN, (shown[0],))


def _of_unit_tests(there: View) -> Iterator[Lens]:
    opened = there.opened
    for entry in opened.outline.entries:
        if entry.path == ("content", "dataset") and opened.kind(entry.document) == "UnitTests":
            name = there.spelt(entry.plain)
            if name is not None:
                yield Lens(entry.value, "run these tests", TEST, (name,))


def _places(there: View) -> Iterator[tuple[tuple[int, int], int]]:
    """Where datasets begin, and the documents that define them."""
    opened = there.opened
    if opened.beside is not None:
        yield from (((0, 0), part.document) for part in opened.parts)
    for entry in opened.outline.entries:
        if entry.path == ("content", "name") and opened.kind(entry.document) == "DatasetSnapshot":
            yield entry.value, entry.document


def _what(row: Row | None) -> str:
    if row is None:
        return "up to date"
    if row.refusal is not None:
        return f"refused: {row.refusal.message}"
    return f"{row.what}, then {row.then[1]}" if row.then is not None else row.what
