"""What a file has in it, as a tree: datasets, their events, their queries. Pure."""

from __future__ import annotations

from odfbuild.api.editor.outline import Entry
from odfbuild.api.editor.subjects import Opened
from odfbuild.values import Value


class Symbol(Value):
    """Something with a name, from `start` to `end`; the name itself stands at `at`."""

    name: str
    detail: str
    start: int
    end: int
    at: tuple[int, int]
    inner: tuple[Symbol, ...] = ()


def symbols_of(opened: Opened) -> list[Symbol]:
    """The datasets, unit tests or settings of a file."""
    found = []
    for document in sorted({each.document for each in opened.outline.entries}):
        entries = [each for each in opened.outline.entries if each.document == document]
        kind = opened.kind(document)
        if kind == "Project":
            found += [_symbol(e, entries, str(e.path[-1])) for e in _at(entries, ("content",))]
            continue
        key = ("content", "dataset") if kind == "UnitTests" else ("content", "name")
        named = next((each for each in entries if each.path == key), None)
        if named is None:
            continue
        listed = ("content", "tests") if kind == "UnitTests" else ("content", "metadata")
        called = "name" if kind == "UnitTests" else "kind"
        inner = tuple(_items(entries, listed, called))
        detail = "unit tests" if kind == "UnitTests" else _plain(entries, ("content", "kind"))
        start, end = _start(entries[0]), max(_end(each) for each in entries)
        found.append(Symbol(named.plain, detail, start, end, named.value, inner))
    return found


def _items(entries: list[Entry], path: tuple[str | int, ...], called: str) -> list[Symbol]:
    below = [each for each in entries if each.path[:2] == path and len(each.path) > 2]
    numbers = dict.fromkeys(each.path[2] for each in below)
    found = []
    for number in numbers:
        part = [each for each in below if each.path[2] == number]
        name = _plain(part, (*path, number, called))
        first = part[0]
        at = first.key or first.value
        found.append(Symbol(name or "-", "", _start(first), max(map(_end, part)), at))
    return found


def _at(entries: list[Entry], path: tuple[str, ...]) -> list[Entry]:
    return [each for each in entries if each.path[:-1] == path and each.key is not None]


def _symbol(entry: Entry, entries: list[Entry], name: str) -> Symbol:
    length = len(entry.path)
    ends = [_end(each) for each in entries if each.path[:length] == entry.path]
    assert entry.key is not None, "asked before"
    return Symbol(name, entry.plain, _start(entry), max(ends), entry.key)


def _plain(entries: list[Entry], path: tuple[str | int, ...]) -> str:
    return next((each.plain for each in entries if each.path == path), "")


def _start(entry: Entry) -> int:
    return entry.key[0] if entry.key is not None else entry.value[0]


def _end(entry: Entry) -> int:
    return max(entry.value[1], entry.key[1] if entry.key is not None else 0)
