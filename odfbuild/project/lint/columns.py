"""Columns that a query names and that no input has, as far as its text tells for certain.

Apply refuses them before any work; here no engine is needed. Followed are names that can be
nothing but a column of an input: `t.city` where `t` is an input in the same SELECT, and a bare
`city` where all that the SELECT reads are inputs whose columns are known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from odfbuild.odf.model import SetTransform, TransformSql
from odfbuild.project.lint.rules import Flaw, Path
from odfbuild.wording import did_you_mean

if TYPE_CHECKING:
    from sqlglot import exp
    from sqlglot.optimizer.scope import Scope

_Tables = Mapping[str, Mapping[str, str | None] | None]
_Names = Mapping[str, frozenset[str]]

_SHOWN = 12
_DAYS = frozenset({"year", "quarter", "month", "week", "day", "dayofyear"})
_UNITS = _DAYS | {"hour", "minute", "second", "millisecond", "microsecond"}
"""What functions of dates take for a unit and a parser may take for a column."""


def flaws_of_columns(event: SetTransform, tables: _Tables, path: Path) -> Iterator[Flaw]:
    """Columns that do not exist in the queries of a transform, with what may be meant."""
    transform = event.transform
    if not isinstance(transform, TransformSql) or transform.engine.lower() != "spark":
        return
    steps = transform.queries or ()
    known = {
        alias.lower(): frozenset(map(str.lower, columns))
        for alias, columns in tables.items()
        if columns is not None
    }
    for step in steps:
        known.pop((step.alias or "").lower(), None)
    for number, step in enumerate(steps):
        for column, table, names in _unknown(step.query, known):
            place = column.this.meta
            name = column.name
            yield Flaw(
                "no-such-column",
                f"'{table}' has no column '{name}'" if table else f"no input has a column '{name}'",
                did_you_mean(name, sorted(names), _listed(sorted(names))),
                (*path, "transform"),
                (number, place["line"], place["col"] - (place["end"] - place["start"])),
                len(name),
            )


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"there are {', '.join(names[:_SHOWN])}{more}"


def _unknown(query: str, known: _Names) -> Iterator[tuple[exp.Column, str | None, frozenset[str]]]:
    """Columns that are not there, once each, with their input, if named, and the columns it has."""
    from sqlglot import exp, parse_one
    from sqlglot.errors import SqlglotError
    from sqlglot.optimizer.scope import traverse_scope

    try:
        scopes = traverse_scope(parse_one(query, read="spark"))
    except (SqlglotError, RecursionError):
        return  # `validate --engine` and apply say what is wrong with it
    told: set[int] = set()
    for scope in scopes:
        read = _inputs(scope, known)
        everything = frozenset[str]().union(*read.values())
        plain = _is_plain(scope, read)
        for column in scope.columns:
            start = column.this.meta.get("start")
            if start is None or start in told or isinstance(column.this, exp.Star):
                continue
            table, name = column.table.lower(), column.name.lower()
            if column.args.get("db") is not None or table in everything:
                continue  # a member of a struct
            if table in read and name not in read[table]:
                told.add(start)
                yield column, column.table, read[table]
            elif (
                plain
                and not table
                # Those of a query inside are said where it is looked at.
                and column.find_ancestor(exp.Select) is scope.expression
                and name not in everything | _UNITS | _aliases(scope)
            ):
                told.add(start)
                yield column, None, everything


def _inputs(scope: Scope, known: _Names) -> dict[str, frozenset[str]]:
    """Columns of the inputs that a SELECT reads itself, by what they are called there."""
    from sqlglot import exp

    return {
        alias.lower(): known[source.name.lower()]
        for alias, source in scope.sources.items()
        if isinstance(source, exp.Table)
        and not source.args.get("db")
        and not source.args.get("pivots")
        and source.name.lower() in known
    }


def _is_plain(scope: Scope, read: Mapping[str, frozenset[str]]) -> bool:
    """Whether a bare name can be nothing but a column of what is read, or of the result."""
    from sqlglot import exp

    return (
        len(read) == len(scope.sources) > 0
        and isinstance(scope.expression, exp.Select)
        and (scope.is_root or scope.is_cte)
        and scope.expression.find(exp.Lambda, exp.Pivot, exp.Lateral) is None
    )


def _aliases(scope: Scope) -> frozenset[str]:
    """Names of the result, which later parts of a SELECT may use."""
    return frozenset(str(each.alias).lower() for each in scope.expression.selects)
