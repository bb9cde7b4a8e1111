"""Upper limits for the number of result records.

A query that reads each of its sources once and neither joins nor multiplies rows gives at most as
many rows as it reads. Judged by the words of the query, on the safe side: what is not recognised
counts as "cannot tell".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import lru_cache

from odfbuild.odf.model import (
    MergeStrategy,
    MergeStrategyAppend,
    MergeStrategyLedger,
    MergeStrategySnapshot,
    MergeStrategyUpsertStream,
    TransformSql,
)

# Comments (but not hints) and string literals say nothing about the number of rows.
_NOISE = re.compile(
    r"--[^\n]*|/\*(?!\+).*?\*/|'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"", re.S
)
_WORD = re.compile(r"\w+")
_MULTIPLY = {
    *("join", "lateral", "cross", "values", "with", "range", "unnest", "stack", "json_tuple"),
    *("flatten", "pivot", "unpivot", "grouping", "rollup", "cube", "parse_url_tuple"),
    *("from_json", "table"),
}
_MULTIPLY_BEGIN = re.compile(r"\b(inline|(pos|variant_)?explode)")
_OVERLAP = re.compile(
    # A third argument says how far windows are apart.
    r"\bwindow\s*\((?:[^(),]|\([^()]*\))*(?:,(?:[^(),]|\([^()]*\))*){2,}\)"
)
_DROPS = re.compile(
    r"\b(where|having|qualify|limit|offset|distinct|intersect|except|minus|union(?!\s+all\b))\b",
    re.I,
)
_OF_MANY = re.compile(r"\b(over|limit|offset|order|qualify|\w*window)\b", re.I)
_SELECT = re.compile(r"\bselect\b", re.I)
_MAY_BE_EQUAL = re.compile(r"[\d\s.+-]|(true|false|t|f|yes|no|y|n|nan|inf|infinity)$", re.I)
"""How texts begin, or what they are, that another text may be equal to as a number or a time."""
_STRING = r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\""
_COMMENT = re.compile(rf"({_STRING})|--[^\n]*|/\*.*?\*/", re.S)
_NOT_PLAIN = re.compile(r"\b(or|case|group|having|window|qualify)\b", re.I)
_BETWEEN = re.compile(r"\bbetween\b(?!.*\band\b)", re.I | re.S)
_CONDITION = re.compile(
    r"\b(?:where|and)\s+(?:(?P<table>\w+)\.)?(?P<column>`[^`]+`|\w+)\s*"
    r"(?:=\s*(?P<one>'[^']*')|in\s*\(\s*(?P<some>'[^']*'(?:\s*,\s*'[^']*')*)\s*\))"
    r"\s*(?=$|;|\band\b)",
    re.I,
)
_SOURCE = re.compile(
    r"\bfrom\s+(?P<name>`[^`]+`|[\w.]+)"
    r"(?:\s+(?:as\s+)?(?!(?:where|union|group|having|order|limit|select)\b)(?:`[^`]+`|\w+))?"
    r"\s*(?=$|;|\b(?:where|union|group|having|order)\b)",
    re.I,
)


def never_adds_records(transform: TransformSql, inputs: Iterable[str]) -> bool:
    """Whether a transformation over `inputs` (their names in the query) can only drop records."""
    return _unread(transform, inputs) is not None


def keeps_every_record(transform: TransformSql, inputs: Collection[str]) -> bool:
    """Whether a query that handles each record alone makes one of each."""
    unread = _unread(transform, inputs)
    return unread == set() and not any(
        _DROPS.search(_NOISE.sub(" ", step.query)) for step in transform.queries or ()
    )


def changes_two_at_most(transform: TransformSql) -> bool:
    """Whether each new record brings a changelog at most two: the old sum goes, the new one comes.

    That is so for groups, unless one record can make several of them one, as sessions do.
    """
    queries = [_NOISE.sub(" ", step.query) for step in transform.queries or ()]
    return len(queries) == 1 == len(_SELECT.findall(queries[0])) and not _OF_MANY.search(queries[0])


def kept_values(
    transform: TransformSql, inputs: Collection[str]
) -> tuple[str, tuple[str, ...]] | None:
    """A column, and those of its values that a query keeps: `WHERE origin = 'EWR' AND …`.

    `None` where none are recognised, or where others may be equal to them.
    """
    steps = transform.queries or ()
    if len(steps) != 1 or "'" not in steps[0].query:
        return None
    text = _COMMENT.sub(lambda match: match[1] or " ", steps[0].query)
    plain = re.sub(_STRING, lambda match: " " * len(match[0]), text)
    where = [match.end() for match in re.finditer(r"\bwhere\b", plain, re.I)]
    if len(where) != 1 or _NOT_PLAIN.search(plain):
        return None
    for found in _CONDITION.finditer(text, where[0] - len("where")):
        before = plain[where[0] : found.start()]
        table = (found["table"] or "").lower()
        is_whole = before.count("(") == before.count(")") and not _BETWEEN.search(before)
        if is_whole and table in ("", *map(str.lower, inputs)):
            texts = re.findall("'([^']*)'", found["one"] or found["some"])
            values = tuple(each.casefold().strip() for each in texts)
            if not any(not each or "\\" in each or _MAY_BE_EQUAL.match(each) for each in values):
                return found["column"].strip("`").lower(), values
    return None


def _unread(transform: TransformSql, inputs: Iterable[str]) -> set[str] | None:
    """Which inputs a transformation does not read, where it can only drop records."""
    unused = {name.lower() for name in inputs}
    for step in transform.queries or ():
        sources = _read_once(step.query)
        if sources is None or not unused.issuperset(sources):
            return None
        unused.difference_update(sources)
        if step.alias:
            unused.add(step.alias.lower())
    return unused


@lru_cache(1_024)  # sources of one kind are prepared by one query
def _read_once(query: str) -> frozenset[str] | None:
    """What a query reads, once each, where it can only drop records; `None`: cannot tell."""
    text = _NOISE.sub(" ", query).lower()
    words = _WORD.findall(text)
    if (
        not _MULTIPLY.isdisjoint(words)
        or (("inline" in text or "explode" in text) and _MULTIPLY_BEGIN.search(text))
        or ("window" in words and _OVERLAP.search(text))
    ):
        return None
    sources = [m["name"].strip("`") for m in _SOURCE.finditer(text)]
    found = frozenset(sources)
    return found if len(found) == len(sources) == words.count("from") else None


def most_merged(merge: MergeStrategy, rows: int, files: int, own: int) -> int | None:
    """How many records merging so many rows appends at most to a dataset that has `own` ones.

    A change takes two records. What a file of a snapshot lacks is retracted: it was there, or came
    with a file before it. `None`: nobody can tell.
    """
    match merge:
        case MergeStrategyAppend() | MergeStrategyLedger():
            return rows
        case MergeStrategyUpsertStream():
            return 2 * rows
        case MergeStrategySnapshot():
            return rows if files == 1 and not own else own + (2 if files == 1 else 3) * rows
    return None
