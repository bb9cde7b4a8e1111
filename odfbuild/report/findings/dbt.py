"""What became of a dbt project, as text, Markdown and plain data. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from odfbuild.exchange.dbt.result import STATUSES, Item, Migrated
from odfbuild.report.forms.markdown import code, escaped, sentence
from odfbuild.report.forms.table import markdown_table, render_table
from odfbuild.report.forms.visible import visible
from odfbuild.report.forms.words import paint
from odfbuild.wording import count

_TITLES = {
    "moved": "Moved",
    "by hand": "Needs work by hand",
    "not moved": "Not moved",
}
_COLORS = {"moved": "green", "by hand": "yellow", "not moved": "red"}
_KINDS = (
    "model",
    "seed",
    "source",
    "snapshot",
    "test",
    "unit test",
    "exposure",
)
SHOWN = 5
"""Places of a note that many parts have."""


def render_migration(migrated: Migrated, *, color: bool = False) -> str:
    """Each part with what is to be known of it, then the numbers."""
    lines = [f"dbt project {migrated.project}, read from {migrated.read_from}", ""]
    for status in STATUSES:
        found = [item for item in migrated.items if item.status == status]
        if not found:
            continue
        lines.append(paint(_TITLES[status], _COLORS[status], on=color))
        if status == "moved":
            lines += [*_moved(found), "", *_shared_notes(found)]
        else:
            lines += _with_reasons(found)
        lines.append("")
    lines += [render_table(("PART", *map(str.upper, STATUSES)), _numbers(migrated), _RIGHT)]
    return visible("\n".join(lines))


def migration_markdown(migrated: Migrated) -> str:
    """The same for a pull request."""
    lines = [
        f"### dbt project {code(migrated.project)}, read from {escaped(migrated.read_from)}",
        "",
        markdown_table(("part", *STATUSES), _numbers(migrated), _RIGHT),
    ]
    for status in STATUSES[1:]:
        found = [item for item in migrated.items if item.status == status]
        if found:
            rows = [f"| {each.kind} {code(each.name)} | {_reasons(each)} |" for each in found]
            lines += ["", f"#### {_TITLES[status]}", "", "| part | why |", "| --- | --- |", *rows]
    moved = [item for item in migrated.items if item.status == "moved"]
    tables = [each for each in moved if each.kind in _KINDS[:4]]
    if tables:
        rows = [
            f"| {each.kind} {code(each.name)} | {code(each.target or '')} | {_reasons(each)} |"
            for each in tables
        ]
        head = ["| part | dataset | notes |", "| --- | --- | --- |"]
        lines += ["", f"#### {_TITLES['moved']}", "", *head, *rows]
    return "\n".join(lines)


def migration_to_data(migrated: Migrated, written: Sequence[str]) -> dict[str, Any]:
    """The same as plain data; `written` are the files that were written."""
    return {
        "project": migrated.project,
        "readFrom": migrated.read_from,
        "written": list(written),
        "items": [
            {
                "kind": item.kind,
                "name": item.name,
                "file": item.place.file,
                "line": item.place.line,
                "status": item.status,
                "target": item.target,
                "notes": [
                    {"text": note.text, "file": note.place.file, "line": note.place.line}
                    for note in item.notes
                ],
            }
            for item in migrated.items
        ],
    }


_RIGHT = frozenset({1, 2, 3})


def _numbers(migrated: Migrated) -> list[list[str]]:
    kinds = dict.fromkeys((*_KINDS, *(item.kind for item in migrated.items)))
    rows = []
    for kind in kinds:
        found = [item.status for item in migrated.items if item.kind == kind]
        if found:
            rows.append([kind, *(str(found.count(status)) for status in STATUSES)])
    return rows


def _moved(items: Sequence[Item]) -> Iterator[str]:
    """Tables with their datasets; of the others their number."""
    tables = [each for each in items if each.kind in _KINDS[:4]]
    width = max((len(f"{each.kind} {each.name}") for each in tables), default=0)
    for each in tables:
        yield f"  {f'{each.kind} {each.name}':<{width}}  {each.target}"
    for kind in _KINDS[4:]:
        found = sum(each.kind == kind for each in items)
        if found:
            yield f"  {count(found, kind)}"


def _shared_notes(items: Iterable[Item]) -> Iterator[str]:
    """What is different in parts that were moved: each note once, with its places."""
    places: dict[str, list[str]] = {}
    for item in items:
        for note in item.notes:
            places.setdefault(note.text, []).append(str(note.place))
    for text, found in places.items():
        more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        yield f"  note: {text}"
        yield f"    {', '.join(found[:SHOWN])}{more}"


def _with_reasons(items: Iterable[Item]) -> Iterator[str]:
    for each in items:
        target = f" ({each.target})" if each.target else ""
        yield f"  {each.kind} {each.name}{target}"
        for note in each.notes:
            yield f"    {note.place}: {note.text}"


def _reasons(item: Item) -> str:
    return "<br>".join(f"{code(str(note.place))}: {sentence(note.text)}" for note in item.notes)
