"""The keys of a YAML text by its lines, also where it is broken or a template, as while one types.

YAML itself decides what a text says; this tells an editor what stands where. Braces on one line are
followed, longer ones are not. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from odfbuild.errors import Path
from odfbuild.values import Value

_LINE = re.compile(r"(?P<indent> *)(?P<dashes>(?:- +|-$)*)(?P<rest>.*)")
_KEY = re.compile(
    r"""(?P<key>"[^"]*"|'[^']*'|[^\s#&*!|>%@`\[\]{},"'-][^#:,\[\]{}]*?|\$?[\w./*-]+)\s*:(?=\s|$)"""
)
_BLOCK = re.compile(r"[|>][-+0-9]*\s*(?:#.*)?$")
_COMMENT = re.compile(r"(?:^|\s)#.*$")
_LONG = 10_000
"""Characters of a line beyond which nobody writes keys."""
_FLOW_KEY = re.compile(r"([\w./-]+)\s*:\s*")


class Entry(Value):
    """A key, or an item of a list, with the indices of its parts in the text.

    `path` leads to it in document number `document`. `key` are start and end of a key (of an item
    that is no mapping: `None`), `value` those of its value on the same line, or of all lines of a
    `|` or `>`, which are `block`. `column` is how deep it stands, `line` counts from 0.
    """

    document: int
    path: Path
    line: int
    column: int
    key: tuple[int, int] | None
    value: tuple[int, int]
    text: str
    block: bool = False

    @property
    def plain(self) -> str:
        """The value on its line, without quotes."""
        return unquoted(self.text)


def unquoted(text: str) -> str:
    """A scalar without its quotes."""
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    return text


class Outline(Value):
    """All keys of a text."""

    text: str
    entries: tuple[Entry, ...]

    def at(self, index: int) -> Entry | None:
        """The entry whose key or value, or space behind it, has a place; the innermost."""
        line = self.text.count("\n", 0, index)
        found = None
        for each in self.entries:
            start = each.key[0] if each.key else each.value[0]
            if (each.line == line and start <= index) or (
                each.block and each.value[0] <= index <= each.value[1]
            ):
                found = each
        return found

    def value(self, document: int, path: Path) -> str | None:
        """The text of a value on its line."""
        found = self.entry(document, path)
        return found.plain if found is not None else None

    def entry(self, document: int, path: Path) -> Entry | None:
        """The entry that a path leads to."""
        return next((e for e in self.entries if (e.document, e.path) == (document, path)), None)

    def below(self, document: int, path: Path) -> list[Entry]:
        """The keys or items right below a path."""
        return [
            each
            for each in self.entries
            if each.document == document and each.path[:-1] == path and each.path
        ]

    def items(self, document: int, path: Path) -> list[Path]:
        """The paths of the items of a list, mappings among them."""
        length = len(path)
        numbers = (
            each.path[length]
            for each in self.entries
            if each.document == document and each.path[:length] == path and len(each.path) > length
        )
        return [(*path, each) for each in dict.fromkeys(numbers) if isinstance(each, int)]


def outline_of(text: str) -> Outline:
    """The keys of a text."""
    return Outline(text, tuple(_entries(text)))


def _entries(text: str) -> Iterator[Entry]:
    document, started = 0, False
    stack: list[tuple[int, Path]] = []
    counts: dict[tuple[int, Path], int] = {}
    lines = text.split("\n")
    start, number = 0, 0
    while number < len(lines):
        line = lines[number]
        if line.startswith(("---", "...")):
            document, stack = document + started, []
            started = False
        elif len(line) < _LONG and line.strip() and not line.lstrip().startswith(("#", "{%", "%}")):
            started = True
            for entry in _of_line(line, start, number, document, stack, counts):
                if entry.block:
                    end_line, end = _block_end(lines, number, start, entry.column)
                    yield Entry(
                        document,
                        entry.path,
                        entry.line,
                        entry.column,
                        entry.key,
                        (min(start + len(line) + 1, end), end),
                        entry.text,
                        True,
                    )
                    for skipped in range(number, end_line):
                        start += len(lines[skipped]) + 1
                    number = end_line
                else:
                    yield entry
            line = lines[number]
        start += len(line) + 1
        number += 1


