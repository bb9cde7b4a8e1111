"""The queries in a YAML text or template, or in a file beside it, and where each character stands.

Jinja expressions in templates become names of the same length, so that SQL around them can be read.
Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from odfbuild.api.editor.outline import Entry, Outline
from odfbuild.errors import OdfbuildError, Path
from odfbuild.project.yaml.scalars import offsets_of
from odfbuild.project.yaml.source import compose
from odfbuild.values import Value

_EXPRESSION = re.compile(r"\{\{.*?\}\}", re.S)
_STATEMENT = re.compile(r"\{%.*?%\}|\{#.*?#\}", re.S)


class SqlPart(Value):
    """A query in a document: its text, and the index in the file of each character and of its end.

    `owner` leads to the event that has it, `step` is its number among several.
    """

    document: int
    path: Path
    owner: Path
    step: int
    sql: str
    offsets: tuple[int, ...]

    def holds(self, index: int) -> bool:
        """Whether a place in the file is in the query, or right behind it."""
        return self.offsets[0] <= index <= self.offsets[-1] + 1

    def within(self, index: int) -> int:
        """The place in the query of a place in the file."""
        from bisect import bisect_left

        return min(bisect_left(self.offsets, index), len(self.sql))


def sql_parts(outline: Outline) -> list[SqlPart]:
    """The queries of a text in its order."""
    return [part for entry in outline.entries if (part := _part(entry, outline.text)) is not None]


def part_of_file(around: Outline, text: str) -> SqlPart | None:
    """The query that is a whole file, of the only derivative that the definition `around` has.

    `None`: it has none, or several.
    """
    found = [
        (entry.document, entry.path[:4])
        for entry in around.entries
        if entry.path[:2] == ("content", "metadata") and entry.path[3:] == ("transform",)
    ]
    if len(found) != 1:
        return None
    document, path = found[0]
    offsets = tuple(range(len(text) + 1))
    return SqlPart(document, (*path, "query"), path[:3], 0, _readable(text), offsets)


def _part(entry: Entry, text: str) -> SqlPart | None:
    path = entry.path
    if path[-1] != "query" or "metadata" not in path[:2]:
        return None
    step, above = 0, path[:-1]
    if len(above) > 1 and above[-2] == "queries" and isinstance(above[-1], int):
        step, above = above[-1], above[:-2]
    if entry.block:
        sql, offsets = _block(text, *entry.value)
    else:
        sql, offsets = _flow(text, entry)
    return SqlPart(entry.document, path, above[:-1], step, _readable(sql), offsets)


def _block(text: str, start: int, end: int) -> tuple[str, tuple[int, ...]]:
    lines: list[tuple[int, str]] = []
    at = start
    for line in text[start:end].split("\n"):
        lines.append((at, line))
        at += len(line) + 1
    depths = [len(line) - len(line.lstrip(" ")) for _, line in lines if line.strip()]
    indent = depths[0] if depths else 0
    offsets: list[int] = []
    sql: list[str] = []
    for number, (at, line) in enumerate(lines):
        kept = line[indent:]
        begin = at + min(indent, len(line))
        sql.append(kept)
        offsets += range(begin, begin + len(kept))
        if number + 1 < len(lines):
            offsets.append(at + len(line))
    return "\n".join(sql), (*offsets, end)


def _flow(text: str, entry: Entry) -> tuple[str, tuple[int, ...]]:
    start, end = entry.value
    with suppress(OdfbuildError):
        for document in compose(text, ""):
            for node in _scalars(document):
                if node.start_mark.index == start:
                    return node.value, offsets_of(text, node)
    quoted = text[start : start + 1] in ("'", '"')
    start, end = start + quoted, max(start + quoted, end - quoted)
    return text[start:end], tuple(range(start, end + 1))


def _scalars(node: Any) -> Iterator[Any]:
    value = getattr(node, "value", None)
    if isinstance(value, str):
        yield node
    elif isinstance(value, list):
        for each in value:
            for part in each if isinstance(each, tuple) else (each,):
                yield from _scalars(part)


def _readable(sql: str) -> str:
    if "{" not in sql:
        return sql
    sql = _EXPRESSION.sub(lambda found: "_" * len(found.group()), sql)
    return _STATEMENT.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), sql)
