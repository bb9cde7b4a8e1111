"""What differs between definitions, as text and as plain values. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from odfbuild.errors import Location
from odfbuild.odf.yaml_form import to_data
from odfbuild.plan.changes.definitions import ChangeKind, DefinitionChange
from odfbuild.plan.model import Action
from odfbuild.report.forms.rows import Row
from odfbuild.report.plan.instances import grouped
from odfbuild.report.plan.text import render_rows
from odfbuild.report.plan.view import event_view
from odfbuild.wording import count

NO_DIFFERENCES = "No differences."

_ACTIONS = {
    ChangeKind.ADDED: Action.CREATE,
    ChangeKind.CHANGED: Action.APPEND,
    ChangeKind.RENAMED: Action.APPEND,
    ChangeKind.REMOVED: Action.FORGET,
    ChangeKind.COSMETIC: None,
}
_COUNTED = (ChangeKind.ADDED, ChangeKind.CHANGED, ChangeKind.RENAMED, ChangeKind.REMOVED)


def render_differences(
    changes: Sequence[DefinitionChange], *, color: bool = False, full: bool = False
) -> str:
    """A line for each dataset whose definition differs with its diff, then the counts."""
    moved = [change for change in changes if change.kind is ChangeKind.MOVED]
    shown = [change for change in changes if change.kind is not ChangeKind.MOVED]
    lines = render_rows(_rows(shown), color=color, full=full)
    if lines:
        lines.append("")
    if full:
        lines += [f"  = {m.name}  from {_file(m.before)} to {_file(m.after)}" for m in moved]
    if moved:
        verb = "moves" if len(moved) == 1 else "move"
        lines.append(f"{count(len(moved), 'definition')} only {verb} between files.")
    return "\n".join([*lines, _closing(changes)])


def differences_to_data(
    changes: Sequence[DefinitionChange], before: str, after: str
) -> dict[str, Any]:
    """The same as plain values; `before` and `after` say what was compared."""
    leaders = {row.name: row.same_as for row in _rows(changes)}
    return {
        "from": before,
        "to": after,
        "datasets": [_to_data(change, leaders[change.name]) for change in changes],
        "summary": {kind.value: _number(changes, kind) for kind in ChangeKind},
    }


def _to_data(change: DefinitionChange, same_as: str | None) -> dict[str, Any]:
    renamed = change.kind is ChangeKind.RENAMED and change.before is not None
    return {
        "name": change.name,
        "change": change.kind.value,
        "renamed_from": change.before.name if renamed and change.before else None,
        "before": _source(change.before.location) if change.before else None,
        "after": _source(change.after.location) if change.after else None,
        "same_as": same_as,
        "events": [
            {
                "kind": next(e.KIND for e in (each.after, each.before) if e is not None),
                "before": to_data(each.before),
                "after": to_data(each.after),
                "source": _source(each.location) if each.location else None,
            }
            for each in change.events
        ],
    }


def _source(place: Location) -> dict[str, Any]:
    found = {"file": place.file, "line": place.line, "column": place.column}
    return {**found, "instance": place.instance}


def _rows(changes: Sequence[DefinitionChange]) -> list[Row]:
    return list(
        grouped(
            (_row(change), change.after.location if change.after else None) for change in changes
        )
    )


def _row(change: DefinitionChange) -> Row:
    defined = change.after or change.before
    shown = change.events if change.before is not None else ()
    return Row(
        name=change.name,
        action=_ACTIONS.get(change.kind),
        what=_what(change),
        place=str(defined.location) if defined else None,
        events=tuple(event_view(e.before, e.after, e.location) for e in shown),
    )


def _what(change: DefinitionChange) -> str:
    events = ", ".join(
        next(e.KIND for e in (each.after, each.before) if e is not None) for each in change.events
    )
    match change.kind:
        case ChangeKind.ADDED if change.after is not None:
            kind = change.after.snapshot.kind.name.lower()
            return f"new {kind} in {change.after.location}: {events}"
        case ChangeKind.RENAMED if change.before is not None:
            return f"renamed from {change.before.name}" + (f"; {events}" if events else "")
        case ChangeKind.REMOVED if change.before is not None:
            return f"no longer defined; it was in {change.before.location}"
        case ChangeKind.COSMETIC:
            return "cosmetic: only white space or comments changed in SQL"
    return events


def _file(definition: Any) -> str:
    return str(definition.location)


def _number(changes: Sequence[DefinitionChange], kind: ChangeKind) -> int:
    return sum(change.kind is kind for change in changes)


def _closing(changes: Sequence[DefinitionChange]) -> str:
    """The last line; its form is stable."""
    if all(change.kind is ChangeKind.MOVED for change in changes):
        return NO_DIFFERENCES
    counts = ", ".join(f"{_number(changes, kind)} {kind.value}" for kind in _COUNTED)
    return f"Diff: {counts}."