def _block_end(lines: list[str], number: int, start: int, column: int) -> tuple[int, int]:
    """Number of the last line of a block, and the index of its end."""
    at = start + len(lines[number])
    last, end = number, at
    for following in range(number + 1, len(lines)):
        line = lines[following]
        at += 1 + len(line)
        if line.strip():
            depth = len(line) - len(line.lstrip(" "))
            if depth <= column and not line.lstrip().startswith("{%"):
                break
        last, end = following, at
    return last, end


def _of_line(
    line: str,
    start: int,
    number: int,
    document: int,
    stack: list[tuple[int, Path]],
    counts: dict[tuple[int, Path], int],
) -> Iterator[Entry]:
    match = _LINE.match(line)
    assert match is not None, "any line matches"
    column = len(match["indent"])
    for dash in re.finditer(r"-(?: +|$)", match["dashes"]):
        at = column + dash.start()
        # A list may stand at the column of its key.
        while stack and (
            stack[-1][0] > at or (stack[-1][0] == at and isinstance(stack[-1][1][-1], int))
        ):
            stack.pop()
        parent = stack[-1][1] if stack else ()
        index = counts.get((document, parent), 0)
        counts[document, parent] = index + 1
        stack.append((at, (*parent, index)))
    column += len(match["dashes"])
    rest = match["rest"]
    begin = start + column
    key = _KEY.match(rest)
    if key is None:
        if match["dashes"]:
            path = stack[-1][1]
            text = _COMMENT.sub("", rest).rstrip()
            yield Entry(
                document, path, number, column - 2, None, (begin, begin + len(text)), text,
                bool(_BLOCK.fullmatch(text)),
            )  # fmt: skip
            yield from _flow(text, begin, number, document, path)
        return
    while stack and stack[-1][0] >= column:
        stack.pop()
    path = (*(stack[-1][1] if stack else ()), unquoted(key["key"]))
    stack.append((column, path))
    counts[document, path] = 0
    tail = rest[key.end() :]
    value = tail.lstrip(" ")
    at = begin + key.end() + len(tail) - len(value)
    text = _COMMENT.sub("", value).rstrip() if value[:1] not in ("'", '"') else value.rstrip()
    yield Entry(
        document,
        path,
        number,
        column,
        (begin, begin + len(key["key"])),
        (at, at + len(text)),
        text,
        bool(_BLOCK.fullmatch(value)),
    )
    yield from _flow(text, at, number, document, path)


def _flow(text: str, start: int, number: int, document: int, path: Path) -> Iterator[Entry]:
    """What stands in braces and brackets on one line."""
    if not text.startswith(("{", "[")) or text.startswith("{{"):
        return
    frames: list[tuple[str, Path, int]] = []
    current: Path = path
    at = 0
    while at < len(text):
        sign = text[at]
        if sign in "{[":
            frames.append((sign, current, 0))
            at += 1
        elif sign in "}]":
            if frames:
                current = frames.pop()[1]
            at += 1
        elif sign == "," and frames:
            opening, around, count = frames[-1]
            frames[-1] = (opening, around, count + 1)
            at += 1
        elif sign.isspace() or not frames:
            at += 1
        else:
            opening, around, count = frames[-1]
            here: Path = around
            key_at: tuple[int, int] | None = None
            if opening == "{":
                key = _FLOW_KEY.match(text, at)
                if key is None:
                    end = _flow_end(text, at)
                    yield Entry(
                        document, (*around, text[at:end].strip()), number, 1 << 16,
                        (start + at, start + end), (start + end, start + end), "",
                    )  # fmt: skip
                    at = max(end, at + 1)
                    continue
                here = (*around, key[1])
                key_at = (start + at, start + key.end(1))
                at = key.end()
            else:
                here = (*around, count)
            current = here
            end = _flow_end(text, at)
            value = text[at:end].rstrip()
            yield Entry(
                document,
                here,
                number,
                1 << 16,
                key_at,
                (start + at, start + at + len(value)),
                value,
            )
            if text[at : at + 1] not in ("{", "["):
                at = max(end, at + 1) if end > at else at + (key_at is None)


def _flow_end(text: str, at: int) -> int:
    """The end of a scalar in braces or brackets."""
    if text[at : at + 1] in ("'", '"'):
        closing = text.find(text[at], at + 1)
        return len(text) if closing < 0 else closing + 1
    if text[at : at + 1] in ("{", "["):
        depth = 0
        for number in range(at, len(text)):
            depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(text[number], 0)
            if depth == 0:
                return number + 1
        return len(text)
    found = re.compile(r"[,\]}]").search(text, at)
    return found.start() if found else len(text)
