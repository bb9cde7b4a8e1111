"""Which columns queries use of a table whose columns nobody declares. Pure.

Most projects of dbt declare no columns of their sources; the queries that read them name them.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, traverse_scope

from odfbuild.exchange.dbt.model import MARKER, Query
from odfbuild.exchange.dbt.spark_query import NoQuery, as_written, parsed


def used_columns(queries: Iterable[Query], id_: str, dialect: str) -> list[str] | None:
    """Columns of the table `id_` that these queries name, in order.

    `None` where one of them takes all columns, whatever they are, or cannot be understood.
    """
    found: dict[str, str] = {}
    for query in queries:
        if id_ not in query.inputs:
            continue
        names = _used(query, MARKER.format(query.inputs.index(id_)), dialect)
        if names is None:
            return None
        for name in names:
            found.setdefault(name.lower(), name)
    return [*found.values()]


def _used(query: Query, table: str, dialect: str) -> list[str] | None:
    try:
        tree = parsed(query.sql, dialect)
        spelled = as_written(tree, {})
        tree = qualify(
            tree,
            dialect=dialect,
            validate_qualify_columns=False,
            quote_identifiers=False,
            expand_stars=False,
        )
        scopes = traverse_scope(tree)
    except (NoQuery, SqlglotError, RecursionError):
        return None
    names: list[str] = []
    for scope in scopes:
        if not _is_passed_on(scope) and _stars_reach(scope, table):
            return None
        for column in scope.columns:
            if column.is_star:
                continue
            read = [inner for _, inner in scope.selected_sources.values()]
            source = scope.sources.get(column.table)
            if not column.table and len(read) == 1:
                (source,) = read
            elif not column.table and any(_reaches(inner, table) for inner in read):
                return None  # Of several tables nobody knows which one has it.
            if _reaches(source, table):
                names.append(spelled.get(column.name.lower(), column.name))
    return None if _reaches(scopes[-1], table) else names


def _is_passed_on(scope: Scope) -> bool:
    """Whether a SELECT hands on all columns of one table, and nothing else."""
    select = scope.expression
    return (
        isinstance(select, exp.Select)
        and len(select.expressions) == 1
        and select.expressions[0].is_star
        and len(scope.sources) >= 1
        and len(scope.selected_sources) == 1
    )


def _reaches(source: object, table: str) -> bool:
    """Whether a source of a SELECT is the table, or all of its columns."""
    if isinstance(source, exp.Table):
        return bool(source.name.lower() == table)
    if isinstance(source, Scope) and _is_passed_on(source):
        (_, inner) = next(iter(source.selected_sources.values()))
        return _reaches(inner, table)
    return False


def _stars_reach(scope: Scope, table: str) -> bool:
    select = scope.expression
    if not isinstance(select, exp.Select):
        return False
    for item in select.expressions:
        if not item.is_star or isinstance(item, exp.Count):
            continue
        name = item.table if isinstance(item, exp.Column) else ""
        for alias, (_, inner) in scope.selected_sources.items():
            if name in ("", alias) and _reaches(inner, table):
                return True
    return False
