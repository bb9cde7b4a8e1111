"""What each SELECT of a query reads, and what its parts are, told from its text alone.

A query that its words show to handle each record of one relation alone is not parsed: to import a
parser takes as long as planning hundreds of datasets. Queries that differ in names in backquotes
only are parsed once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from odfbuild.sql.answers import told_once
from odfbuild.sql.function_list import AGGREGATES
from odfbuild.sql.functions import TABLE_FUNCTIONS
from odfbuild.sql.sql_words import words_of

if TYPE_CHECKING:
    from sqlglot import exp

_RELATIONS = "join lateral values with pivot unpivot"
_MULTIPLYING = frozenset([*_RELATIONS.split(), *TABLE_FUNCTIONS])
"""Words of queries that may make several records of one."""
_MORE = """by distinct except exists having intersect limit minus offset over qualify session_window
    window natural tablesample ; ' `"""
_TELLING = _MULTIPLYING | AGGREGATES.keys() | set(_MORE.split())
"""Words without which no part of a query needs more than one record."""
_UNCLEAR = ('"', "\\", "--", "/*", "|>")
_WORD = re.compile(r"'[^']*'|`[^`]*`|\w+|[^\s\w]")
_QUOTED = re.compile(r"`[^`]*`")

_UNIT_NAMES = "year quarter month week day dayofyear hour minute second millisecond microsecond"
_UNITS = frozenset(_UNIT_NAMES.split())
"""What functions of dates take for a unit and the parser takes for a column."""


class Part(NamedTuple):
    """A SELECT over one relation, by name in lower case, and whether it leaves records out."""

    relation: str
    drops: bool


Parts = tuple[Part, ...]


@lru_cache(2_000)
def plain_parts(sql: str) -> Parts | None:
    """The parts of a query that handles each record alone, as its words show; `None`: unclear."""
    if any(sign in sql for sign in _UNCLEAR):
        return None
    words = _WORD.findall(sql.lower().rstrip().removesuffix(";"))
    if not _TELLING.isdisjoint(words):
        return None
    words += ["", ""]
    found: list[Part] = []
    at = 0
    while words[at] == "select" and "from" in words[at:]:
        at = words.index("from", at) + 1
        name = words[at].strip("`")
        while words[at + 1] == ".":
            at += 2
            name = f"{name}.{words[at].strip('`')}"
        at += 2 if words[at + 1] == "as" else 1
        if words[at].isidentifier() and words[at] not in ("where", "union"):
            at += 1
        drops = words[at] == "where"
        if drops:
            at = words.index("union", at) if "union" in words[at:] else len(words) - 2
        if name[:1] in ("", "'", "("):
            return None
        found.append(Part(name, drops))
        if words[at] == "":
            counts = [words.count(each) for each in ("select", "from", "union")]
            return tuple(found) if counts == [len(found), len(found), len(found) - 1] else None
        if words[at : at + 2] != ["union", "all"]:
            return None
        at += 2
    return None


def parts_of(sql: str) -> Parts | None:
    """The parts of a query that gives one record for one of a relation at most; `None`: unclear."""
    plain = plain_parts(sql)
    if plain is not None:
        return plain
    if not _MULTIPLYING.isdisjoint(word.text for word in words_of(sql)):
        return None
    text, names = numbered(sql)
    parts = parsed_parts(text)
    if parts is None or not names:
        return parts
    return tuple(Part(names.get(each.relation, each.relation), each.drops) for each in parts)


def numbered(sql: str) -> tuple[str, dict[str, str]]:
    """A query with numbers for names that need their backquotes, and what these stand for."""
    odd = (each[1:-1] for each in _QUOTED.findall(sql) if not each[1:-1].isidentifier())
    names = {f"#{number}": name for number, name in enumerate(dict.fromkeys(odd))}
    for number, name in names.items():
        sql = sql.replace(f"`{name}`", f"`{number}`")
    return sql, {number: name.lower() for number, name in names.items()}


