"""The words and signs of a query, with their places, without white space, strings and comments."""

from __future__ import annotations

import re
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""(?P<skip>\s+|--[^\n]*|/\*.*?\*/|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
    |(?P<word>`(?:[^`]|``)*`|\w+)|(?P<sign>.)""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Word:
    """A word in lower case, a quoted name with its quotes, or a sign.

    `start` and `end` are indices into the text; `line` and `column` count from 1.
    """

    text: str
    start: int
    end: int
    line: int
    column: int

    @property
    def name(self) -> str:
        """The word as a name, without quotes."""
        return self.text.strip("`")


def words_of(sql: str) -> list[Word]:
    """All words and signs, in order."""
    words = []
    for match in _TOKEN.finditer(sql):
        if match.lastgroup == "skip":
            continue
        start, end = match.span()
        line = sql.count("\n", 0, start) + 1
        column = start - sql.rfind("\n", 0, start)
        words.append(Word(match.group().lower(), start, end, line, column))
    return words


def closing(words: list[Word], opening: int) -> int | None:
    """Where the parenthesis that opens at index `opening` is closed; `None`: nowhere."""
    depth = 0
    for at in range(opening, len(words)):
        depth += {"(": 1, ")": -1}.get(words[at].text, 0)
        if depth == 0:
            return at
    return None
