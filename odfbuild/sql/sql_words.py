"""The words and signs of a query, with their places, without white space and comments."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

_TOKEN = r"""(?P<skip>\s+|--[^\n]*|/\*.*?\*/)
    |(?P<text>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")|(?P<word>`(?:[^`]|``)*`|\w+)|(?P<sign>.)"""
# In standard SQL, names stand in double quotes, and backslashes are nothing special.
_STANDARD = r"""(?P<skip>\s+|--[^\n]*|/\*.*?\*/)|(?P<text>'(?:[^']|'')*')
    |(?P<word>"(?:[^"]|"")*"|\w+)|(?P<sign>.)"""
Quote = Literal["`", '"']
"""What a dialect puts around names: Spark backticks, standard SQL double quotes."""
_TOKENS = {
    quote: re.compile(pattern, re.VERBOSE | re.DOTALL)
    for quote, pattern in (("`", _TOKEN), ('"', _STANDARD))
}


class Word(NamedTuple):
    """A word in lower case, a quoted name with its quotes, or a sign.

    `start` and `end` are indices into the text `sql`; `line` and `column` count from 1.
    """

    text: str
    start: int
    end: int
    sql: str

    @property
    def name(self) -> str:
        """The word as a name, without quotes."""
        return self.text.strip('`"')

    @property
    def line(self) -> int:
        """The line where it begins."""
        return self.sql.count("\n", 0, self.start) + 1

    @property
    def column(self) -> int:
        """The column where it begins."""
        return self.start - self.sql.rfind("\n", 0, self.start)


def words_of(sql: str, quote: Quote = "`", *, texts: bool = False) -> list[Word]:
    """All words and signs of a dialect with these quotes, in order; with `texts` values, too."""
    left_out = ("skip",) if texts else ("skip", "text")
    return [
        Word(match.group().lower(), *match.span(), sql)
        for match in _TOKENS[quote].finditer(sql)
        if match.lastgroup not in left_out
    ]


def closing(words: list[Word], opening: int) -> int | None:
    """Where the parenthesis that opens at index `opening` is closed; `None`: nowhere."""
    depth = 0
    for at in range(opening, len(words)):
        depth += {"(": 1, ")": -1}.get(words[at].text, 0)
        if depth == 0:
            return at
    return None