@told_once(tuple[Part, ...] | None)
def parsed_parts(sql: str) -> Parts | None:
    """The same, told from the tree of the query."""
    from sqlglot import exp

    from odfbuild.sql.parsed import parsed

    tree = parsed(sql)
    if tree is None or any(
        isinstance(each, exp.Rollup | exp.Cube | exp.GroupingSets)
        or is_call(each, *TABLE_FUNCTIONS)
        or (is_call(each, "window") and len(each.expressions) > 2)
        for each in tree.walk()
    ):
        return None
    found = tuple(_parts_in(tree))
    is_all = len(found) == sum(1 for _ in tree.find_all(exp.Select))
    return found if is_all and all(each.relation for each in found) else None


def _parts_in(tree: exp.Expression, drops: bool = False) -> Iterator[Part]:
    """The parts of a query; one without a name where it reads more than a relation."""
    from sqlglot import exp

    drops = drops or any(tree.args.get(each) for each in _DROPPING)
    if isinstance(tree, exp.Subquery):
        yield from _parts_in(tree.this, drops)
    elif isinstance(tree, exp.SetOperation):
        drops = drops or not isinstance(tree, exp.Union)
        yield from _parts_in(tree.left, drops)
        yield from _parts_in(tree.right, drops)
    else:
        yield Part(relation_of(tree), drops)


_DROPPING = ("where", "having", "qualify", "limit", "offset", "distinct")
_BESIDE = ("joins", "laterals", "with_", "pivots", "match", "connect", "sample", "version")


def relation_of(select: Any) -> str:
    """The name of the one relation that a SELECT reads, in lower case; empty: it reads others."""
    from sqlglot import exp

    given = select.args.get("from_")
    table = given.this if given is not None else None
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        return ""
    is_one = not any(each.args.get(key) for each in (select, table) for key in _BESIDE)
    return name_of(table) if is_one else ""


def name_of(table: exp.Table) -> str:
    """The name of a relation in lower case; the parser takes one with dots for several."""
    return ".".join(part.name for part in table.parts).lower()


def conditions_of(select: exp.Select) -> Iterator[tuple[exp.Column, list[exp.Expression]]]:
    """Columns of the relation that a SELECT reads, and values of which each record must have one.

    From `WHERE column = value AND column IN (values)`, values as they are written.
    """
    from sqlglot import exp

    where = select.args.get("where")
    alias = select.args["from_"].this.alias_or_name.lower() if where is not None else ""
    waiting = [where.this] if where is not None else []
    while waiting:
        part = waiting.pop(0).unnest()
        column, values = part.this, []
        if isinstance(part, exp.And):
            waiting[:0] = [part.left, part.right]
        elif isinstance(part, exp.In):
            values = part.expressions
        elif isinstance(part, exp.EQ):
            is_left = isinstance(part.left, exp.Column)
            column, other = (part.left, part.right) if is_left else (part.right, part.left)
            values = [other]
        if values and isinstance(column, exp.Column) and column.table.lower() in ("", alias):
            yield column, values


def is_call(node: Any, *names: str) -> bool:
    """Whether a part is a call of one of these functions, by their names in lower case."""
    return type(node).__name__ == "Anonymous" and node.name.lower() in names


def is_window(node: exp.Expression) -> bool:
    """Whether a call is computed over a window of rows."""
    from sqlglot import exp

    around = node.parent
    while isinstance(around, exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup):
        node, around = around, around.parent
    return isinstance(around, exp.Window) and around.this is node


def is_aggregate(node: exp.Expression) -> bool:
    """Whether it is a call that makes one value of many rows, not over a window."""
    return is_call(node, *AGGREGATES) and not is_window(node)


def is_unit(node: exp.Column, *, plural: bool = False) -> bool:
    """Whether it is a unit of time in a call, which the parser takes for a column.

    `plural`: also one such as `days`, which Spark does not have there.
    """
    from sqlglot import exp

    name = node.name.lower()
    return (
        len(node.parts) == 1
        and (name.removesuffix("s") if plural else name) in _UNITS
        and isinstance(node.parent, exp.Anonymous | exp.Func)
    )
