"""Where a query asks for the version of a record that was in force at a time. Pure.

`prices FOR SYSTEM_TIME AS OF t.event_time` and `LATERAL TABLE (prices(t.event_time))` mean the
same. Sources: Open Data Fabric, `TemporalTable`; SQL:2011.
"""

from __future__ import annotations

from collections.abc import Container, Iterator

from odfbuild.sql.sql_words import Word, closing, words_of
from odfbuild.values import Value


class TemporalReference(Value):
    """A reference to a temporal table from `start` to `end`, and the part that is the time.

    `name` is that of the table in lower case, `is_call` whether it is a call in LATERAL TABLE.
    """

    start: int
    end: int
    name: str
    time: slice
    is_call: bool


def temporal_references(words: list[Word], names: Container[str]) -> Iterator[TemporalReference]:
    """References to the tables `names` (in lower case) in a query, in their order."""
    for at, word in enumerate(words):
        texts = [each.text for each in words[at : at + 6]]
        if texts[:3] == ["lateral", "table", "("] and texts[4:5] == ["("]:
            name, inner, outer = words[at + 3].name, at + 4, closing(words, at + 2)
            last = closing(words, inner)
            if name in names and last is not None and outer == last + 1:
                time = slice(words[inner].end, words[last].start)
                yield TemporalReference(word.start, words[outer].end, name, time, True)
        elif texts[1:5] == ["for", "system_time", "as", "of"] and word.name in names:
            end = _end_of_column(words, at + 5)
            if end is not None:
                time = slice(words[at + 5].start, words[end].end)
                yield TemporalReference(word.start, words[end].end, word.name, time, False)


def without_calls(sql: str, names: Container[str]) -> str:
    """`sql` with each LATERAL TABLE of a temporal table written as FOR SYSTEM_TIME AS OF."""
    pieces, at = [], 0
    for each in temporal_references(words_of(sql), names):
        if each.is_call:
            pieces += [
                sql[at : each.start],
                f"`{each.name}` FOR SYSTEM_TIME AS OF ({sql[each.time]})",
            ]
            at = each.end
    return "".join([*pieces, sql[at:]])


def _end_of_column(words: list[Word], first: int) -> int | None:
    """The last word of `a`, `a.b` or `(…)` that begins at index `first`."""
    if first >= len(words):
        return None
    if words[first].text == "(":
        return closing(words, first)
    end = first
    while [word.text for word in words[end + 1 : end + 2]] == ["."] and end + 2 < len(words):
        end += 2
    return end
