"""Follow the columns of a query through its text.

A query that is not understood gives `None`: a clause that decides something and is overlooked would
make a wrong answer. Takes milliseconds; `lineages.Lineages` keeps the answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from odfbuild.odf.model import TransformSql
from odfbuild.sql.columns.of_query import (
    Column,
    Columns,
    Names,
    Reader,
    Sources,
    Tables,
    Within,
    columns_of_item,
)
from odfbuild.sql.forecast import steps_of
from odfbuild.sql.functions import TABLE_FUNCTIONS
from odfbuild.sql.lineage import Influence, Lineage, Origins, as_influence
from odfbuild.sql.query_text import is_call, is_unit
from odfbuild.sql.temporal_references import without_calls

if TYPE_CHECKING:
    from sqlglot import exp


def lineage_of(transform: TransformSql, inputs: Names) -> Lineage | None:
    """The lineage of a transformation over `inputs`; `None` when it cannot be told."""
    steps = steps_of(transform)
    if not steps or None in inputs.values():
        return None
    from odfbuild.sql.parsed import parsed

    follower = _Follower(
        {
            alias: tuple(
                Column(name, None, origins=frozenset([(alias.lower(), name, Influence.COPY)]))
                for name in map(str.lower, names or ())
            )
            for alias, names in inputs.items()
        },
        {table.name.lower(): table.primary_key for table in transform.temporal_tables or ()},
    )
    columns: Columns | None = None
    try:
        for query, alias in steps:
            tree = parsed(without_calls(query, follower.keys) if follower.keys else query)
            if tree is None:
                return None
            _refuse_what_is_not_followed(tree)
            columns = follower.step(tree, alias)
    except (RecursionError, _NotUnderstood):
        return None
    found = {each.name.lower(): each.origins for each in columns or ()}
    return Lineage(found, _records(columns or ())) if found else None


class _NotUnderstood(Exception):
    """A form of query that is not followed."""


_FOLLOWED = {
    "Select": "with_ expressions hint distinct from_ laterals joins where group having qualify "
    "order limit offset sort distribute cluster",
    "Join": "this on using side kind hint",
    "Union": "with_ this expression distinct order limit offset",
    "Except": "with_ this expression distinct order limit offset",
    "Intersect": "with_ this expression distinct order limit offset",
    "Group": "expressions rollup cube grouping_sets",
    "Subquery": "with_ this alias",
    "Table": "this db catalog alias version",
    "TableSample": "",
    "Pivot": "",
    "MatchRecognize": "",
}
"""The clauses that are followed, by the kind of part that they belong to."""


def _refuse_what_is_not_followed(tree: exp.Query) -> None:
    for part in tree.walk():
        followed = _FOLLOWED.get(type(part).__name__)
        if followed is not None:
            said = {clause for clause, value in part.args.items() if value}
            if not followed or not said <= set(followed.split()):
                raise _NotUnderstood


_WINDOWS = ("window", "session_window")
"""Functions in GROUP BY that make a column of their name."""
_DECIDING = {
    "where": Influence.FILTER,
    "having": Influence.FILTER,
    "qualify": Influence.FILTER,
    "group": Influence.GROUPING,
}


class _Follower(Reader):
    """Gives each column its origins, and what decides the records of its relation.

    `keys` are the primary keys of temporal tables, by name in lower case.
    """

    def __init__(self, inputs: Tables, keys: Mapping[str, Sequence[str]]) -> None:
        super().__init__(inputs, meanings=False)
        self.keys = keys

    def united(self, node: exp.SetOperation, left: Columns, right: Columns) -> Columns | None:
        """See `Reader.united`."""
        from sqlglot import exp

        if len(left) != len(right):
            raise _NotUnderstood
        pairs = zip(left, right, strict=True)
        columns = [replace(one, origins=one.origins | other.origins) for one, other in pairs]
        origins = [each.origins for each in columns]
        records = [_records(left), _records(right)]
        if not isinstance(node, exp.Union) or node.args.get("distinct"):
            records.append(as_influence(Influence.GROUPING, origins))
        if node.args.get("order") and _is_cut(node):
            records.append(as_influence(Influence.FILTER, origins))
        return _with_records(columns, records)

    def selected(self, node: exp.Select, sources: Sources, within: Within) -> Columns | None:
        """See `Reader.selected`."""
        if None in sources.tables.values():
            raise _NotUnderstood
        one = _Select(self, node, sources, within)
        columns = [column for item in node.expressions for column in one.columns_of(item)]
        if len({each.name.lower() for each in columns}) < len(columns):
            raise _NotUnderstood
        records = [_records(each or ()) for each in sources.tables.values()]
        records += one.deciding(columns)
        return _with_records(columns, records)

    def _source(
        self, node: exp.Expression, tables: Tables, before: tuple[Sources, ...]
    ) -> tuple[str, Columns | None]:
        from sqlglot import exp

        name, columns = super()._source(node, tables, before)
        if isinstance(node, exp.Table) and node.args.get("version") is not None:
            return name, self._version(node, columns, tables, before)
        if columns is None or not isinstance(node, exp.Lateral):
            return name, columns
        # How many records a generator makes of one, its argument says.
        one = _Select(self, exp.Select(), before[0], Within(tables, before[1:]))
        made = as_influence(Influence.DERIVATION, [one.origins_of(node.this)])
        columns = tuple(replace(each, origins=each.origins | made) for each in columns)
        return name, _with_records(
            columns, [_records(columns), as_influence(Influence.JOIN, [made])]
        )

    def _version(
        self,
        node: exp.Table,
        columns: Columns | None,
        tables: Tables,
        before: tuple[Sources, ...],
    ) -> Columns:
        """The columns of a temporal table, at a time that decides which records are read."""
        from sqlglot import exp

        version = node.args["version"]
        keys = self.keys.get(".".join(part.name for part in node.parts).lower())
        if keys is None or version.name != "TIMESTAMP" or version.text("kind") != "AS OF":
            raise _NotUnderstood
        of = {each.name.lower(): each.origins for each in columns or ()}
        # Names do not tell which column is the event time, if it has a name of its own.
        deciding = {*(["event_time"] if "event_time" in of else of), *map(str.lower, keys)}
        if not deciding <= of.keys():
            raise _NotUnderstood
        # A bare name may be a column of the temporal table, too.
        own = {node.alias_or_name.lower(): columns}
        sources = Sources({**before[0].tables, **own})
        one = _Select(self, exp.Select(), sources, Within(tables, before[1:]))
        asked = [one.origins_of(version.expression), *(of[name] for name in sorted(deciding))]
        read = columns or ()
        return _with_records(read, [_records(read), as_influence(Influence.JOIN, asked)])


class _Select:
    """One SELECT whose columns are followed; `found` are the entries before, by name."""

    def __init__(
        self, follower: _Follower, node: exp.Select, sources: Sources, within: Within
    ) -> None:
        self.follower, self.node, self.sources, self.within = follower, node, sources, within
        self.found: dict[str, Origins] = {}

    def columns_of(self, item: exp.Expression) -> Iterable[Column]:
        """The columns of an entry."""
        from sqlglot import exp

        columns = columns_of_item(item, self.sources)
        if item.is_star:
            if columns is None:
                raise _NotUnderstood
            return columns
        inner = item.this if isinstance(item, exp.Alias | exp.Aliases) else item
        origins = self.origins_of(inner)
        if not isinstance(inner, exp.Column) or self._owner(inner) is None:
            origins = as_influence(Influence.DERIVATION, [origins])
        made = [Column(each.name, None, origins=origins) for each in columns or ()]
        self.found |= {each.name.lower(): origins for each in made}
        # The result of a subquery that is a value needs no name.
        return made or [Column(f"#{len(self.found)}", None, origins=origins)]

    def deciding(self, columns: Iterable[Column]) -> Iterator[Origins]:
        """What decides the records of the result, beside its sources."""
        from sqlglot import exp

        args = self.node.args
        for clause, kind in _DECIDING.items():
            if args.get(clause):
                yield as_influence(kind, [self.origins_of(args[clause])])
        for join in args.get("joins") or ():
            if join.args.get("on"):
                yield as_influence(Influence.JOIN, [self.origins_of(join.args["on"])])
            for name in join.args.get("using") or ():
                both = _columns(self.sources, name.name.lower())
                yield as_influence(Influence.JOIN, [each.origins for each in both])
        for item in self.node.expressions:
            if any(is_call(each, *TABLE_FUNCTIONS) for each in item.find_all(exp.Anonymous)):
                yield as_influence(Influence.JOIN, [self.origins_of(item)])
        if args.get("distinct"):
            yield as_influence(Influence.GROUPING, [each.origins for each in columns])
        if _is_cut(self.node) and args.get("order"):
            yield as_influence(Influence.FILTER, [self.origins_of(args["order"])])

    def origins_of(self, node: exp.Expression) -> Origins:
        """Where the values of an expression come from, subqueries in it included."""
        from sqlglot import exp

        found: list[Origins] = []
        for each in node.walk(prune=lambda part: isinstance(part, exp.Query | exp.Column)):
            if isinstance(each, exp.Column) and not is_unit(each):
                found.append(self._origins(each))
            elif isinstance(each, exp.Star) and not _counts_rows(each.parent):
                raise _NotUnderstood  # a row as the argument of a function
            elif isinstance(each, exp.Query):
                outer = (self.sources, *self.within.outer)
                inner = self.follower.query(each, self.within.tables, outer) or ()
                found += [_records(inner), *(column.origins for column in inner)]
            elif isinstance(each.parent, exp.Group) and isinstance(each, exp.Literal):
                found.append(self._numbered(each))
        return frozenset[Any]().union(*found)

    def _origins(self, node: exp.Column) -> Origins:
        owner = self._owner(node)
        first = node.parts[0].name.lower()
        if owner is not None:
            return owner.origins
        if first in self.found:
            return self.found[first]
        group = self.node.args.get("group")
        for call in group.expressions if group is not None and first in _WINDOWS else ():
            if is_call(call, first):
                return self.origins_of(call)
        named = [each for each in self.node.expressions if each.alias_or_name.lower() == first]
        if len(named) == 1 and not any(node is part for part in named[0].walk()):
            return self.origins_of(named[0].unalias())
        raise _NotUnderstood

    def _owner(self, node: exp.Column) -> Column | None:
        """The column of a source that a name stands for, or that holds the field of that name."""
        table, name = node.table.lower(), node.name.lower()
        for scope in (self.sources, *self.within.outer):
            if table in scope.tables and table:
                mine = scope.tables[table] or ()
                found = [each for each in mine if each.name.lower() == name]
            else:
                found = _columns(scope, node.parts[0].name.lower())
            if found:
                return found[0] if len(found) == 1 else self._of_both(found)
        return None

    def _of_both(self, found: list[Column]) -> Column:
        """The column that `USING` makes of those of two sources."""
        joins = self.node.args.get("joins") or ()
        using = {each.name.lower() for join in joins for each in join.args.get("using") or ()}
        if found[0].name.lower() not in using:
            raise _NotUnderstood
        return replace(found[0], origins=frozenset[Any]().union(*(each.origins for each in found)))

    def _numbered(self, number: exp.Literal) -> Origins:
        """The entry that a number in GROUP BY stands for."""
        items = [] if any(each.is_star for each in self.node.expressions) else self.node.expressions
        if not number.name.isdigit() or not 1 <= int(number.name) <= len(items):
            raise _NotUnderstood
        return self.origins_of(items[int(number.name) - 1].unalias())


def _counts_rows(node: Any) -> bool:
    return is_call(node, "count") and len(node.expressions) == 1


def _columns(sources: Sources, name: str) -> list[Column]:
    """The columns of this name."""
    return [
        each for _, columns in sources.having(name) for each in columns if each.name.lower() == name
    ]


def _records(columns: Iterable[Column]) -> Origins:
    """What decides the records of a relation with these columns."""
    return next((each.records for each in columns), frozenset())


def _with_records(columns: Iterable[Column], records: Iterable[Origins]) -> Columns:
    every = frozenset[Any]().union(*records)
    return tuple(replace(each, records=every) for each in columns)


def _is_cut(node: Any) -> bool:
    """Whether only some of the records are kept, by their order."""
    return bool(node.args.get("limit") or node.args.get("offset"))
