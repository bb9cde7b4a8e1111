"""The colours of queries inside YAML: which word is what. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum

from odfbuild.api.editor.sql_parts import SqlPart
from odfbuild.api.editor.subjects import Opened
from odfbuild.sql.function_list import ALLOWED
from odfbuild.sql.functions import FORBIDDEN, TABLE_FUNCTIONS
from odfbuild.values import Value


class TokenType(Enum):
    """Kinds of words, as the Language Server Protocol names them."""

    keyword = "keyword"
    function = "function"
    string = "string"
    number = "number"
    comment = "comment"
    operator = "operator"
    column = "property"
    relation = "class"
    expression = "macro"


class Token(Value):
    """A word on one line, by indices of the text."""

    start: int
    end: int
    type: TokenType


_TOKEN = re.compile(
    r"""(?P<comment>--[^\n]*|/\*.*?\*/)|(?P<string>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
    |(?P<number>\b\d+(?:\.\d+)?(?:[eE][-+]?\d+)?\b)|(?P<name>`[^`]*`)|(?P<word>\w+)
    |(?P<operator>[-+*/%<>=!|&^~]+)""",
    re.VERBOSE | re.DOTALL,
)
_WORDS = """select from where group by having order limit offset join inner left right full outer
    cross semi anti natural lateral on using union all except intersect minus distinct with
    recursive as and or not in exists is null true false case when then else end between like rlike
    ilike escape over partition rows range unbounded preceding following current row filter within
    cast try_cast interval date timestamp asc desc nulls first last values view pivot unpivot for
    system_time of version tablesample qualify window rollup cube grouping sets int bigint string
    double float decimal boolean binary array map struct smallint tinyint"""
_KEYWORDS = frozenset(_WORDS.split())
_EXPRESSION = re.compile(r"(?<!\$)\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.S)


def tokens_of(opened: Opened) -> list[Token]:
    """The words of all queries of a file, and the expressions of a template, in order of place."""
    found = [token for part in opened.parts for token in _of_query(part, opened.text)]
    if opened.is_template:
        expressions = [
            token
            for match in _EXPRESSION.finditer(opened.text)
            for token in _lines(opened.text, match.start(), match.end(), TokenType.expression)
        ]
        inside = [(each.start, each.end) for each in expressions]
        found = [part for each in found for part in _without(each, inside)]
        found += expressions
    return sorted(found, key=lambda each: each.start)


def _of_query(part: SqlPart, text: str) -> Iterator[Token]:
    relation_follows = False
    for match in _TOKEN.finditer(part.sql):
        kind = str(match.lastgroup)
        word = match.group().lower()
        if kind in ("word", "name"):
            following = part.sql[match.end() :].lstrip()[:1]
            known = word in ALLOWED or word in FORBIDDEN or word in TABLE_FUNCTIONS
            if kind == "word" and word in _KEYWORDS and not (following == "(" and known):
                type_ = TokenType.keyword
            elif following == "(" and kind == "word":
                type_ = TokenType.function
            elif relation_follows or following == ".":
                type_ = TokenType.relation
            else:
                type_ = TokenType.column
            relation_follows = word in ("from", "join")
        else:
            type_ = TokenType[kind]
        start, end = part.offsets[match.start()], part.offsets[match.end() - 1] + 1
        yield from _lines(text, start, end, type_)


def _lines(text: str, start: int, end: int, type_: TokenType) -> Iterator[Token]:
    """A token for each line that it has a part in."""
    at = start
    for line in text[start:end].split("\n"):
        kept = line.lstrip(" ") if at > start else line
        begin = at + len(line) - len(kept)
        if kept:
            yield Token(begin, at + len(line), type_)
        at += len(line) + 1


def _without(token: Token, inside: list[tuple[int, int]]) -> Iterator[Token]:
    """The parts of a token that are no expressions."""
    at = token.start
    for start, end in inside:
        if end <= at or start >= token.end:
            continue
        if start > at:
            yield Token(at, start, token.type)
        at = max(at, end)
    if at < token.end:
        yield Token(at, token.end, token.type)
