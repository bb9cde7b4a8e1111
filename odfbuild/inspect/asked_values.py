"""The values that a query of DuckDB asks its datasets for: `WHERE column = value`, `IN (…)`. Pure.

Only what has to be true of each record that the query can see at all counts, so that records with
other values can be left out without another answer. Wherever that is not plain, nothing is told.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from odfbuild.sql.query_text import conditions_of

if TYPE_CHECKING:
    from sqlglot import exp


def asked_values(sql: str, datasets: Iterable[str]) -> Mapping[str, Mapping[str, list[Any]]]:
    """By dataset and column, the values of which each record must have one."""
    import sqlglot
    from sqlglot import exp

    try:
        tables = list(sqlglot.parse_one(sql, dialect="duckdb").find_all(exp.Table))
    except (sqlglot.errors.SqlglotError, RecursionError):
        return {}
    found: dict[str, Mapping[str, list[Any]]] = {}
    for name in datasets:
        mine = [each for each in tables if each.name.lower() == name.lower()]
        if len(mine) == 1:
            found[name] = _of_table(mine[0])
    return found


def _of_table(table: exp.Table) -> dict[str, list[Any]]:
    """What the query that reads a table, and nothing else, asks of its columns."""
    from sqlglot import exp

    query = table.parent.parent if isinstance(table.parent, exp.From) else None
    if not isinstance(query, exp.Select) or not _is_plain(query, table):
        return {}
    named = {each.alias.lower() for each in query.expressions if isinstance(each, exp.Alias)}
    found: dict[str, list[Any]] = {}
    for column, given in conditions_of(query):
        values = list(_values(given))
        if column.name.lower() not in named and len(values) == len(given):
            found.setdefault(column.name, values)
    return found


def _is_plain(query: exp.Select, table: exp.Table) -> bool:
    """Whether records are filtered before anything else happens to them."""
    odd = ("joins", "laterals", "sample", "connect", "match", "pivots")
    parts = ("joins", "laterals", "sample", "pivots", "when", "version", "db", "catalog")
    return not any(query.args.get(each) for each in odd) and not any(
        table.args.get(each) for each in parts
    )


def _values(given: Iterable[exp.Expression]) -> Iterator[Any]:
    """Texts, integers and dates among what stands there; what is anything else is left out."""
    from sqlglot import exp

    for each in given:
        inner = each.this if isinstance(each, exp.Neg) else each
        if isinstance(each, exp.Literal) and each.is_string:
            yield each.this
        elif isinstance(inner, exp.Literal) and inner.is_int:
            yield -int(inner.this) if isinstance(each, exp.Neg) else int(inner.this)
        elif (
            isinstance(each, exp.Cast)
            and each.is_type("date")
            and isinstance(each.this, exp.Literal)
        ):
            try:
                yield dt.date.fromisoformat(each.this.this)
            except ValueError:
                continue
