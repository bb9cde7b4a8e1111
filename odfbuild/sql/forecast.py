"""Which mode a query will be kept up to date in, told from its text.

Plans say it beforehand, without an engine. The engine decides when it runs, by what the query means
and by what its inputs hold; where it decides otherwise, it is right, and `apply` says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from odfbuild.odf.model import TransformSql
from odfbuild.sql.answers import told_once
from odfbuild.sql.function_list import AGGREGATES
from odfbuild.sql.mode import (
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
from odfbuild.sql.query_text import (
    is_aggregate,
    is_call,
    is_window,
    name_of,
    numbered,
    plain_parts,
)
from odfbuild.sql.translate.named import is_remote_release
from odfbuild.sql.translate.runnable import if_runnable, is_spark

if TYPE_CHECKING:
    from sqlglot import exp

_ROWS = "rows that stand in the query itself"
_CLAUSES = {
    "distinct": "DISTINCT",
    "group": AGGREGATION,
    "order": "ORDER BY",
    "sort": "ORDER BY",
    "limit": "LIMIT",
    "offset": "OFFSET",
    "pivots": "PIVOT",
}
_NODES = {
    "Except": "EXCEPT",
    "Intersect": "INTERSECT",
    "Join": JOIN,
    "Window": OVER,
    "Values": _ROWS,
    "Exists": SUBQUERY,
}
"""What no single record can answer: clauses of queries and relations, and parts by their kind."""
_TOKENS = {
    "GROUP_BY": AGGREGATION,
    "ORDER_BY": "ORDER BY",
    "SORT_BY": "ORDER BY",
    "UNION": "DISTINCT",
    "JOIN": JOIN,
    "COMMA": JOIN,
    "OVER": OVER,
    "VALUES": _ROWS,
    "EXISTS": SUBQUERY,
    "SELECT": SUBQUERY,
    "UNPIVOT": "PIVOT",
}
"""The same by the tokens that say it, but for those of the same name."""
_EVERY_KIND = frozenset([*_CLAUSES.values(), *_NODES.values()])
_BEGIN_CLAUSES = ("SELECT", "FROM", "WHERE", "GROUP_BY", "ORDER_BY", "ON")
_BEFORE_RELATIONS = ("FROM", "JOIN", "ALIAS", "ALL", "L_PAREN", "LATERAL")

Steps = tuple[tuple[str, str | None], ...]
"""The queries of a transformation, with the names of their results."""
_Trees = Sequence[tuple["exp.Query", str | None]]


def expected_mode(transform: TransformSql) -> Choice:
    """The mode that the text of the queries speaks for, as long as the inputs only append.

    Engines that are programs of their own decide themselves; the version names them.
    """
    if is_remote_release(transform.version):
        return BY_CHECKPOINT
    steps = steps_of(transform)
    if steps is None:
        return Choice(Mode.CHANGELOG, f"its query cannot be translated from {transform.engine}")
    return _mode_of(steps)


def window_call(transform: TransformSql) -> exp.Anonymous | None:
    """The call of `window` in the GROUP BY of a query that closes windows one by one, if it does.

    Its first argument is a column.
    """
    steps = steps_of(transform)
    if steps is None or expected_mode(transform) != WINDOWS:
        return None
    return _window(_parsed(steps))


def steps_of(transform: TransformSql) -> Steps | None:
    """The queries of a transformation in Spark SQL; `None`: it cannot be translated."""
    ours = transform if is_spark(transform) else if_runnable(transform)
    return None if ours is None else tuple((s.query, s.alias) for s in ours.queries or ())


def _mode_of(steps: Steps) -> Choice:
    if all(plain_parts(query) is not None for query, _ in steps):
        return RECORD_BY_RECORD
    return _mode_of_parsed(steps)


@told_once(Choice)
def _mode_of_parsed(steps: Steps) -> Choice:
    # A name in one step may stand for the result of another one.
    choice, found = _of_shape(((numbered(steps[0][0])[0], None),) if len(steps) == 1 else steps)
    if choice is not None:
        return choice
    reason = _first(found or _EVERY_KIND, steps)
    if reason is None and not found:
        return RECORD_BY_RECORD
    return Choice(Mode.CHANGELOG, reason or min(found))


@lru_cache(maxsize=1_000)
def _of_shape(steps: Steps) -> tuple[Choice | None, frozenset[str]]:
    """The mode, or all that no single record can answer; neither where it is not understood."""
    trees = _parsed(steps)
    if len(trees) < len(steps):
        return None, frozenset()
    kinds = frozenset(kind for tree, _ in trees for kind in _constructs(tree))
    if not kinds:
        return RECORD_BY_RECORD, kinds
    if kinds == {AGGREGATION} and _window(trees) is not None:
        return WINDOWS, kinds
    return PAIRS if kinds == {JOIN} and _joins_inner(trees) else None, kinds


def _parsed(steps: Steps) -> _Trees:
    from odfbuild.sql.parsed import parsed

    trees = ((parsed(query), alias) for query, alias in steps)
    return [(tree, alias) for tree, alias in trees if tree is not None]


def _constructs(tree: exp.Query) -> Iterator[str]:
    """What no single record can answer."""
    from sqlglot import exp

    for node in tree.walk():
        kind = _NODES.get(type(node).__name__)
        if kind is not None:
            yield kind
        elif isinstance(node, exp.Query | exp.Table):
            yield from (kind for clause, kind in _CLAUSES.items() if node.args.get(clause))
        elif isinstance(node, exp.Lateral) and not node.args.get("view"):
            yield JOIN
        elif is_aggregate(node) or (isinstance(node, exp.AggFunc) and not is_window(node)):
            yield AGGREGATION
        is_empty = isinstance(node, exp.Select) and not node.args.get("from_")
        if is_empty or (isinstance(node, exp.Table) and isinstance(node.this, exp.Anonymous)):
            yield _ROWS
        relations = exp.Query | exp.From | exp.Join | exp.CTE | exp.Lateral | None
        if isinstance(node, exp.Query) and not isinstance(node.parent, relations):
            yield SUBQUERY


def _window(trees: _Trees) -> exp.Anonymous | None:
    """The window of a query that groups once, and does no more than choose among the groups."""
    from sqlglot import exp

    grouping = {
        id(each.parent_select if is_aggregate(each) else each.parent)
        for tree, _ in trees
        for each in tree.walk()
        if isinstance(each, exp.Group) or is_aggregate(each)
    }
    group = _top_group(trees)
    if group is None or grouping != {id(group.parent)}:
        return None
    calls = [each for each in group.expressions if is_call(each, "window")]
    is_plain = [key for key, value in group.args.items() if value] == ["expressions"]
    is_one = len(calls) == 1 and isinstance(calls[0].expressions[0], exp.Column)
    return calls[0] if is_one and is_plain else None


def _top_group(trees: _Trees) -> exp.Group | None:
    """The GROUP BY that the records of the last query are made by."""
    from sqlglot import exp

    named = {(alias or "").lower(): tree for tree, alias in trees[:-1]}
    node: exp.Expression | None = trees[-1][0]
    while node is not None:
        common = node.args.get("with_")
        named |= {each.alias.lower(): each.this for each in common.expressions} if common else {}
        if isinstance(node, exp.Select) and not node.args.get("laterals"):
            if node.args.get("group"):
                return node.args["group"]
            source = node.args.get("from_")
            node = source and source.this
        elif isinstance(node, exp.Subquery):
            node = node.this
        else:
            node = named.pop(name_of(node), None) if isinstance(node, exp.Table) else None
    return None


def _joins_inner(trees: _Trees) -> bool:
    """Whether all joins are inner ones, and no relation is read twice."""
    from sqlglot import exp

    read: Counter[str] = Counter()
    for tree, _ in trees:
        for node in tree.find_all(exp.Join, exp.Table, exp.SetOperation, exp.Lateral):
            if isinstance(node, exp.Table):
                read[name_of(node)] += 1
            if (
                isinstance(node, exp.SetOperation)
                or (isinstance(node, exp.Lateral) and not node.args.get("view"))
                or (isinstance(node, exp.Join) and (node.side or node.kind in ("SEMI", "ANTI")))
                or node.args.get("version")
            ):
                return False
    return max(read.values()) == 1


def _first(kinds: Collection[str], steps: Steps) -> str | None:
    """The first of these that the tokens of the queries show, with its place."""
    from odfbuild.sql.parsed import PIPE, AsWritten, SqlglotError

    for query, _ in steps:
        try:
            tokens = AsWritten().tokenize(query)
        except SqlglotError:
            return "its query is not understood before it runs"
        if PIPE in query:
            return f"pipes at line {query[: query.index(PIPE)].count(chr(10)) + 1}"
        names = ["", "", *(each.token_type.name for each in tokens), ""]
        clause = ""
        for token, *around in zip(tokens, names, names[1:], names[2:], names[3:], strict=False):
            name = around[2]
            kind = _said(clause, *around)
            clause = name if name in _BEGIN_CLAUSES else clause
            if name == "VAR" and around[3] == "L_PAREN" and token.text.lower() in AGGREGATES:
                kind = AGGREGATION
            if kind in kinds:
                line = query.count("\n", 0, token.start) + 1
                column = token.start - query.rfind("\n", 0, token.start)
                return f"{kind} at line {line}, column {column}"
    return None


def _said(clause: str, two_before: str, before: str, token: str, after: str) -> str | None:
    """What a token says no single record can answer; `None` where it has another meaning."""
    begins_relation = two_before in _BEFORE_RELATIONS or (clause, two_before) == ("FROM", "COMMA")
    is_other = (
        before == "DOT"
        or (token == "COMMA" and clause != "FROM")
        or (token == "SELECT" and (before != "L_PAREN" or begins_relation))
        or (token, before) in (("DISTINCT", "L_PAREN"), ("EXCEPT", "STAR"))
        or (token, after) == ("UNION", "ALL")
    )
    return None if is_other else _TOKENS.get(token, token)
