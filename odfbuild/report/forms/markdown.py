"""Pieces of Markdown, for texts that have to fit into a comment. Pure.

Whatever a project or its data says reaches Markdown by `escaped`, `sentence`, `code`, `fenced` or
`marker`, and by nothing else, so that none of it is read as Markdown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from urllib.parse import quote

from odfbuild.wording import count

BUDGET = 65_536
"""Characters that a comment on GitHub may have."""

_SPECIAL = re.compile(r"[\\`*_{}\[\]<>|~#&]|:(?=//)|(?<=\bwww)\.", re.I)
_MENTION = re.compile("@(?=[A-Za-z0-9])")
_LINE_ENDS = re.compile("[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+")


def marker(project: str, env: str | None = None, about: str = "") -> str:
    """The hidden line that marks comments about one project in one environment."""
    # Of names nothing is quoted; whatever else stands there cannot end the line.
    names = (project, env or "default", *([about] if about else []))
    return f"<!-- odfbuild:{':'.join(quote(each, safe='') for each in names)} -->"


def escaped(text: str) -> str:
    """Text that Markdown leaves as it is: in it is no link, and nobody is notified."""
    plain = _SPECIAL.sub(lambda match: "\\" + match[0], _flat(text))
    return _MENTION.sub("@<!-- -->", plain)


def sentence(text: str) -> str:
    """A sentence of ours in Markdown: what stands between backticks is code, the rest is text."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return escaped(text)
    return "".join(code(part) if number % 2 else escaped(part) for number, part in enumerate(parts))


def _flat(text: str) -> str:
    return _LINE_ENDS.sub(" ", text)


def fitting(blocks: Iterable[str], room: int) -> tuple[list[str], int]:
    """The first blocks that fit into so many characters, and the room that is left."""
    kept = []
    for block in blocks:
        if len(block) + 1 > room:
            break
        kept.append(block)
        room -= len(block) + 1
    return kept, room


def left_out(number: int, noun: str, behind: str = "") -> list[str]:
    """The line that says how much did not fit, if anything."""
    return ["", f"… and {count(number, noun)}{behind}."] if number else []


def size(lines: Iterable[str]) -> int:
    """Characters of lines."""
    return sum(len(line) + 1 for line in lines)


def code(text: str) -> str:
    """Text as code in a cell of a table: nothing in it is a link, and nobody is notified."""
    flat = _flat(text).replace("|", "\\|")
    ticks = "`" * (_longest_run([flat]) + 1)
    space = " " if len(ticks) > 1 else ""
    return f"{ticks}{space}{flat}{space}{ticks}" if flat.strip() else ""


def in_text_block(text: str) -> str:
    """Text of several lines as it is."""
    return "\n".join(fenced("text", text.splitlines()))


def fenced(language: str, lines: Sequence[str]) -> list[str]:
    """Lines as a block of code."""
    # A fence must be longer than any in the text.
    fence = "`" * max(3, _longest_run(lines) + 1)
    return [fence + language, *lines, fence, ""]


def _longest_run(lines: Iterable[str]) -> int:
    return max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
