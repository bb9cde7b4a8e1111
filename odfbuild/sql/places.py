"""Places of the parts of a query in its text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odfbuild.errors import InDefinition, Location
from odfbuild.sql.sql_words import words_of

if TYPE_CHECKING:
    from sqlglot import exp


def place_at(text: str, step: int, start: int, length: int = 1) -> Location:
    """The place of so many characters from index `start` of the query number `step`."""
    start = min(start, len(text.rstrip()))
    line = text.count("\n", 0, start) + 1
    column = start - text.rfind("\n", 0, start)
    lines = text.splitlines() or [""]
    snippet = lines[min(line, len(lines)) - 1]
    return InDefinition.query(step, line, column, snippet, length)


def place_of(node: exp.Expression, text: str, step: int, word: str = "") -> Location:
    """The place of the first word of a part that the parser kept the place of; else of `word`."""
    words = [each.meta for each in node.walk() if "start" in each.meta]
    if not words:
        return place_of_word(text, step, word)
    first = min(words, key=lambda meta: meta["start"])
    return place_at(text, step, first["start"], first["end"] - first["start"] + 1)


def place_of_word(text: str, step: int, word: str = "", after: str = "") -> Location:
    """The place of a word, or of the first one; behind the first `after`, if given."""
    words = words_of(text)
    if after:
        behind = next((n for n, each in enumerate(words) if each.text == after), -1)
        words = words[behind + 1 :]
    found = next((each for each in words if each.text == word), words[0] if words else None)
    if found is None:
        return place_at(text, step, 0)
    return place_at(text, step, found.start, found.end - found.start)


def index_in(text: str, line: int | None, column: int | None) -> int:
    """The index of a line and a column, both from 1; the end of the text where they are missing."""
    if not line or not column:
        return len(text)
    above = text.splitlines(keepends=True)[: line - 1]
    return sum(map(len, above)) + column - 1
