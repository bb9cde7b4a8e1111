"""A plan as Markdown, for a comment on a pull request.

The first line is a hidden marker by which a CI job finds its own comment and updates it. What does
not fit into a comment is left out and counted: details before rows, rows before the summary. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from odfbuild.inspect.data_diff.model import Comparison
from odfbuild.plan.saved import SavedPlan
from odfbuild.project.settings.owners import Ownership, owners_of
from odfbuild.report.errors import render_error
from odfbuild.report.findings.drift import SIGN, label
from odfbuild.report.forms.markdown import (
    BUDGET,
    code,
    escaped,
    fenced,
    fitting,
    left_out,
    marker,
    sentence,
    size,
)
from odfbuild.report.forms.rows import EventView, Row
from odfbuild.report.plan.view import PlanView, view
from odfbuild.report.records.data_diff.markdown import data_diff_lines
from odfbuild.wording import count

_RESERVE = 256
"""Characters kept for what frames rows and details, and says what was left out."""


def render_markdown(
    saved: SavedPlan,
    *,
    owners: Sequence[Ownership] = (),
    records: Comparison | None = None,
    budget: int = BUDGET,
) -> str:
    """The plan as Markdown of at most `budget` characters (2,000 and more), and whom to ask.

    With `records`, also what it does to these, in a third of it.
    """
    seen = view(saved.plan)
    head = [*_head(seen, saved), *_drift(seen, budget // 4)]
    tail = [
        *([] if records is None else ["#### Records", "", *data_diff_lines(records, budget // 3)]),
        *_external(seen, budget // 8),
        *_unseen(seen, budget // 8),
        *_owners(seen, owners, budget // 8),
        *_tail(seen, saved),
    ]
    room = budget - size(head) - size(tail) - _RESERVE
    columns = ["", "dataset", "what happens"]
    if any(map(_place, seen.rows)):  # a promotion moves heads, and has no definitions
        columns.append("defined in")
    rows, room = fitting([_table_row(row, len(columns)) for row in seen.rows], room)
    shown = seen.rows[: len(rows)]
    details, _ = fitting([block for row in shown if (block := _details(row))], room)
    wanted = sum(bool(_details(row)) for row in seen.rows)
    lines = [*head]
    if rows:
        lines += [_line(columns), _line(["---"] * len(columns)), *rows]
        lines += left_out(len(seen.rows) - len(rows), "more dataset")
        lines.append("")
    if details:
        summary = f"<summary>Changes and reasons of {count(len(details), 'dataset')}</summary>"
        lines += ["<details>", summary, "", *details, "</details>"]
        lines += left_out(wanted - len(details), "more dataset", " with details")
        lines.append("")
    return "\n".join([*lines, *tail])


def _drift(seen: PlanView, room: int) -> list[str]:
    lines = [
        f"- {code(SIGN)} {code(each.dataset)} drift of {escaped(label(each))}: "
        f"{sentence(each.message)}"
        for each in seen.drift
    ]
    shown, _ = fitting(lines, room)
    more = left_out(len(lines) - len(shown), "more place", " of drift")
    return [*shown, *more, ""] if lines else []


def _external(seen: PlanView, room: int) -> list[str]:
    """Datasets of others, first those that somebody has to pull."""
    lines = [
        f"- {code(each.sign)} {code(each.name)} {escaped(each.what)}"
        for each in sorted(seen.external, key=lambda each: each.sign)
    ]
    shown, _ = fitting(lines, room)
    more = left_out(len(lines) - len(shown), "more external dataset")
    return ["External datasets:", "", *shown, *more, ""] if lines else []


def _unseen(seen: PlanView, room: int) -> list[str]:
    """What apply has to look at: a line, which unfolds."""
    unseen = seen.unseen
    if not unseen:
        return []
    lines = [f"- {code(row.name)}: {escaped(row.causes[0])}" for row in unseen.sources]
    lines += [f"- {code(row.name)}" for row in unseen.downstream]
    shown, _ = fitting(lines, room)
    more = left_out(len(lines) - len(shown), "more dataset")
    summary = f"<summary>{escaped(unseen.line)}</summary>"
    return ["<details>", summary, "", unseen.hint, "", *shown, *more, "</details>", ""]


def _owners(seen: PlanView, declared: Sequence[Ownership], room: int) -> list[str]:
    """Owners and their datasets in the plan; as code, so that nobody is notified by each push."""
    found: dict[str, list[str]] = {}
    for row in seen.rows:
        for owner in owners_of(declared, row.name):
            found.setdefault(owner, []).append(row.name)
    lines = [f"- {code(owner)}: {_some(names)}" for owner, names in sorted(found.items())]
    shown, _ = fitting(lines, room)
    more = left_out(len(lines) - len(shown), "more owner")
    return ["Owners:", "", *shown, *more, ""] if lines else []


def _some(names: Sequence[str]) -> str:
    more = f" and {count(len(names) - 3, 'more dataset')}" if len(names) > 3 else ""
    return ", ".join(code(name) for name in names[:3]) + more


def _head(seen: PlanView, saved: SavedPlan) -> list[str]:
    lines = [marker(seen.project, saved.plan.env), f"### {escaped(seen.title)}", ""]
    return [*lines, escaped(seen.head) + _revision(saved), ""]


def _revision(saved: SavedPlan) -> str:
    if saved.git is None:
        return ""
    state = ", with changes that are not committed" if saved.git["dirty"] else ""
    return f", at commit {code(saved.git['commit'][:7])}{state}"


def _tail(seen: PlanView, saved: SavedPlan) -> list[str]:
    lines = [f"{escaped(note)}  " for note in (*seen.notes, *seen.publishing)]
    return [*lines, f"{escaped(seen.closing)}  ", f"Plan {code(saved.digest)}", ""]


def _table_row(row: Row, columns: int) -> str:
    then = f"; then {code(row.then[0].value)} {escaped(row.then[1])}" if row.then else ""
    where = code(_place(row) or "")
    cells = [code(row.sign), code(row.name), f"{escaped(row.what)}{then}", where]
    return _line(cells[:columns])


def _line(cells: Sequence[str]) -> str:
    """A line of the table."""
    return "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|"


def _place(row: Row) -> str | None:
    """Where a dataset is defined."""
    return next((event.place for event in row.events if event.place), row.place)


def _details(row: Row) -> str:
    """The block of a dataset; empty when its row says all."""
    lines: list[str] = []
    if row.refusal is not None:
        lines += fenced("text", render_error(row.refusal).splitlines())
    for event in row.events:
        lines += _event(event)
    if row.same_as:
        like, place = str(row.likeness).capitalize(), code(row.place or "")
        lines += [f"{like} as {code(row.same_as)}, from {place}.", ""]
    items = [*row.notes, *row.reasons]
    lines += [f"- {escaped(item)}" for item in items]
    if not lines:
        return ""
    return "\n".join(
        [f"**{code(f'{row.sign} {row.name}')}**", "", *lines, *([""] if items else [])]
    )


def _event(event: EventView) -> list[str]:
    place = f" in {code(event.place)}" if event.place else ""
    return [
        escaped(event.title or event.kind) + place,
        "",
        *(fenced("diff", event.diff) if event.diff else []),
    ]
