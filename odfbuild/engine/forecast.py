"""Which mode a query will be kept up to date in, told from the words of its text.

Plans say it beforehand, without an engine. The engine decides when it runs, by what the query means
and by what its inputs hold; where it decides otherwise, it is right, and `apply` says so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from odfbuild.engine.mode import (
    AGGREGATION,
    BY_CHECKPOINT,
    JOIN,
    OVER,
    PAIRS,
    RECORD_BY_RECORD,
    SUBQUERY,
    WINDOWS,
    Choice,
    Mode,
)
from odfbuild.engine.sql_words import Word, closing, words_of
from odfbuild.engine.translate.named import is_remote_release
from odfbuild.engine.translate.runnable import if_runnable, is_spark
from odfbuild.odf.model import TransformSql

_AGGREGATES = (
    "any_value|approx_count_distinct|array_agg|avg|bit_and|bit_or|bit_xor|bool_and|bool_or|"
    "collect_list|collect_set|corr|count|count_if|every|listagg|max|max_by|mean|median|min|min_by|"
    "mode|percentile|percentile_approx|percentile_cont|percentile_disc|some|stddev|stddev_pop|"
    "stddev_samp|string_agg|sum|try_avg|try_sum|var_pop|var_samp|variance"
)
_IS_AGGREGATE = frozenset(_AGGREGATES.split("|"))
_WORDS = {
    "distinct": "DISTINCT",
    "except": "EXCEPT",
    "minus": "EXCEPT",
    "intersect": "INTERSECT",
    "limit": "LIMIT",
    "offset": "OFFSET",
    "order": "ORDER BY",
    "pivot": "PIVOT",
    "join": JOIN,
    "over": OVER,
    "exists": SUBQUERY,
    "values": "rows that stand in the query itself",
}
_CLAUSES = frozenset({"select", "where", "by", "having", "view", "values", "with", "window"})
_TELLING = _IS_AGGREGATE | set(_WORDS) | {"group", "union", "select", "distinct", ","}
_HINT = re.compile(
    rf"\b(?:(?:group|{'|'.join(_WORDS)})\b|union\b(?!\s+all\b)|(?:{_AGGREGATES})\s*\("
    r"|from\b(?:(?!\b(?:select|where)\b)[^()])*,|lateral\s+table)"
    r"|\(\s*(?:select\b|--|/\*)",
    re.IGNORECASE | re.DOTALL,
)
"""Found in any query that is not simply record by record, and in some that are."""
_HINTED = _IS_AGGREGATE | set(_WORDS) | {"group", "union", "lateral"}
_PLAIN_WORD = re.compile(r"\w+")
_OTHER_JOIN = re.compile("left|right|full|outer|semi|anti|natural|lateral|system_time")


def expected_mode(transform: TransformSql) -> Choice:
    """The mode that the text of the queries speaks for, as long as the inputs only append.

    Engines that are programs of their own decide themselves; the version names them.
    """
    if is_remote_release(transform.version):
        return BY_CHECKPOINT
    ours = transform if is_spark(transform) else if_runnable(transform)
    if ours is None:
        return Choice(Mode.CHANGELOG, f"its query cannot be translated from {transform.engine}")
    return _mode_of(tuple(step.query for step in ours.queries or ()))


@lru_cache(maxsize=1000)
def _mode_of(queries: tuple[str, ...]) -> Choice:
    steps = [words_of(query) for query in queries if _is_hinted(query)]
    if steps and len(steps) < len(queries):
        steps = [words_of(query) for query in queries]
    found = [each for words in steps for each in _constructs(words)]
    if not found:
        return RECORD_BY_RECORD
    kinds = {kind for kind, _ in found}
    if kinds == {AGGREGATION} and _has_one_window(steps):
        return WINDOWS
    if kinds == {JOIN} and _joins_inner(steps):
        return PAIRS
    kind, word = found[0]
    return Choice(Mode.CHANGELOG, f"{kind} at line {word.line}, column {word.column}")


def _is_hinted(query: str) -> bool:
    """Whether `_HINT` may be found; most queries have none, which their words tell at once."""
    text = query.lower()
    words = _PLAIN_WORD.findall(text)
    commas = "," in text.partition("from")[2]
    if words[:1] == ["select"] and not commas and _HINTED.isdisjoint(words):
        return words.count("select") > 1
    return _HINT.search(query) is not None


def _constructs(words: list[Word]) -> list[tuple[str, Word]]:
    """What no single record can answer, in the order of the text."""
    found = []
    texts = [word.text for word in words]
    for at, word in enumerate(words):
        if word.text not in _TELLING:
            continue
        before, after = texts[at - 1] if at else "", texts[at + 1] if at + 1 < len(texts) else ""
        if before == "." or (after == "." and word.text not in _WORDS):
            continue
        kind = _WORDS.get(word.text)
        if (
            _says_which_columns(word.text, before, after)
            or (word.text == "order" and after != "by")
            or (word.text == "exists" and after != "(")
        ):
            kind = None
        elif word.text == "group" and after == "by":
            kind = AGGREGATION
        elif word.text in _IS_AGGREGATE and after == "(":
            end = closing(words, at + 1)
            kind = OVER if end and texts[end + 1 : end + 2] == ["over"] else AGGREGATION
        elif word.text == "union" and after != "all":
            kind = "DISTINCT"
        elif word.text == "select" and before == "(" and _is_value(texts, at):
            kind = SUBQUERY
        elif word.text == "distinct" and before in ("(", "is", "not"):
            kind = None  # COUNT(DISTINCT …) is an aggregation already; IS DISTINCT FROM compares
        elif word.text == "," and _is_between_relations(texts, at):
            kind = JOIN
        if kind is not None:
            found.append((kind, word))
    return found


def _says_which_columns(word: str, before: str, after: str) -> bool:
    """Whether a word says which columns: `* EXCEPT (…)`, or the column `offset`."""
    if word == "offset":
        return not after[:1].isdigit()
    return word == "except" and before in ("*", "select", ",")


def _is_between_relations(texts: Sequence[str], comma: int) -> bool:
    """Whether a comma stands in a FROM clause: going back, FROM comes before anything else."""
    depth = 0
    for text in reversed(texts[:comma]):
        depth += {")": 1, "(": -1}.get(text, 0)
        if depth < 0 or (depth == 0 and text in _CLAUSES):
            return False
        if depth == 0 and text == "from":
            return True
    return False


def _is_value(texts: Sequence[str], at: int) -> bool:
    """Whether the query in parentheses is a value and no relation."""
    return (
        texts[at - 2] not in ("from", "join", ",", "as", "all", "(", "lateral") if at > 1 else False
    )


def _has_one_window(steps: Sequence[Sequence[Word]]) -> bool:
    """Whether the one GROUP BY is of the last query, and groups by `window(event_time, …)`."""
    texts = [[word.text for word in words] for words in steps]
    places = [(n, at) for n, step in enumerate(texts) for at in _places(step, "group", "by")]
    if len(places) != 1 or places[0][0] != len(steps) - 1:
        return False
    clause = texts[-1][places[0][1] :]
    windows = _places(clause, "window", "(")
    return len(windows) == 1 and clause[windows[0] + 3 : windows[0] + 4] in ([","], ["."])


def _joins_inner(steps: Sequence[Sequence[Word]]) -> bool:
    """Whether all joins are inner ones, and no relation is read twice."""
    texts = [word.text for words in steps for word in words]
    if "union" in texts or any(map(_OTHER_JOIN.fullmatch, texts)):
        return False
    read = [
        name.strip("`")
        for before, name in pairwise(texts)
        if before in ("from", "join") and name != "("
    ]
    return len(read) == len(set(read))


def _places(texts: Sequence[str], first: str, second: str) -> list[int]:
    return [n for n, pair in enumerate(pairwise(texts)) if pair == (first, second)]
