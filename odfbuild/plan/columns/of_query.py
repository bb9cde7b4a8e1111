"""The columns of a query's result, told from its text and the columns that it reads.

Answers only what is certain: a form that is not understood gives `None`, a type that only the
engine knows is `None`, and then the engine decides when it runs. Parses SQL, which is slow, so it
is asked about queries that changed only. Runs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from odfbuild.engine.translate.runnable import if_runnable
from odfbuild.odf.model import TransformSql
from odfbuild.odf.schema import arrow


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name as Spark gives it, and the expression behind it.

    `type` (in committed form) and `nullable` are `None` where unknown.
    """

    name: str
    type: arrow.Type | None
    expression: str = ""
    nullable: bool | None = None


Columns = tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """The columns of a result, and the text of all that decides which records it has."""

    columns: Columns
    records: str


def columns_of(schema: arrow.Schema) -> Columns:
    """The columns of a dataset or file, as a query sees them."""
    kinds = (field.type if field.is_uuid else _kept(field.type) for field in schema)
    both = zip(schema, kinds, strict=True)
    return tuple(Column(field.name, kind, str(field)) for field, kind in both)


def result_of(transform: TransformSql, inputs: Mapping[str, Columns | None]) -> Result | None:
    """The result of `transform` over `inputs` by alias (`None`: unknown); `None` when uncertain."""
    ours = if_runnable(transform)
    if ours is None:
        return None
    from sqlglot.dialects.spark import Spark
    from sqlglot.errors import SqlglotError

    known = {alias.lower(): columns for alias, columns in inputs.items()}
    records: list[str] = []
    columns: Columns | None = None
    for step in ours.queries or ():
        try:
            parsed = Spark().parse(step.query)
            statements = [each for each in parsed if each is not None]
            if len(statements) != 1:
                return None
            columns = _query(statements[0], known)
            records.append(_text(_without_columns(statements[0])))
        except (SqlglotError, RecursionError):
            return None
        if step.alias is not None:
            known[step.alias.lower()] = columns
            records.append(repr(columns))
    return None if columns is None else Result(columns, "\n".join(records))


_Tables = Mapping[str, Columns | None]


def _query(node: Any, tables: _Tables) -> Columns | None:
    from sqlglot import exp

    if isinstance(node, exp.Subquery):
        return _query(node.this, tables)
    tables = _with_common_tables(node, tables)
    if isinstance(node, exp.SetOperation):
        left, right = _query(node.left, tables), _query(node.right, tables)
        return _union(left, right)
    return _select(node, tables) if isinstance(node, exp.Select) else None


def _with_common_tables(node: Any, tables: _Tables) -> _Tables:
    common = node.args.get("with_")
    if common is None:
        return tables
    tables = dict(tables)
    for each in common.expressions:
        renamed = each.args["alias"].args.get("columns")
        tables[each.alias.lower()] = None if renamed else _query(each.this, tables)
    return tables


def _union(left: Columns | None, right: Columns | None) -> Columns | None:
    if left is None or right is None or len(left) != len(right):
        return None
    return tuple(
        Column(
            one.name,
            one.type if one.type == other.type else None,
            f"{one.expression} | {other.expression}",
        )
        for one, other in zip(left, right, strict=True)
    )


def _select(node: Any, tables: _Tables) -> Columns | None:
    from sqlglot import exp

    sources = _sources(node, tables)
    found: list[Column] = []
    for item in node.expressions:
        if isinstance(item, exp.Star) or (
            isinstance(item, exp.Column) and isinstance(item.this, exp.Star)
        ):
            expanded = _star(item, sources)
            if expanded is None:
                return None
            found += expanded
        elif isinstance(item, exp.Alias):
            found.append(
                Column(item.alias, _type(item.this, sources), _meaning(item.this, sources))
            )
        elif isinstance(item, exp.Column):
            found.append(Column(item.name, _type(item, sources), _meaning(item, sources)))
        else:
            return None
    return tuple(found)


_Sources = dict[str, Columns | None] | None
"""Columns by name in lower case, in order of the FROM clause; `None`: a form not understood."""


def _sources(node: Any, tables: _Tables) -> _Sources:
    clause = node.args.get("from_")
    if clause is None:
        return {}
    joins = node.args.get("joins") or []
    if node.args.get("laterals") or node.args.get("operation_modifiers"):
        return None
    if any(j.args.get("using") or j.args.get("method") or j.kind in _HALF_JOINS for j in joins):
        return None
    sources: dict[str, Columns | None] = {}
    for each in (clause.this, *(join.this for join in joins)):
        name, columns = _source(each, tables)
        if name in sources:
            return None
        sources[name] = columns
    return sources


