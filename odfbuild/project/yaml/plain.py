"""Read the part of YAML in which most definitions are written, several times faster than libyaml.

That part: mappings and sequences in block style with plain words as keys; values on the line of
their key, plain or in quotes without escapes; lists of words in brackets; literal blocks (`|`).
Whatever else a text holds, right or wrong, it is left to the complete reader, which also says what
is wrong and where. So this one never refuses and never guesses: it gives what the complete reader
would give, or nothing.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from odfbuild.project.limits import VALUES
from odfbuild.project.yaml.scalars import SCALARS, tag_of

_UNUSUAL = re.compile(r"[\x00-\t\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff-\uffff]")
"""Tabs, other ends of lines, byte order marks, control characters.

Not told as what is allowed, which takes ten times as long to compile, at each start.
"""

_LINE = re.compile(
    r"( *)(- +)?(?:([A-Za-z_][\w.-]*):(?: +|$))?(?:"
    r"(?P<plain>(?:[^ \-?:,\[\]{}#&*!|>'\"%@`]|-[0-9])[^:#]*(?:(?::(?=[^ ])|(?<! )#)[^:#]*)*)"
    r"|'(?P<single>[^']*)' *|\"(?P<double>[^\"\\]*)\" *|(?P<literal>\|-?) *"
    r"|\[ *(?P<words>(?:\w[\w.-]*(?: *, *\w[\w.-]*)*)?) *\] *)?",
    re.ASCII,
)
_BLANK_LINE = re.compile(r"^ +$", re.MULTILINE)

_DEEPEST = 40
"""Column; what stands further right may be too deep."""

_NESTED, _LITERAL, _STRIPPED = object(), object(), object()
"""Instead of a value: it is in the lines below."""


class _NotPlain(Exception):
    """The text is more than this module reads."""


def read_documents(text: str, file: str) -> list[Any]:
    """Plain data of all documents; raises `ProjectError` with the place of broken YAML."""
    data = read_plain(text)
    if data is None:
        from odfbuild.project.yaml.source import read_completely

        data = read_completely(text, file)
    return data


def read_plain(text: str) -> list[Any] | None:
    """Data of all documents; `None`: the complete reader has to read them."""
    if _UNUSUAL.search(text) or not text.endswith("\n"):
        return None
    # A line is a key and a value at most, or an item; those in brackets have commas between them.
    if len(text) > VALUES and 2 * text.count("\n") + text.count(",") > VALUES:
        return None
    parts = text.removeprefix("---\n").removesuffix("\n").split("\n---\n")
    try:
        return [_document(part.split("\n")) for part in parts]
    except _NotPlain:
        return None


def _document(lines: list[str]) -> dict[str, Any]:  # noqa: PLR0912 (calls took a third of it)
    root: dict[str, Any] = {}
    block: Any = root  # the mapping or sequence to which a line belongs,
    column = 0  # where its keys or its dashes stand,
    around: list[tuple[int, Any]] = []  # and those around it
    waiting: str | None = None  # a key of `block` whose value is in the lines below
    number = 0
    while number < len(lines):
        line = _line(lines[number])
        number += 1
        if line is None:
            continue
        indent, inner, key, value = line
        dash = inner != indent
        # The dashes of a sequence may stand below the first letter of its key.
        if waiting is not None and (indent > column or (dash and indent == column)):
            if indent > _DEEPEST:
                raise _NotPlain
            around.append((column, block))
            inside: Any = [] if dash else {}
            block[waiting] = inside
            column, block = indent, inside
        elif dash or indent != column or type(block) is list:
            while around and (indent < column or (type(block) is list and not dash)):
                column, block = around.pop()
            # A line that stands further right goes on with a scalar.
            if indent != column or dash != (type(block) is list):
                raise _NotPlain
        waiting = None
        if dash and key is not None:
            item: dict[str, Any] = {}
            block.append(item)
            around.append((column, block))
            column, block, dash = inner, item, False
        if type(value) is object:
            if value is _NESTED:
                waiting, value = key, None
            else:
                value, number = _literal(lines, number, column, value is _STRIPPED)
        elif type(value) is tuple:
            value = list(value)
        if dash:
            block.append(value)
        elif key is None or key in block:
            raise _NotPlain
        else:
            block[key] = value
    if not root:
        raise _NotPlain
    return root


@lru_cache(8192)
def _line(text: str) -> tuple[int, int, str | None, Any] | None:
    """What a line says; `None`: nothing. Most lines of a project stand in many of its files.

    Its indentation; where that begins which stands behind its dash, if there is one; key; value.
    """
    found = _LINE.fullmatch(text)
    if found is None:
        if text.lstrip(" ").startswith("#"):
            return None
        raise _NotPlain
    space, dash, key, plain, single, double, literal, words = found.groups()
    value: Any = _NESTED
    if plain is not None:
        value = _scalar(plain.rstrip(" "))
    elif single is not None or double is not None:
        value = double if single is None else single
    elif literal is not None:
        value = _LITERAL if literal == "|" else _STRIPPED
    elif words is not None:
        value = tuple(_scalar(word.strip(" ")) for word in words.split(",")) if words else ()
    elif key is None:
        if dash is None:
            return None
        raise _NotPlain
    indent = len(space)
    return indent, indent + len(dash or ""), key, value


def _scalar(text: str) -> Any:
    return SCALARS[tag_of(text)](text)


def _literal(lines: list[str], first: int, column: int, strip: bool) -> tuple[str, int]:
    """The literal block from line `first` on, within a block at `column`, and the line after it."""
    indent = _indent(lines[first]) if first < len(lines) else 0
    if indent <= column:
        raise _NotPlain
    pad = " " * indent
    end = first
    while end < len(lines) and (lines[end].startswith(pad) or not lines[end]):
        end += 1
    text = "\n".join(lines[first:end]).rstrip("\n")
    if _BLANK_LINE.search(text) or (end < len(lines) and _indent(lines[end]) > column):
        raise _NotPlain
    text = text[indent:].replace(f"\n{pad}", "\n")
    return text if strip else f"{text}\n", end


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
