"""The result columns of a query, from its text and its input columns.

Answers only what is certain: a form that is not understood gives `None`, a type that only the
engine knows is `None`, and then the engine decides when it runs. Parses SQL, which is slow, so it
is asked about queries that changed only. Runs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from odfbuild.odf.model import TransformSql
from odfbuild.odf.schema import arrow
from odfbuild.sql.lineage import Origins
from odfbuild.sql.translate.runnable import if_runnable
from odfbuild.values import Value

if TYPE_CHECKING:
    from sqlglot import exp


class Column(Value):
    """A column: its name as Spark gives it, and the expression behind it.

    `type` (in committed form) and `nullable` are `None` where unknown. Where lineage is followed,
    `origins` are what it is made from, and `records` what decides the records of its relation.
    """

    name: str
    type: arrow.Type | None
    expression: str = ""
    nullable: bool | None = None
    origins: Origins = frozenset()
    records: Origins = frozenset()


Columns = tuple[Column, ...]
Names = Mapping[str, tuple[str, ...] | None]
"""Names of the columns of each input by alias; `None` where they are not known."""


class Result(Value):
    """The columns of a result, and the text of all that decides which records it has."""

    columns: Columns
    records: str


def columns_of(schema: arrow.Schema) -> Columns:
    """The columns of a dataset or file, as a query sees them."""
    kinds = (field.type if field.is_uuid else _kept(field.type) for field in schema)
    both = zip(schema, kinds, strict=True)
    return tuple(Column(field.name, kind, str(field)) for field, kind in both)


def result_of(
    transform: TransformSql, inputs: Mapping[str, Columns | None], *, meanings: bool = True
) -> Result | None:
    """The result of `transform` over `inputs` by alias (`None`: unknown); `None` when uncertain.

    Without `meanings` it has names and types, and cannot be compared with another one.
    """
    ours = if_runnable(transform)
    if ours is None:
        return None
    from odfbuild.sql.parsed import parsed

    reader = Reader(inputs, meanings=meanings)
    records: list[str] = []
    columns: Columns | None = None
    for step in ours.queries or ():
        tree = parsed(step.query)
        if tree is None:
            return None
        columns = reader.step(tree, step.alias)
        if meanings:
            records.append(_text(_without_columns(tree)))
        if step.alias is not None:
            records.append(repr(columns))
    return None if columns is None else Result(columns, "\n".join(records))


Tables = Mapping[str, Columns | None]
"""Relations that a query may read, by name in lower case; `None`: their columns are not known."""


class Sources(Value):
    """What a SELECT reads: columns by what a relation is called there, in the order of FROM.

    `open`: a bare name may be more than a column of these. `listed`: `*` stands for all of them,
    in this order.
    """

    tables: Tables
    open: bool = False
    listed: bool = True

    def having(self, column: str) -> list[tuple[str, Columns]]:
        """The relations that are known to have a column, by its name in lower case."""
        return [
            (name, columns)
            for name, columns in self.tables.items()
            if columns is not None and any(each.name.lower() == column for each in columns)
        ]


class Reader:
    """Follows the columns of queries through what they read. Others build on it.

    Without `meanings` columns have no expressions, which take most of the time.
    """

    def __init__(self, inputs: Tables, *, meanings: bool = True) -> None:
        self.meanings = meanings
        self.tables = {alias.lower(): columns for alias, columns in inputs.items()}

    def step(self, query: exp.Query, alias: str | None) -> Columns | None:
        """The columns of a query, whose result later steps read as `alias`; `None`: uncertain."""
        columns = self.query(query, self.tables)
        if alias is not None:
            self.tables[alias.lower()] = columns
        return columns

    def selected(self, node: exp.Select, sources: Sources, within: Within) -> Columns | None:
        """The columns of a SELECT, of what it reads."""
        found: list[Column] = []
        for item in node.expressions:
            columns = columns_of_item(item, sources, self.meanings)
            if columns is None:
                return None
            found += columns
        return tuple(found)

    def united(self, node: exp.SetOperation, left: Columns, right: Columns) -> Columns | None:
        """The columns of a set operation, of those of its sides."""
        if len(left) != len(right):
            return None
        return tuple(
            Column(
                one.name,
                one.type if one.type == other.type else None,
                f"{one.expression} | {other.expression}",
            )
            for one, other in zip(left, right, strict=True)
        )

    def saw_table(self, node: exp.Table, name: str, tables: Tables) -> None:
        """A relation that is read by name, and those that there are."""

    def query(
        self, node: exp.Expression, tables: Tables, outer: tuple[Sources, ...] = ()
    ) -> Columns | None:
        """The columns of a query over `tables`; `outer` is what the queries around it read."""
        from sqlglot import exp

        if isinstance(node, exp.Subquery):
            return self.query(node.this, self._with_common_tables(node, tables, outer), outer)
        tables = self._with_common_tables(node, tables, outer)
        if isinstance(node, exp.SetOperation):
            left = self.query(node.left, tables, outer)
            right = self.query(node.right, tables, outer)
            return None if left is None or right is None else self.united(node, left, right)
        if not isinstance(node, exp.Select):
            return None
        return self.selected(node, self._sources(node, tables, outer), Within(tables, outer))

    def _with_common_tables(
        self, node: exp.Expression, tables: Tables, outer: tuple[Sources, ...]
    ) -> Tables:
        common = node.args.get("with_")
        if common is None:
            return tables
        tables = dict(tables)
        for each in common.expressions:
            name = each.alias.lower()
            if common.args.get("recursive"):
                tables[name] = None
            columns = self.query(each.this, tables, outer)
            tables[name] = _renamed(columns, each.args["alias"].args.get("columns"))
        return tables

    def _sources(self, node: exp.Select, tables: Tables, outer: tuple[Sources, ...]) -> Sources:
        clause = node.args.get("from_")
        joins = node.args.get("joins") or []
        read = [clause.this] if clause is not None else []
        read += [join.this for join in joins]
        read += node.args.get("laterals") or []
        found: dict[str, Columns | None] = {}
        plain = not any(
            j.args.get("using") or j.args.get("method") or j.kind in _HALF_JOINS for j in joins
        )
        for each in read:
            so_far = (Sources(dict(found)), *outer)
            name, columns = self._source(each, tables, so_far)
            if name in found:
                # Which of the two is meant only matters where they differ.
                columns, plain = None, False
            found[name] = columns
        strange = bool(node.args.get("operation_modifiers"))
        return Sources(found, strange or None in found.values(), plain and not strange)

    def _source(
        self, node: exp.Expression, tables: Tables, before: tuple[Sources, ...]
    ) -> tuple[str, Columns | None]:
        from sqlglot import exp

        name = node.alias_or_name.lower()
        alias = node.args.get("alias")
        renamed = alias.args.get("columns") if alias is not None else None
        columns: Columns | None = None
        if isinstance(node, exp.Lateral | exp.Values):
            if isinstance(node.this, exp.Subquery):
                columns = self.query(node.this, tables, before)
            elif renamed:
                columns = tuple(Column(each.name, None) for each in renamed)
        elif isinstance(node, exp.Subquery):
            columns = self.query(node, tables, before[1:])
        elif isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            # An unquoted name with dots was split into catalog, database and table.
            full = ".".join(part.name for part in node.parts)
            self.saw_table(node, full, tables)
            columns = tables.get(full.lower())
        if node.args.get("pivots") or node.args.get("joins"):
            return name, None
        return name, _renamed(columns, renamed)


class Within(Value):
    """Where a SELECT stands: the relations that it may name, and what queries around it read."""

    tables: Tables
    outer: tuple[Sources, ...]


_HALF_JOINS = ("SEMI", "ANTI")


def _renamed(columns: Columns | None, names: Sequence[exp.Identifier] | None) -> Columns | None:
    if not names:
        return columns
    if columns is None or len(columns) != len(names):
        return None
    return tuple(
        replace(column, name=name.name) for column, name in zip(columns, names, strict=True)
    )


def columns_of_item(
    item: exp.Expression, sources: Sources, meanings: bool = False
) -> Sequence[Column] | None:
    """What one entry of a SELECT gives; `None` where its name or number is not certain."""
    from sqlglot import exp

    if isinstance(item, exp.Star) or item.is_star:
        return _star(item, sources)
    inner = item.this if isinstance(item, exp.Alias | exp.Aliases) else item
    meaning = _meaning(inner, sources) if meanings else ""
    if isinstance(item, exp.Aliases):
        return [Column(each.name, None, meaning) for each in item.expressions]
    if isinstance(item, exp.Alias | exp.Column):
        return [Column(item.alias_or_name, type_of(inner, sources), meaning)]
    return None


def _star(item: exp.Expression, sources: Sources) -> list[Column] | None:
    from sqlglot import exp

    star = item.this if isinstance(item, exp.Column) else item
    if not isinstance(star, exp.Star) or star.args.get("replace") or star.args.get("rename"):
        return None
    table = item.table.lower() if isinstance(item, exp.Column) else ""
    if not table and not sources.listed:
        return None
    chosen = {table: sources.tables.get(table)} if table else sources.tables
    left_out = {each.name.lower() for each in star.args.get("except_") or ()}
    found: list[Column] = []
    for name, columns in chosen.items():
        if columns is None:
            return None
        found += [
            replace(each, expression=f"{name}.{each.name}".lower(), nullable=None)
            for each in columns
            if each.name.lower() not in left_out
        ]
    return found


def type_of(node: Any, sources: Sources) -> arrow.Type | None:
    """The type of an expression, in committed form; `None` where only the engine knows it."""
    from sqlglot import exp

    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Cast):
        return _declared(node.to.sql(dialect="spark"))
    if isinstance(node, exp.Column):
        owner = owner_of(node, sources)
        return None if owner is None else owner[1].type
    return None


def owner_of(node: exp.Column, sources: Sources) -> tuple[str, Column] | None:
    """A column and the one source that has it; `None` when that is none, several, or not known."""
    if node.args.get("db"):
        return None
    table, name = node.table.lower(), node.name.lower()
    asked = {table: sources.tables.get(table)} if table else sources.tables
    if None in asked.values() or (not table and sources.open):
        return None
    found = [
        (source, each)
        for source, columns in asked.items()
        for each in columns or ()
        if each.name.lower() == name
    ]
    return found[0] if len(found) == 1 else None


def _meaning(node: Any, sources: Sources) -> str:
    """The text of an expression in which columns are named in one way."""
    from sqlglot import exp

    wrapped = exp.Paren(this=node.copy())
    for column in list(wrapped.find_all(exp.Column)):
        owner = owner_of(column, sources)
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
    if kind.name == "struct":
        return _kept_members(kind)
    return kind if kind.name in _CERTAIN else None


def _kept_members(kind: arrow.Type) -> arrow.Type | None:
    """A structure; `None` where one of its members is not sure, as times in it are not."""
    parts = []
    for each in kind.fields:
        part = None if each.type.name == "timestamp" else _kept(each.type)
        if part is None:
            return None
        parts.append(replace(each, type=part))
    return replace(kind, fields=tuple(parts))


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
