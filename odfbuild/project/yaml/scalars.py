"""Which character of a YAML text each character of a scalar's value comes from.

For every style: plain, in quotes with their escapes, `|` and `>` with their indentation. Pure.
Source: YAML 1.2.2, chapters 7.3 and 8.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_ESCAPE = re.compile(r"\\(?:x..|u.{4}|U.{8}|\r?\n[ \t]*|.)", re.S)
_BREAK = re.compile(r"[ \t]*(?:\r?\n[ \t]*)+")


def offsets_of(text: str, node: Any) -> tuple[int, ...]:
    """For each character of the value of a scalar, its index in `text`; one more for its end.

    `node` is a node of PyYAML with its marks, composed of `text`.
    """
    start, end = index_of(text, node.start_mark), index_of(text, node.end_mark)
    value: str = node.value
    if node.style in ("|", ">"):
        pieces = _block_lines(text, start, end, value)
    elif node.style in ("'", '"'):
        quoted = _double(text, start + 1, end - 1) if node.style == '"' else None
        pieces = quoted or _single(text, start + 1, end - 1)
    else:
        pieces = _flow_lines(text, start, end)
    return _aligned(value, list(pieces), start, end)


def index_of(text: str, mark: Any) -> int:
    """The index of a mark, which libyaml counts in characters."""
    return min(int(mark.index), len(text))


Piece = tuple[str, tuple[int, ...]]
"""Characters of a value that stand in one line, and the index of each."""


def _aligned(value: str, pieces: list[Piece], start: int, end: int) -> tuple[int, ...]:
    """Put pieces where they occur in the value; between them are folded line breaks."""
    found = [-1] * len(value)
    at, last = 0, start
    for characters, indices in pieces:
        place = value.find(characters, at)
        if place < 0:
            continue
        for number in range(at, place):
            found[number] = last
        found[place : place + len(characters)] = indices
        at = place + len(characters)
        last = indices[-1] + 1
    for number in range(at, len(value)):
        found[number] = last
    return (*found, min(last, end) if value else start)


def _piece(text: str, start: int, end: int) -> Piece:
    return text[start:end], tuple(range(start, end))


def _block_lines(text: str, start: int, end: int, value: str) -> Iterator[Piece]:
    header, _, _ = text[start:end].partition("\n")
    at = start + len(header) + 1
    lines: list[tuple[int, str]] = []
    while at < end:
        stop = text.find("\n", at, end)
        stop = end if stop < 0 else stop
        lines.append((at, text[at:stop].removesuffix("\r")))
        at = stop + 1
    # What the first line has in the value is not indentation: a header may say how deep that is.
    first = next((line for _, line in lines if line.strip(" ")), "")
    kept = next((line for line in value.split("\n") if line.strip(" ")), "")
    indent = _depth(first) - _depth(kept)
    for at, line in lines:
        if len(line) > indent:
            yield _piece(text, at + indent, at + len(line))


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _flow_lines(text: str, start: int, end: int) -> Iterator[Piece]:
    at = start
    for gap in _BREAK.finditer(text, start, end):
        if gap.start() > at:
            yield _piece(text, at, gap.start())
        at = gap.end()
    if end > at:
        yield _piece(text, at, end)


def _single(text: str, start: int, end: int) -> Iterator[Piece]:
    for line, indices in _flow_lines(text, start, end):
        kept = [
            number
            for number in range(len(line))
            if not (line[number] == "'" and (line[:number].count("'") % 2))
        ]
        yield line.replace("''", "'"), tuple(indices[number] for number in kept)


def _double(text: str, start: int, end: int) -> Iterator[Piece] | None:
    if "\\" not in text[start:end]:
        return _flow_lines(text, start, end)
    return _escaped(text, start, end)


_NAMED = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "\t": "\t", "n": "\n", "v": "\v", "f": "\f",
    "r": "\r", "e": "\x1b", " ": " ", '"': '"', "/": "/", "\\": "\\", "N": "\x85", "_": "\xa0",
    "L": "\u2028", "P": "\u2029",
}  # fmt: skip


def _escaped(text: str, start: int, end: int) -> Iterator[Piece]:
    at = start
    while at < end:
        escape = _ESCAPE.match(text, at, end)
        if escape is not None:
            word = escape.group()[1:]
            if word[0] in "xuU" and len(word) > 1:
                yield chr(int(word[1:], 16)), (at,)
            elif word[0] not in "\r\n":
                yield _NAMED.get(word[0], word[0]), (at,)
            at = escape.end()
            continue
        gap = _BREAK.match(text, at, end)
        if gap is not None:
            at = gap.end()
            continue
        yield text[at], (at,)
        at += 1
