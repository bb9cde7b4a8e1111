"""Columns of DataFusion that are called as words of SQL are.

DataFusion takes more words for names than the parser does. A word in this list is a name where
nothing else can stand: between what comes before an expression, and what comes after one.
"""

from __future__ import annotations

import re

from sqlglot import exp

from odfbuild.sql.sql_words import Word, words_of

_LIST = """alter and any as between case create cross current_catalog current_schema
    current_user distinct drop else except fetch for glob grant having ilike inner insert
    intersect into join lateral like localtime localtimestamp minus not notnull on only or
    outer partitioned_by qualify regexp returning revoke rlike rollback select session_user
    tablesample then uncache union using variadic when where with xor"""
_WORDS = frozenset(_LIST.split())
_BEFORE_A_VALUE = "select by where having and or on when then else , ( . as = < > + - * / % |"
_BEFORE = frozenset(_BEFORE_A_VALUE.split())
_AFTER_A_VALUE = "from as is in and or then end asc desc where group order , ) = < > / % | !"
_AFTER = frozenset(_AFTER_A_VALUE.split())
_FIRST = 0xE000


def with_names(sql: str) -> tuple[str, dict[str, str]]:
    """The query with other words of the same length for such names, and what they stand for."""
    # With texts: the word between two of them is no name.
    words = words_of(sql, '"', texts=True)
    found: dict[str, str] = {}
    text = sql
    for n, word in enumerate(words):
        if _is_name(words, n):
            instead = chr(_FIRST + len(found)) * (word.end - word.start)
            found[instead] = sql[word.start : word.end]
            text = text[: word.start] + instead + text[word.end :]
    return text, found


def _is_name(words: list[Word], n: int) -> bool:
    word = words[n].text
    before = words[n - 1].text if n else ""
    after = words[n + 1].text if n + 1 < len(words) else ","
    if before == "." and re.fullmatch(r"\w+", word):
        return word in _WORDS
    return word in _WORDS and before in _BEFORE and after in _AFTER


def name_again(tree: exp.Expression, names: dict[str, str]) -> None:
    """Give such names their words again, in place."""
    for node in tree.find_all(exp.Identifier) if names else ():
        if node.name in names:
            node.set("this", names[node.name])
            node.set("quoted", True)
