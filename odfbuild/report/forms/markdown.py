"""Pieces of Markdown, for texts that have to fit into a comment. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from odfbuild.wording import count

BUDGET = 65_536
"""Characters that a comment on GitHub may have."""


def marker(project: str, env: str | None = None, about: str = "") -> str:
    """The hidden line that marks comments about one project in one environment."""
    return f"<!-- odfbuild:{project}:{env or 'default'}{f':{about}' if about else ''} -->"


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
    flat = text.replace("\n", " ").replace("|", "\\|")
    ticks = "`" * (max((len(run) for run in re.findall("`+", flat)), default=0) + 1)
    space = " " if len(ticks) > 1 else ""
    return f"{ticks}{space}{flat}{space}{ticks}" if flat.strip() else ""


def fenced(language: str, lines: Sequence[str]) -> list[str]:
    """Lines as a block of code."""
    # A fence must be longer than any in the text.
    ticks = max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, ticks + 1)
    return [fence + language, *lines, fence, ""]
