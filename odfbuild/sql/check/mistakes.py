"""Syntax errors in queries, if they are certain.

Spark understands forms that the parser here does not know, so a text that does not parse is not
wrong for that alone. It is where a sign is missing its other half, where it holds a template, or
where one word that is misspelled, missing or too much makes all the difference. Any other is not
understood, which the engine may settle.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from itertools import pairwise

from odfbuild.errors import Code
from odfbuild.sql.dbt_words import INSTEAD_OF_DBT
from odfbuild.sql.parsed import PIPE, SqlglotError, statements
from odfbuild.sql.sql_words import Word, words_of
from odfbuild.values import Value

NOT_UNDERSTOOD = Code.QUERY_NOT_UNDERSTOOD
_PAIRS = {")": "(", "]": "["}
_WORDS = """select from where group order having limit offset union intersect except join left right
    full inner outer cross lateral distinct between partition qualify values when then else end
    case and or not is null like in as on using by with over asc desc"""
_KEYWORDS = frozenset(_WORDS.split())
_NEVER_TWICE = ("=", ".", "and", "or", "by", "select", "from")
_BEFORE_BY = ("group", "order", "partition")
_NEVER_LAST = ("=", "<", ">", "+", "/", ",", ".", "by", "(")
_MEANINGS = """
    all anti any array asof at cast collate cube current date day days delay distribute
    div escape except exists extract filter first following for from grouping hour hours
    ignore ilike interval last leading map materialized minus minute minutes month
    months natural nulls only outer overlay percent pivot position preceding range
    regexp respect rlike rollup rows second seconds semi sets some sort struct system
    table tablesample temporal time timestamp to trailing trim unbounded unpivot version
    view watermark week weeks window within year years zone"""
_NOT_NAMES = _KEYWORDS | set(_MEANINGS.split())
"""Words with a meaning of their own in some place, which a parser may not know."""

_TRIED = 40
"""Repairs that are tried before a text counts as not understood."""


class Mistake(Value):
    """What is wrong, from index `start` of the text for `length` characters, and what to do."""

    message: str
    help: str
    start: int
    length: int = 1
    code: str = "E0501"


def mistake_in(text: str, at: int) -> Mistake | None:
    """The mistake for which `text` does not parse at index `at`; `None`: it may be none."""
    words = words_of(text)
    if not words:
        return Mistake("the query is empty", "write a SELECT over its inputs", 0)
    if PIPE in text:
        return _half(words)
    return _half(words) or _repaired(text, words, at) or _three_names(words, at)


def certain_mistake(text: str) -> Mistake | None:
    """What no engine understands, although the parser here may: templates, and doubled commas."""
    words = words_of(text)
    if not words:
        return Mistake("the query is empty", "write a SELECT over its inputs", 0)
    return (
        _template(words)
        or _doubled_comma(words)
        or _last_comma(words)
        or _top(words)
        or _cut(words)
    )


def not_understood(text: str, at: int) -> Mistake:
    """The text does not parse at index `at`, and nobody knows why."""
    words = words_of(text)
    word = next((each for each in words if each.end > at), words[-1])
    shown = text[word.start : word.end]
    is_end = at >= word.end
    return Mistake(
        f"the query is not understood {'after' if is_end else 'at'} `{shown}`",
        "correct it; or, if it is syntax that Spark has, run `odfbuild validate --engine`: what "
        "Spark accepts is remembered",
        word.start,
        word.end - word.start,
        NOT_UNDERSTOOD,
    )


def _last_comma(words: list[Word]) -> Mistake | None:
    """A comma before FROM, where Spark takes FROM for the name of a column."""
    for number, word in enumerate(words[:-1]):
        if word.text == "," and words[number + 1].text == "from" and _is_at_an_end(words, number):
            return Mistake("nothing follows this comma", "remove it", word.start)
    return None


def _top(words: list[Word]) -> Mistake | None:
    """`SELECT TOP 10`, as other databases have it."""
    for one, two, three in zip(words, words[1:], words[2:], strict=False):
        if one.text == "select" and two.text == "top" and three.text.isdigit():
            return Mistake(
                "Spark SQL has no TOP",
                "rank the records by row_number() OVER (PARTITION BY … ORDER BY …) and filter",
                two.start,
                three.end - two.start,
            )
    return None


def _cut(words: list[Word]) -> Mistake | None:
    """A sign at the end that something has to follow."""
    last = words[-1]
    if last.text in _NEVER_LAST and not last.sql[last.end :].strip():
        return Mistake(
            f"the query ends after `{last.text}`", "write what follows, or remove it", last.start
        )
    return None


def _three_names(words: list[Word], at: int) -> Mistake | None:
    """Three names in a row where the text does not parse any further: two of them are one entry."""
    number = next((n for n, each in enumerate(words) if each.start <= at < each.end), None)
    if number is None or number < 2:
        return None
    row = words[number - 2 : number + 1]
    if not all(each.text.isidentifier() and each.text not in _NOT_NAMES for each in row):
        return None
    if not all(_touch(*pair) for pair in pairwise(row)):
        return None
    shown = row[-1].sql[row[-1].start : row[-1].end]
    return Mistake(
        f"'{shown}' is not expected here",
        "a comma may be missing before it, or before the name to its left",
        row[-1].start,
        len(shown),
    )


def _doubled_comma(words: list[Word]) -> Mistake | None:
    for one, following in pairwise(words):
        if following.text == "," and one.text in (",", "(") and _touch(one, following):
            return Mistake(
                "nothing precedes this comma",
                "remove it, or write what is missing",
                following.start,
            )
    return None


def _touch(one: Word, following: Word) -> bool:
    """Whether there is nothing between two words: texts in quotes are none."""
    return not one.sql[one.end : following.start].strip()


def _template(words: list[Word]) -> Mistake | None:
    for number, word in enumerate(words[:-1]):
        following = words[number + 1]
        if word.text != "{" or following.start != word.end or following.text not in "{%#":
            continue
        inside = words[number + 2 : number + 8]
        called = inside[0].text if inside else ""
        end = next((w.end for w in words[number + 2 :] if w.text == "}"), following.end)
        shown = word.sql[word.start : end + 1]
        return Mistake(
            f"the query holds a template, `{' '.join(shown.split())}`, which nothing renders here",
            INSTEAD_OF_DBT.get(called, "write it in a file NAME.yaml.j2, which is rendered first"),
            word.start,
            len(shown.splitlines()[0]),
            "E0550",
        )
    return None


def _half(words: list[Word]) -> Mistake | None:
    opened: list[Word] = []
    for word in words:
        if word.text in ("'", '"', "`"):
            return Mistake(
                f"a text begins with {word.text} and does not end",
                f"close it with {word.text}, or write it twice inside of a text",
                word.start,
            )
        if word.text in ("(", "["):
            opened.append(word)
        elif word.text in _PAIRS:
            if not opened or opened[-1].text != _PAIRS[word.text]:
                other = _PAIRS[word.text]
                return Mistake(
                    f"`{word.text}` has no opening counterpart",
                    f"remove it, or write its `{other}`",
                    word.start,
                )
            opened.pop()
    if opened:
        return Mistake(
            f"`{opened[-1].text}` is not closed", "close it where it ends", opened[-1].start
        )
    return None


def _repaired(text: str, words: list[Word], at: int) -> Mistake | None:
    """The first single repair near index `at` with which the text is a query."""
    near = min(range(len(words)), key=lambda n: abs(words[n].start - at))
    order = sorted(range(len(words)), key=lambda n: (abs(n - near), n))
    tried = 0
    for number in order[:12]:
        for repair, mistake in _repairs(text, words, number):
            tried += 1
            if tried > _TRIED:
                return None
            if _is_query(repair):
                return mistake
    return None


def _repairs(text: str, words: list[Word], number: int) -> Iterator[tuple[str, Mistake]]:
    """Texts with one word changed, put in or left out, and what that says."""
    word = words[number]
    before = words[number - 1].text if number else ""
    after = words[number + 1].text if number + 1 < len(words) else ""

    def instead(put: str, message: str, help: str) -> tuple[str, Mistake]:
        return text[: word.start] + put + text[word.end :], Mistake(
            message, help, word.start, word.end - word.start
        )

    if word.text.isidentifier() and word.text not in _KEYWORDS:
        for meant in get_close_matches(word.text, _KEYWORDS, n=2, cutoff=0.6):
            yield instead(
                meant,
                f"'{text[word.start : word.end]}' is not expected here",
                f"did you mean {meant.upper()}?",
            )
    if word.text in _BEFORE_BY and after != "by":
        upper = word.text.upper()
        yield instead(f"{word.text} by", f"{upper} without BY", f"write {upper} BY")
    if word.text == "," and _is_at_an_end(words, number):
        yield instead(" ", "nothing follows this comma", "remove it")
    if word.text == ";" or (word.text == before and word.text in _NEVER_TWICE):
        yield instead(" ", f"`{word.text}` is unexpected here", "remove it")
    if word.text in ("when", "else"):
        ends = next((w for w in words[number:] if w.text in ("from", ",", ")", "as")), None)
        if ends is not None:
            repaired = f"{text[: ends.start]} end {text[ends.start :]}"
            yield repaired, Mistake("CASE without END", "write END", ends.start, len(ends.text))


def _is_at_an_end(words: list[Word], number: int) -> bool:
    """Whether nothing stands between a word and the end of a list."""
    if number + 1 == len(words):
        return not words[number].sql[words[number].end :].strip()
    following = words[number + 1]
    return following.text in (")", "from") and _touch(words[number], following)


def _is_query(text: str) -> bool:
    try:
        return len(statements(text)) == 1
    except (SqlglotError, RecursionError):
        return False