_HALF_JOINS = ("SEMI", "ANTI")


def _source(node: Any, tables: _Tables) -> tuple[str, Columns | None]:
    from sqlglot import exp

    name = node.alias_or_name.lower()
    alias = node.args.get("alias")
    if node.args.get("pivots") or (alias is not None and alias.args.get("columns")):
        return name, None
    if isinstance(node, exp.Subquery):
        return name, _query(node.this, tables)
    if isinstance(node, exp.Table) and not node.args.get("joins"):
        # An unquoted name with dots was split into catalog, database and table.
        full = ".".join(part.name for part in node.parts).lower()
        return name, tables.get(full)
    return name, None


def _star(item: Any, sources: _Sources) -> list[Column] | None:
    from sqlglot import exp

    star = item.this if isinstance(item, exp.Column) else item
    if sources is None or star.args.get("replace") or star.args.get("rename"):
        return None
    table = item.table.lower() if isinstance(item, exp.Column) else ""
    chosen = {table: sources.get(table)} if table else sources
    left_out = {each.name.lower() for each in star.args.get("except_") or ()}
    found: list[Column] = []
    for name, columns in chosen.items():
        if columns is None:
            return None
        found += [
            Column(each.name, each.type, f"{name}.{each.name}".lower())
            for each in columns
            if each.name.lower() not in left_out
        ]
    return found


def _type(node: Any, sources: _Sources) -> arrow.Type | None:
    from sqlglot import exp

    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Cast):
        return _declared(node.to.sql(dialect="spark"))
    if isinstance(node, exp.Column) and sources is not None:
        return _column_type(node, sources)
    return None


def _column_type(node: Any, sources: dict[str, Columns | None]) -> arrow.Type | None:
    owner = _owner(node, sources)
    if owner is None:
        return None
    return next(each.type for each in owner[1] if each.name.lower() == node.name.lower())


def _owner(node: Any, sources: dict[str, Columns | None]) -> tuple[str, Columns] | None:
    """The one source that has a column; `None` when it is none, several, or not known."""
    if node.args.get("db"):
        return None
    table = node.table.lower()
    asked = {table: sources.get(table)} if table else sources
    found = []
    for name, columns in asked.items():
        if columns is None:
            return None
        found += [(name, columns) for each in columns if each.name.lower() == node.name.lower()]
    return found[0] if len(found) == 1 else None


def _meaning(node: Any, sources: _Sources) -> str:
    """The text of an expression in which columns are named in one way."""
    from sqlglot import exp

    if sources is None:
        return _text(node)
    wrapped = exp.Paren(this=node.copy())
    for column in list(wrapped.find_all(exp.Column)):
        owner = _owner(column, sources)
        if owner is not None:
            column.replace(exp.Var(this=f"{owner[0]}.{column.name}".lower()))
    return _text(wrapped.this)


def _declared(text: str) -> arrow.Type | None:
    from odfbuild.odf.schema.ddl import DdlError, read_ddl

    try:
        return _kept(read_ddl([f"x {text}"]).field("x").type)
    except DdlError:
        return None


def _kept(kind: arrow.Type) -> arrow.Type | None:
    """The type of a column that Spark read as `kind` and handed on; `None` when it is not sure."""
    if kind.name == "timestamp":
        return arrow.timestamp("us" if kind.unit in ("us", "ns") else "ms")
    if kind.name in arrow.TEXTS:
        return arrow.Type("string")
    if kind.name in ("binary", "large_binary"):
        return arrow.Type("binary")
    return kind if kind.name in _CERTAIN else None


_CERTAIN = ("bool", *arrow.SIGNED, "float32", "float64", "date32", "decimal128")


def _without_columns(node: Any) -> Any:
    """The query with an empty list of columns at its top."""
    from sqlglot import exp

    copy = node.copy()
    parts: Sequence[Any] = [copy]
    while parts:
        inner: list[Any] = []
        for part in parts:
            if isinstance(part, exp.SetOperation):
                inner += [part.left, part.right]
            elif isinstance(part, exp.Subquery):
                inner.append(part.this)
            elif isinstance(part, exp.Select):
                part.set("expressions", [])
        parts = inner
    return copy


def _text(node: Any) -> str:
    return str(node.sql(dialect="spark", comments=False, normalize_functions="upper"))
