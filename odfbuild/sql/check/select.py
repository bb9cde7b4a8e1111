"""One SELECT and its parts, and what a part is by its shape and by those around it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlglot import exp

from odfbuild.sql import functions as lists
from odfbuild.sql.columns.of_query import Sources, Within
from odfbuild.sql.function_list import AGGREGATES
from odfbuild.sql.query_text import is_unit
from odfbuild.values import Value


class Select(Value):
    """One SELECT, what it reads, and who is told what is wrong: code, message, help, part."""

    node: exp.Select
    sources: Sources
    within: Within
    tell: Callable[[str, str, str, exp.Expression | None], None]

    def own(self) -> Iterator[tuple[str, exp.Expression]]:
        """Its parts, with the clause that they stand in, down to queries inside."""
        for clause, value in self.node.args.items():
            if clause == "with_":
                continue
            waiting = list(value) if isinstance(value, list) else [value]
            while waiting:
                part = waiting.pop()
                if not isinstance(part, exp.Expression):
                    continue
                is_query = isinstance(part, exp.Query)
                if not (is_query and isinstance(part.parent, exp.From | exp.Join | exp.Lateral)):
                    yield clause, part
                if not is_query:
                    waiting += list(part.iter_expressions())


def arguments_of(node: exp.Anonymous) -> int:
    """How many arguments a call has."""
    given: list[exp.Expression] = node.expressions
    if len(given) == 1 and isinstance(given[0], exp.Distinct):
        return len(given[0].expressions)
    return len(given)


def is_counted(node: exp.Anonymous) -> bool:
    """Whether the number of arguments is what is written."""
    given = node.expressions
    strange = exp.Star | exp.Kwarg | exp.PropertyEQ | exp.Query
    first = given[0] if given else None
    is_of_unit = isinstance(first, exp.Column) and is_unit(first, plural=True)
    return not is_of_unit and not any(isinstance(each, strange) or each.is_star for each in given)


def names_in(node: exp.Expression) -> frozenset[str]:
    """The names of all columns that a part holds."""
    columns = node.find_all(exp.Column)
    return frozenset(part.name.lower() for each in columns for part in each.parts)


def around(node: exp.Expression) -> Iterator[exp.Expression]:
    """The parts around a part, within the same SELECT."""
    around = node.parent
    while around is not None and not isinstance(around, exp.Query):
        yield around
        around = around.parent


def is_sorted(node: exp.Anonymous, kind: str) -> bool:
    """Whether what is collected is sorted at once."""
    around = node.parent
    while isinstance(around, exp.Filter | exp.Paren):
        around = around.parent
    return (
        kind in lists.COLLECTIONS
        and isinstance(around, exp.Anonymous | exp.Func)
        and (around.name or around.sql_name()).lower() in ("array_sort", "sort_array")
    )


def outside_aggregates(item: exp.Expression) -> Iterator[exp.Expression]:
    """The parts that no aggregate is made of."""
    waiting = [item]
    while waiting:
        part = waiting.pop()
        if isinstance(part, exp.Query | exp.Window | exp.AggFunc | exp.WithinGroup | exp.Filter):
            continue
        if isinstance(part, exp.Anonymous) and part.name.lower() in AGGREGATES:
            continue
        yield part
        if not isinstance(part, exp.Column):
            waiting += list(part.iter_expressions())
