"""What the words of a query mean: relations and their columns, also while it is being written.

A query that is whole is read as `validate` reads it; in one that is not yet, only its words tell
which relations it reads. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from odfbuild.sql.columns.of_query import Column, Columns, Reader, Sources, Tables, Within, owner_of
from odfbuild.sql.parsed import parsed
from odfbuild.sql.sql_words import Word, words_of
from odfbuild.values import Value

if TYPE_CHECKING:
    from sqlglot import exp

Inputs = Mapping[str, Columns | None]
"""Columns of what a query may read, by alias; `None` where they are not known."""

_AFTER_TABLES = """on using where group order having limit union join inner left right full cross
    lateral as select from semi anti natural window qualify except intersect set offset"""
_NO_ALIAS = frozenset(_AFTER_TABLES.split())


class NamedColumn(Value):
    """A column that a word of a query names: what has it is called `relation` there.

    `start` and `end` are the place of its own name. `table` is the name behind the relation.
    """

    relation: str
    table: str
    column: Column
    start: int
    end: int


class NamedTable(Value):
    """A relation that a query reads by name; `start` and `end` are the place of the name."""

    name: str
    start: int
    end: int


class Select(Value):
    """A SELECT that was read: where its words stand, and what it reads."""

    start: int
    end: int
    sources: Mapping[str, Columns | None]


class ReadQuery(Value):
    """A query that was understood: its columns, relations and SELECTs, in order of place."""

    columns: tuple[NamedColumn, ...]
    tables: tuple[NamedTable, ...]
    selects: tuple[Select, ...]
    stars: bool = False


class _Seen(Reader):
    """Writes down what each SELECT reads."""

    def __init__(self, inputs: Inputs) -> None:
        super().__init__(inputs, meanings=False)
        self.selects: list[tuple[exp.Select, Sources]] = []
        self.named: list[exp.Table] = []

    def selected(self, node: exp.Select, sources: Sources, within: Within) -> Columns | None:
        """See `Reader.selected`."""
        from sqlglot import exp

        self.selects.append((node, sources))
        # Queries in conditions and in the list are no part of FROM.
        for inner in node.find_all(exp.Subquery, exp.In, exp.Exists):
            query = inner.args.get("query") or inner.this
            query = query.this if isinstance(query, exp.Subquery) else query
            if isinstance(query, exp.Query) and not isinstance(inner.parent, exp.From | exp.Join):
                self.query(query, within.tables, (sources, *within.outer))
        return super().selected(node, sources, within)

    def saw_table(self, node: exp.Table, name: str, tables: Tables) -> None:
        """See `Reader.saw_table`."""
        self.named.append(node)


def read_query(sql: str, inputs: Inputs) -> ReadQuery | None:
    """What a query names; `None` where it is not understood."""
    from sqlglot import exp

    tree = parsed(sql)
    if tree is None:
        return None
    seen = _Seen(inputs)
    try:
        seen.step(tree, None)
    except RecursionError:
        return None
    columns: dict[int, NamedColumn] = {}
    selects = []
    for node, sources in seen.selects:
        tables = _names_behind(node)
        start, end = _span(node)
        selects.append(Select(start, end, sources.tables))
        for column in node.find_all(exp.Column):
            place = column.this.meta
            if "start" not in place or column.find_ancestor(exp.Select) is not node:
                continue
            owner = owner_of(column, sources)
            if owner is not None:
                columns[place["start"]] = NamedColumn(
                    owner[0],
                    tables.get(owner[0], owner[0]),
                    owner[1],
                    place["start"],
                    place["end"] + 1,
                )
    return ReadQuery(
        tuple(columns[start] for start in sorted(columns)),
        tuple(_table(each) for each in seen.named if "start" in each.this.meta),
        tuple(selects),
        any(isinstance(each, exp.Star) for each in tree.find_all(exp.Star)),
    )


def _names_behind(node: Any) -> dict[str, str]:
    """Names of tables by what a SELECT calls them, in lower case."""
    clause = node.args.get("from_")
    read = [clause.this] if clause is not None else []
    read += [join.this for join in node.args.get("joins") or []]
    return {
        each.alias_or_name.lower(): ".".join(part.name for part in each.parts).lower()
        for each in read
        if type(each).__name__ == "Table"
    }


def _table(node: Any) -> NamedTable:
    first, last = node.parts[0].meta, node.parts[-1].meta
    name = ".".join(part.name for part in node.parts)
    return NamedTable(name, first.get("start", last["start"]), last["end"] + 1)


def _span(node: Any) -> tuple[int, int]:
    places = [each.meta for each in node.walk() if "start" in each.meta]
    if not places:
        return 0, 0
    return min(each["start"] for each in places), max(each["end"] for each in places) + 1


def result_names(sql: str) -> list[tuple[str, int, int]]:
    """Names of the columns of the result, with start and end of the words that give them."""
    from sqlglot import exp

    tree = parsed(sql)
    while isinstance(tree, exp.SetOperation | exp.Subquery):
        tree = tree.left if isinstance(tree, exp.SetOperation) else tree.this
    found = []
    for item in tree.expressions if isinstance(tree, exp.Select) else ():
        named = item.args.get("alias") if isinstance(item, exp.Alias) else item.this
        place = getattr(named, "meta", {})
        if "start" in place:
            found.append((item.alias_or_name, place["start"], place["end"] + 1))
    return found


def relations_at(sql: str, at: int, inputs: Inputs) -> dict[str, Columns | None]:
    """The relations whose columns may be named at a place of a query, by what it calls them.

    `at` may be in the middle of a word, or where one is still missing.
    """
    start, end = word_at(sql, at)
    for filler in ("x_", "x_ AND true", "x_, x_"):
        found = read_query(f"{sql[:start]}{filler}{sql[end:]}", inputs)
        if found is None:
            continue
        around = [each for each in found.selects if each.start <= start <= each.end + len(filler)]
        if around:
            return dict(min(around, key=lambda each: each.end - each.start).sources)
    return _by_words(sql, start, inputs)


def word_at(sql: str, at: int) -> tuple[int, int]:
    """Start and end of the word at a place, or the place itself."""
    start = end = at
    while start and (sql[start - 1].isalnum() or sql[start - 1] in "_`"):
        start -= 1
    while end < len(sql) and (sql[end].isalnum() or sql[end] in "_`"):
        end += 1
    return start, end


def _by_words(sql: str, at: int, inputs: Inputs) -> dict[str, Columns | None]:
    """What stands behind FROM and JOIN in a query that is not whole."""
    words = [each for each in words_of(sql) if not each.start <= at < each.end]
    folded = {name.lower(): columns for name, columns in inputs.items()}
    found: dict[str, Columns | None] = {}
    for number, word in enumerate(words[:-1]):
        if word.text not in ("from", "join"):
            continue
        name, following = _dotted(words, number + 1)
        if following < len(words) and words[following].text == "as":
            following += 1
        alias = words[following].name if following < len(words) else ""
        is_alias = alias.isidentifier() and alias not in _NO_ALIAS
        found[alias if is_alias else name] = folded.get(name)
    return found


def _dotted(words: Sequence[Word], at: int) -> tuple[str, int]:
    name = words[at].name.lower()
    at += 1
    while at + 1 < len(words) and words[at].text == ".":
        name += f".{words[at + 1].name.lower()}"
        at += 2
    return name, at


_RELATION_WORDS = ("from", "join")


def names_relation(sql: str, at: int) -> bool:
    """Whether what stands at a place is the name of a relation, as behind FROM."""
    start, _ = word_at(sql, at)
    before = words_of(sql[:start])
    while len(before) > 1 and before[-1].text == ".":
        before = before[:-2]
    if not before:
        return False
    if before[-1].text in _RELATION_WORDS:
        return True
    if before[-1].text != ",":
        return False
    clauses = ("select", "from", "where", "group", "on", "(")
    clause = next((each.text for each in reversed(before) if each.text in clauses), None)
    return clause == "from"
