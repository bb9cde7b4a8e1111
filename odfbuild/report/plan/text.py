"""A plan as text for people.

One line for each dataset that something happens to, its details below, and a closing line that
programs may rely on. Meaning is never carried by colour alone. Pure: a `Plan` in, text out.
"""

from __future__ import annotations

from collections.abc import Sequence

from odfbuild.plan.model import Action, Plan
from odfbuild.report.errors import render_error
from odfbuild.report.findings.drift import drift_lines
from odfbuild.report.forms.rows import EventView, Row
from odfbuild.report.forms.words import paint
from odfbuild.report.plan.view import PlanView, view
from odfbuild.wording import count

DETAILED = 40
"""Up to so many datasets are shown with details."""
PINNED = 10
"""Up to so many datasets of others that are pinned are shown."""
LISTED = 200
"""Up to so many are shown at all, unless everything is asked for."""

_COLORS = {
    Action.PROMOTE: "green",
    Action.CREATE: "green",
    Action.REBUILD: "red",
    Action.RENAME: "yellow",
    Action.APPEND: "yellow",
    Action.RUN: "cyan",
    Action.POLL: "blue",
    Action.FORGET: "red",
    Action.DELETE: "red",
    Action.REFUSE: "magenta",
}


def render_plan(plan: Plan, *, color: bool = False, full: bool = False) -> str:
    """The plan as lines of text, without a newline at the end.

    `full` shows every detail of every dataset however many there are, and whole trees of reasons.
    """
    seen = view(plan)
    drift = drift_lines(seen.drift, color=color)
    external = _external(seen, full=full)
    unseen = _unseen(seen, color=color, full=full)
    if not seen.has_changes:
        lines = [*drift, *(_line(row, 1, len(row.name), color=color) for row in seen.rows)]
        for more in (external, unseen):
            lines += [*([""] if lines and more else []), *more]
        return "\n".join([*lines, *([""] if lines else []), *seen.publishing, seen.nothing])
    lines = [seen.head, "", *drift, *([""] if drift else [])]
    rows = render_rows(seen.rows, color=color, full=full)
    lines += [*rows, ""] if rows else []
    lines += [*external, ""] if external else []
    lines += [*unseen, ""] if unseen else []
    return "\n".join([*lines, *seen.notes, *seen.publishing, seen.closing])


def _unseen(seen: PlanView, *, color: bool, full: bool) -> list[str]:
    """What apply has to look at, in a line; of servers that were asked and did not tell, why."""
    unseen = seen.unseen
    if not unseen:
        return []
    if full:
        rows = [*unseen.sources, *unseen.downstream]
        return [unseen.line, *render_rows(rows, color=color, full=True)]
    ask = "" if unseen.refreshed else ", --refresh asks web servers"
    lines = [f"{unseen.line.rstrip('.')} (--full lists all{ask})."]
    silent = [f"  {row.sign} {row.name}  {row.causes[0]}" for row in unseen.unanswered[:PINNED]]
    more = len(unseen.unanswered) - len(silent)
    return [*lines, *silent, *([f"  … and {count(more, 'more source')}"] if more else [])]


def _external(seen: PlanView, *, full: bool) -> list[str]:
    """Datasets of others; those that somebody has to pull first are always shown."""
    if not seen.external:
        return []
    shown = [each for each in seen.external if each.sign != "="]
    pinned = [each for each in seen.external if each.sign == "="]
    shown += pinned if full else pinned[:PINNED]
    more = len(seen.external) - len(shown)
    width = min(40, max(len(each.name) for each in shown))
    lines = [f"  {each.sign} {each.name:<{width}}  {each.what}" for each in shown]
    rest = [f"  … and {count(more, 'more dataset')}; --full lists all"] if more else []
    return ["External datasets:", *lines, *rest]


def render_rows(rows: Sequence[Row], *, color: bool, full: bool) -> list[str]:
    """A line for each row, and its details below while there are not too many."""
    listed = rows if full else rows[:LISTED]
    width = min(40, max((len(row.name) for row in listed), default=0))
    signs = max((len(row.sign) for row in listed), default=0)
    lines = []
    for row in listed:
        lines.append(_line(row, signs, width, color=color))
        if full or len(rows) <= DETAILED or row.refusal is not None:
            lines += [f"      {line}".rstrip() for line in _details(row, color, full)]
    if len(rows) > len(listed):
        more = count(len(rows) - len(listed), "more dataset")
        lines.append(f"  … and {more}; --full lists all")
    return lines


def _line(row: Row, signs: int, width: int, *, color: bool) -> str:
    sign = paint(row.sign, _COLORS[row.action], on=color) if row.action else row.sign
    return f"  {' ' * (signs - len(row.sign))}{sign} {row.name:<{width}}  {row.what}".rstrip()


def _details(row: Row, color: bool, full: bool) -> list[str]:
    if row.refusal is not None:
        return render_error(row.refusal, color=color).splitlines()
    lines = [line for event in row.events for line in render_event(event, color=color)]
    if row.same_as:
        lines.append(f"{row.likeness} as {row.same_as}, from {row.place}")
    lines += row.notes
    if row.then is not None:
        action, amount = row.then
        lines.append(f"{paint(action.value, _COLORS[action], on=color)} {amount}")
    if full:
        return [*lines, *(f"reads {file}" for file in row.files), *row.causes]
    return [*lines, *row.reasons]


def render_event(event: EventView, *, color: bool = False) -> list[str]:
    """The place of a changed event and its diff."""
    head = event.title or event.place
    place = [paint(head, "dim", on=color)] if head else []
    return [*place, *(_paint_diff(line, color) for line in event.diff)]


def _paint_diff(line: str, color: bool) -> str:
    return paint(line, {"+": "green", "-": "red", "@": "dim"}.get(line[0]), on=color)
