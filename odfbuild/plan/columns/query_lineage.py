"""Follow the columns of a query through its text, by sqlglot.

A query that is not understood gives `None`: a clause that decides something and is overlooked would
make a wrong answer. Takes milliseconds; `lineages.Lineages` keeps the answers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from odfbuild.engine.lineage import Influence, Lineage, Origin, Origins, as_influence
from odfbuild.engine.translate.runnable import if_runnable
from odfbuild.odf.model import TransformSql
from odfbuild.plan.columns.lineage import Names

if TYPE_CHECKING:
    from sqlglot.optimizer.scope import Scope


def lineage_of(transform: TransformSql, inputs: Names) -> Lineage | None:
    """The lineage of a transformation over `inputs`; `None` when it cannot be told."""
    ours = if_runnable(transform)
    if ours is None or None in inputs.values():
        return None
    from sqlglot.errors import SqlglotError

    relations = {
        alias.lower(): Lineage(
            {
                name: frozenset([(alias, name, Influence.COPY)])
                for name in map(str.lower, names or ())
            },
            frozenset(),
        )
        for alias, names in ((alias.lower(), names) for alias, names in inputs.items())
    }
    found: Lineage | None = None
    try:
        for step in ours.queries or ():
            found = _query(step.query, relations)
            if step.alias is not None:
                relations[step.alias.lower()] = found
    except (SqlglotError, RecursionError, _NotUnderstood):
        return None
    return found


class _NotUnderstood(Exception):
    """A form of query that is not followed."""


_Relations = Mapping[str, Lineage]


def _query(text: str, relations: _Relations) -> Lineage:
    from sqlglot import exp
    from sqlglot.optimizer.qualify import qualify
    from sqlglot.optimizer.scope import build_scope
    from sqlglot.schema import MappingSchema

    from odfbuild.engine.parsed import Bounded

    # The parser takes `window(` for something else than Spark's windows of time.
    spelled = _TIME_WINDOW.sub("time_window(", text)
    statements = [each for each in Bounded().parse(spelled) if each is not None]
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        raise _NotUnderstood
    _refuse_what_is_not_followed(statements[0])
    tables = _numbered_tables(statements[0], relations)
    _write_windows_out(statements[0], tables)
    schema = MappingSchema(
        {name: dict.fromkeys(each.columns, "") for name, each in tables.items()},
        dialect="spark",
    )
    # Types are not needed, and quoting would only change the spelling.
    qualified = qualify(
        statements[0], schema=schema, dialect="spark", quote_identifiers=False, identify=False
    )
    scope = build_scope(qualified)
    if scope is None:
        raise _NotUnderstood
    return _Follower(tables).lineage(scope)


_TIME_WINDOW = re.compile(r"\bwindow\s*\(", re.IGNORECASE)
_FOLLOWED = {
    "Select": "with_ expressions hint distinct from_ laterals joins where group having qualify "
    "order limit offset sort distribute cluster",
    "Join": "this on using side kind hint",
    "Union": "with_ this expression distinct order limit offset",
    "Except": "with_ this expression distinct order limit offset",
    "Intersect": "with_ this expression distinct order limit offset",
    "Group": "expressions rollup cube grouping_sets",
    "Subquery": "with_ this alias",
    "Table": "this db catalog alias",
}
"""The clauses that are followed, by the kind of part that they belong to."""


def _refuse_what_is_not_followed(statement: Any) -> None:
    """A clause that decides something and is overlooked would make a wrong answer."""
    from sqlglot import exp

    for part in statement.walk():
        if isinstance(part, exp.TableSample | exp.Pivot | exp.MatchRecognize):
            raise _NotUnderstood
        followed = _FOLLOWED.get(type(part).__name__)
        if followed is not None:
            said = {clause for clause, value in part.args.items() if value}
            if not said <= set(followed.split()):
                raise _NotUnderstood


def _numbered_tables(statement: Any, relations: _Relations) -> dict[str, Lineage]:
    """Give tables names without dots, which a qualifier takes for databases; the relations by them.

    A table keeps its last name as alias, as Spark has it.
    """
    from sqlglot import exp

    common = {each.alias.lower() for each in statement.find_all(exp.CTE)}
    numbers: dict[str, str] = {}
    for table in list(statement.find_all(exp.Table)):
        name = ".".join(part.name for part in table.parts).lower()
        if name in common:
            continue
        if name not in relations:
            raise _NotUnderstood
        number = numbers.setdefault(name, f"t{len(numbers)}")
        if not table.alias:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name, quoted=True)))
        table.set("this", exp.to_identifier(number))
        table.set("db", None)
        table.set("catalog", None)
    for column in statement.find_all(exp.Column):
        # `a.b.c.x` is column x of table a.b.c, which is called c.
        if column.args.get("db"):
            column.set("db", None)
            column.set("catalog", None)
    return {number: relations[name] for name, number in numbers.items()}


def _write_windows_out(statement: Any, tables: _Relations) -> None:
    """Write `window.start` as the call in GROUP BY that makes the column `window`."""
    from sqlglot import exp

    calls: dict[int, dict[str, Any]] = {}
    for group in statement.find_all(exp.Group):
        for call in group.expressions:
            name = _WINDOWS.get(call.name.lower()) if isinstance(call, exp.Anonymous) else None
            if name is not None and not any(name in each.columns for each in tables.values()):
                calls.setdefault(id(group.parent), {})[name] = call
    for column in list(statement.find_all(exp.Column)) if calls else ():
        made = calls.get(id(column.parent_select), {})
        call = made.get((column.table or column.name).lower())
        if call is not None:
            part = exp.to_identifier(column.name)
            new = call.copy()
            column.replace(exp.Dot(this=new, expression=part) if column.table else new)


_WINDOWS = {"time_window": "window", "session_window": "session_window"}
"""Functions that group by time, as they are spelled here, and the columns that they make."""


@dataclass(slots=True)
class _Follower:
    """Follows the columns of a qualified query through its scopes."""

    tables: Mapping[str, Lineage]

    def lineage(self, scope: Scope) -> Lineage:
        from sqlglot import exp

        node = scope.expression
        if isinstance(node, exp.SetOperation):
            return self._set_operation(scope)
        if not isinstance(node, exp.Select):
            raise _NotUnderstood
        return self._select(scope)

    def _set_operation(self, scope: Scope) -> Lineage:
        from sqlglot import exp

        left, right = (self.lineage(each) for each in scope.set_operation_scopes)
        if len(left.columns) != len(right.columns):
            raise _NotUnderstood
        columns = {
            name: one | other
            for (name, one), other in zip(left.columns.items(), right.columns.values(), strict=True)
        }
        records = left.records | right.records
        node = scope.expression
        if not isinstance(node, exp.Union) or node.args.get("distinct"):
            records |= as_influence(Influence.GROUPING, columns.values())
        if node.args.get("order") and _is_cut(node):
            records |= as_influence(Influence.FILTER, columns.values())
        return Lineage(columns, records)

    def _select(self, scope: Scope) -> Lineage:
        from sqlglot import exp

        node = scope.expression
        sources = self._sources(scope)
        records = frozenset[Origin]().union(
            *(source.records for source in sources.values()),
            *(self._deciding(scope, sources, key, kind) for key, kind in _CLAUSES),
        )
        for join in node.args.get("joins") or ():
            if (condition := join.args.get("on")) is not None:
                records |= as_influence(Influence.JOIN, [self._origins(condition, scope, sources)])
        columns: dict[str, Origins] = {}
        for item in node.expressions:
            if isinstance(item, exp.Star) or item.is_star:
                raise _NotUnderstood
            inner = item.unalias()
            origins = self._origins(inner, scope, sources)
            if not isinstance(inner, exp.Column):
                origins = as_influence(Influence.DERIVATION, [origins])
            if inner.find(*_generators()):
                records |= as_influence(Influence.JOIN, [origins])
            columns[item.alias_or_name.lower()] = origins
        if node.args.get("distinct"):
            records |= as_influence(Influence.GROUPING, columns.values())
        if _is_cut(node) and (order := node.args.get("order")) is not None:
            records |= as_influence(Influence.FILTER, [self._origins(order, scope, sources)])
        if len(columns) != len(node.expressions):
            raise _NotUnderstood
        return Lineage(columns, records)

    def _deciding(self, scope: Scope, sources: _Relations, key: str, kind: Influence) -> Origins:
        clause = scope.expression.args.get(key)
        return (
            frozenset()
            if clause is None
            else as_influence(kind, [self._origins(clause, scope, sources)])
        )

    def _sources(self, scope: Scope) -> dict[str, Lineage]:
        from sqlglot.optimizer.scope import Scope

        found: dict[str, Lineage] = {}
        laterals: list[tuple[str, Scope]] = []
        for name, source in scope.sources.items():
            if not isinstance(source, Scope):
                found[name] = self._table(source)
            elif source.is_udtf:
                laterals.append((name, source))
            elif name in scope.selected_sources:
                found[name] = self.lineage(source)
        for name, source in laterals:
            made = as_influence(
                Influence.DERIVATION, [self._origins(source.expression, scope, found)]
            )
            # How many records a generator makes of one, its argument says.
            found[name] = Lineage(_AnyColumn(made), as_influence(Influence.JOIN, [made]))
        return found

    def _table(self, table: Any) -> Lineage:
        if table.args.get("pivots") or table.args.get("sample") or table.name not in self.tables:
            raise _NotUnderstood
        return self.tables[table.name]

    def _origins(self, node: Any, scope: Scope, sources: _Relations) -> Origins:
        """Where the values of an expression come from, subqueries in it included."""
        from sqlglot import exp
        from sqlglot.optimizer.scope import walk_in_scope

        found: set[Origin] = set()
        for each in walk_in_scope(node):
            if isinstance(each, exp.Column):
                found |= _column(each, sources)
            elif isinstance(each, exp.Query) and each is not node:
                found |= self._subquery(each, scope, sources)
        return frozenset(found)

    def _subquery(self, node: Any, scope: Scope, sources: _Relations) -> Origins:
        query = node.unnest()
        inner = next((each for each in scope.subquery_scopes if each.expression is query), None)
        if inner is None:
            raise _NotUnderstood
        own = _WithOuter(self.tables, sources).lineage(inner)
        return own.records.union(*own.columns.values())


@dataclass(slots=True)
class _WithOuter(_Follower):
    """Follows a subquery, which may read columns of the query around it."""

    outer: _Relations

    def _sources(self, scope: Scope) -> dict[str, Lineage]:
        return {**self.outer, **_Follower._sources(self, scope)}


class _AnyColumn(dict[str, Origins]):
    """Columns of a generator: all come from all that it reads."""

    def __init__(self, origins: Origins) -> None:
        super().__init__()
        self.origins = origins


_CLAUSES = (
    ("where", Influence.FILTER),
    ("having", Influence.FILTER),
    ("qualify", Influence.FILTER),
    ("group", Influence.GROUPING),
)


def _is_cut(node: Any) -> bool:
    """Whether only some of the records are kept, by their order."""
    return bool(node.args.get("limit") or node.args.get("offset"))


def _generators() -> tuple[Any, ...]:
    """Functions that make several records of one."""
    from sqlglot import exp

    return exp.Explode, exp.Posexplode, exp.Inline, exp.Stack, exp.Unnest


def _column(node: Any, sources: _Relations) -> Origins:
    source = sources.get(node.table)
    if source is None:
        raise _NotUnderstood
    if isinstance(source.columns, _AnyColumn):
        return source.columns.origins
    origins = source.columns.get(node.name.lower())
    if origins is None:
        raise _NotUnderstood
    return origins
