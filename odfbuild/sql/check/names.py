"""Names of columns and tables in a SELECT: which stand for nothing, or for several things."""

from __future__ import annotations

from sqlglot import exp

from odfbuild.sql import functions as lists
from odfbuild.sql.check.calls import refuse_forbidden
from odfbuild.sql.check.select import Select, around
from odfbuild.sql.columns.of_query import Columns, Sources
from odfbuild.sql.query_text import is_unit
from odfbuild.wording import did_you_mean

_SHOWN = 12
_ITEMS = "expressions"
_MADE = ("window", "session_window")
"""Functions in GROUP BY that make a column of their name."""
_SEES_RESULT = frozenset({_ITEMS, "group", "having", "qualify", "order", "sort"})
"""The clauses in which columns of the result can be named."""
_NO_TABLE = "there is no such relation"


def check_column(select: Select, node: exp.Column, clause: str) -> None:
    """Whether a column is there, and is one only."""
    if isinstance(node.this, exp.Star):
        if not _is_known(select, node.table.lower()):
            _unknown_table(select, node)
    elif len(node.parts) == 1:
        if not is_unit(node) and not isinstance(node.parent, exp.Star):
            _bare(select, node, node.name.lower(), clause)
    elif not _is_visible(select, node.parts[0].name.lower(), clause, node):  # else of a struct
        _qualified(select, node)


def check_left_out(select: Select, star: exp.Star) -> None:
    """Columns that `* EXCEPT (…)` names and nothing has."""
    if select.sources.open or select.within.outer:
        return
    for each in star.args.get("except_") or ():
        if not select.sources.having(each.name.lower()):
            known = [c.name for columns in select.sources.tables.values() for c in columns or ()]
            help_ = did_you_mean(each.name, known, _listed(known))
            select.tell("E0501", f"there is no column '{each.name}' to leave out", help_, each)


def _bare(select: Select, node: exp.Column, name: str, clause: str) -> None:
    if not _is_visible(select, name, clause, node):
        _unknown(select, node, clause)
    elif _is_ambiguous(select, name) and (
        clause == "where" or (clause == _ITEMS and name not in _aliases(select, node))
    ):
        _ambiguous(select, node, name)


def _qualified(select: Select, node: exp.Column) -> None:
    columns = _table(select, node.parts[0].name.lower())
    if len(node.parts) > 2 or columns is None:
        return
    if not isinstance(columns, tuple):
        _unknown_table(select, node)
        return
    names = [each.name for each in columns]
    if node.name.lower() not in map(str.lower, names):
        message = f"'{node.table}' has no column '{node.name}'"
        select.tell("E0501", message, did_you_mean(node.name, names, _listed(names)), node.this)


def _scopes(select: Select) -> tuple[Sources, ...]:
    return (select.sources, *select.within.outer)


def _is_visible(select: Select, name: str, clause: str, node: exp.Expression | None = None) -> bool:
    """Whether a bare name may be a column here."""
    if any(scope.open or scope.having(name) for scope in _scopes(select)):
        return True
    if clause in _SEES_RESULT and name in _aliases(select, node if clause == _ITEMS else None):
        return True
    return name in _MADE and any(
        each.name.lower() in _MADE for each in select.node.find_all(exp.Anonymous)
    )


def _aliases(select: Select, before: exp.Expression | None = None) -> frozenset[str]:
    """Names that it gives to columns; `before`: only in entries before that of this part."""
    found: set[str] = set()
    for each in select.node.expressions:
        if before is not None and any(around is each for around in (before, *around(before))):
            break
        if isinstance(each, exp.Alias):
            found.add(each.alias.lower())
        elif isinstance(each, exp.Aliases):
            found.update(inner.name.lower() for inner in each.expressions)
    return frozenset(found)


def _is_known(select: Select, table: str) -> bool:
    return _table(select, table) is not _NO_TABLE or _is_visible(select, table, _ITEMS)


def _table(select: Select, name: str) -> Columns | object | None:
    """The columns of a relation of this name; `_NO_TABLE`: there is none."""
    for scope in _scopes(select):
        if name in scope.tables:
            return scope.tables[name]
    strange = any(not scope.listed for scope in _scopes(select))
    return None if strange and "" in select.sources.tables else _NO_TABLE


def _is_ambiguous(select: Select, name: str) -> bool:
    return (
        select.sources.listed and not select.sources.open and len(select.sources.having(name)) > 1
    )


def _ambiguous(select: Select, node: exp.Column, name: str) -> None:
    tables = [table for table, _ in select.sources.having(name)]
    both = " and ".join(f"'{table}'" for table in tables[:2])
    help_ = f"say which: {tables[0]}.{node.name}"
    select.tell("E0501", f"both {both} have a column '{node.name}'", help_, node)


def _unknown(select: Select, node: exp.Column, clause: str) -> None:
    name = node.name
    if name.lower() in lists.FORBIDDEN and not node.this.quoted:
        refuse_forbidden(select, node, name.lower())
        return
    known = {
        each.name.lower(): each.name
        for columns in select.sources.tables.values()
        for each in columns or ()
    }
    help_ = did_you_mean(name, list(known.values()), _listed(list(known.values())))
    if clause not in _SEES_RESULT and name.lower() in _aliases(select):
        help_ = f"{clause.upper()} cannot use result names: repeat the expression"
    elif is_unit(node, plural=True):
        help_ = f"the unit is called {name.upper().removesuffix('S')}"
    elif select.node.args.get("from_") is None:
        help_ = "a query reads its inputs: FROM is missing"
    message = f"no input has a column '{name}'" if known else f"there is no column '{name}'"
    select.tell("E0501", message, help_, node)


def _unknown_table(select: Select, node: exp.Column) -> None:
    names = list(select.sources.tables)
    table = node.parts[0].name
    help_ = did_you_mean(table, names, f"there are: {', '.join(names)}")
    select.tell("E0501", f"'{table}' is neither a table nor a column of this query", help_, node)


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"there are {', '.join(names[:_SHOWN])}{more}" if names else "correct its name"
