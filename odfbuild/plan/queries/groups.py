"""Groups of a SELECT, and how many of its rows it keeps."""

from __future__ import annotations

from sqlglot import exp

from odfbuild.plan.columns.of_query import owner_of
from odfbuild.plan.queries.select import Select, is_aggregate, names_in, outside_aggregates


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
    keys = _keys(select, group)
    if keys is None:
        return
    for item in select.node.expressions:
        for part in outside_aggregates(item):
            if isinstance(part, exp.Column) and owner_of(part, select.sources) is not None:
                names = {each.name.lower() for each in part.parts}
                if names.isdisjoint(keys):
                    message = f"'{part.name}' is neither in GROUP BY nor in an aggregate"
                    help_ = f"add it to GROUP BY, or take max({part.sql('spark')})"
                    select.tell("E0501", message, help_, part)


def _keys(select: Select, group: exp.Group | None) -> frozenset[str] | None:
    """Names that stand in GROUP BY; `None`: they cannot be told."""
    if group is None:
        return frozenset()
    if group.args.get("all") or group.args.get("totals"):
        return None
    keys = names_in(group)
    for each in group.expressions:
        if isinstance(each, exp.Literal):
            item = _item(select, each)
            if item is None:
                return None
            keys |= names_in(item)
    for item in select.node.expressions:
        if isinstance(item, exp.Alias) and item.alias.lower() in keys:
            keys |= names_in(item)
    return keys


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
        select.tell("E0506", message, help_, clause)
