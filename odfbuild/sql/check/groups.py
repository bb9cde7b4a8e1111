"""Groups of a SELECT, and how many of its rows it keeps."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from odfbuild.errors import Code
from odfbuild.sql.check.select import Select, names_in, outside_aggregates
from odfbuild.sql.columns.of_query import owner_of
from odfbuild.sql.query_text import is_aggregate
from odfbuild.values import Value


def check_groups(select: Select) -> None:
    """Columns that are neither in GROUP BY nor in an aggregate."""
    group = select.node.args.get("group")
    calls = [
        part
        for clause, part in select.own()
        if clause in ("expressions", "having") and is_aggregate(part)
    ]
    if group is None and not calls:
        return
    keys = _Keys.of(select, group)
    if keys is None:
        return
    for item in select.node.expressions:
        for part in _outside(item, keys):
            if isinstance(part, exp.Column) and owner_of(part, select.sources) is not None:
                message = f"'{part.name}' is neither in GROUP BY nor in an aggregate"
                if part.name.lower() in keys.names:
                    message = f"'{part.name}' stands in GROUP BY within another expression only"
                help_ = f"add it to GROUP BY, or take max({part.sql('spark')})"
                select.tell("E0501", message, help_, part)


class _Shape(Value):
    """What an expression is made of, as far as it tells whether Spark takes another for the same.

    Spark knows many spellings of one thing: `extract(YEAR FROM x)` is `year(x)`, `nvl` is
    `coalesce`, `a < b` is `b > a`. So the operators and most functions tell nothing.
    """

    columns: frozenset[str]
    literals: tuple[str, ...]
    calls: tuple[str, ...] | None
    """`None`: it holds more than calls that have one spelling."""

    @classmethod
    def of(cls, node: exp.Expression) -> _Shape:
        """The shape of an expression."""
        parts = [*node.walk()]
        calls = [each.name.lower() for each in parts if isinstance(each, exp.Anonymous)]
        is_plain = _ONE_SPELLING.issuperset(calls) and all(
            isinstance(each, _PLAIN) for each in parts
        )
        return cls(
            frozenset(each.name.lower() for each in parts if isinstance(each, exp.Column)),
            tuple(sorted(each.name for each in parts if isinstance(each, exp.Literal))),
            tuple(sorted(calls)) if is_plain else None,
        )

    def may_be(self, other: _Shape) -> bool:
        """Whether Spark may take two expressions for the same."""
        if self.columns != other.columns:
            return False
        if self.calls is not None and other.calls is not None:
            return (self.literals, self.calls) == (other.literals, other.calls)
        # `date_part('YEAR', x)` has one more than `year(x)`.
        return len(self.literals) != len(other.literals) or self.literals == other.literals


_PLAIN = exp.Alias | exp.Anonymous | exp.Column | exp.Identifier | exp.Literal | exp.Paren
_NAMES = "upper lower length abs year month quarter hour minute second date_trunc trim md5 reverse"
_ONE_SPELLING = frozenset(_NAMES.split())


class _Keys(Value):
    """What a SELECT groups by."""

    columns: frozenset[str]
    """Names of columns that are keys by themselves."""
    shapes: frozenset[_Shape]
    """Of expressions that are keys."""
    names: frozenset[str]
    """Of all columns in them."""

    @classmethod
    def of(cls, select: Select, group: exp.Group | None) -> _Keys | None:
        """The keys of a SELECT; `None`: they cannot be told."""
        if group is None:
            return cls(frozenset(), frozenset(), frozenset())
        if group.args.get("all") or group.args.get("totals"):
            return None
        keys = [*_expressions(group)]
        for each in group.expressions:
            if isinstance(each, exp.Literal):
                item = _item(select, each)
                if item is None:
                    return None
                keys.append(item.unalias())
        written = {each.name.lower() for each in keys if isinstance(each, exp.Column)}
        for item in select.node.expressions:
            if isinstance(item, exp.Alias) and item.alias.lower() in written:
                keys.append(item.unalias())
        columns = [each for each in keys if isinstance(each, exp.Column)]
        return cls(
            frozenset(part.name.lower() for each in columns for part in each.parts),
            frozenset(map(_Shape.of, keys)),
            frozenset(name for each in keys for name in names_in(each)),
        )


def _expressions(group: exp.Expression) -> Iterator[exp.Expression]:
    """What stands in GROUP BY, in ROLLUP, CUBE and GROUPING SETS too."""
    sets = exp.Group | exp.Rollup | exp.Cube | exp.GroupingSets | exp.Tuple | exp.Paren
    for each in group.iter_expressions():
        if isinstance(each, sets):
            yield from _expressions(each)
        yield each


def _outside(item: exp.Expression, keys: _Keys) -> Iterator[exp.Expression]:
    """The parts of an entry that neither a key nor an aggregate is made of."""
    grouped: set[int] = set()
    for part in outside_aggregates(item):
        inside = part.parent is not None and id(part.parent) in grouped
        if inside or _is_key(part, keys):
            grouped.add(id(part))
        else:
            yield part


def _is_key(part: exp.Expression, keys: _Keys) -> bool:
    if isinstance(part, exp.Column):
        names = {each.name.lower() for each in part.parts}
        return not names.isdisjoint(keys.columns)
    shape = _Shape.of(part)
    return bool(shape.columns) and any(map(shape.may_be, keys.shapes))


def _item(select: Select, number: exp.Literal) -> exp.Expression | None:
    items = select.node.expressions
    if any(each.is_star for each in items) or not number.name.isdigit():
        return None
    if not 1 <= int(number.name) <= len(items):
        message = f"GROUP BY {number.name}: the result has {len(items)} columns"
        select.tell("E0501", message, "name the column", select.node.args["group"])
        return None
    found: exp.Expression = items[int(number.name) - 1]
    return found


def check_limit(select: Select) -> None:
    """LIMIT without ORDER BY keeps any of the rows."""
    clause = select.node.args.get("limit") or select.node.args.get("offset")
    if clause is None or select.node.args.get("order") is not None:
        return
    columns = [each for each in select.node.expressions if each.find(exp.Column)]
    if columns and not any(is_aggregate(each) for each in select.node.find_all(exp.Anonymous)):
        named = ", ".join(each.alias_or_name for each in columns)
        message = "LIMIT and OFFSET keep any of the rows without ORDER BY"
        help_ = f"name every column that is used: ORDER BY {named}"
        select.tell(Code.ORDER_MATTERS, message, help_, clause)
