"""Upper limits for the number of result records.

A query that reads each of its sources once and neither joins nor multiplies rows gives at most as
many rows as it reads. Judged by the text of the query, on the safe side: what is not recognised
counts as "cannot tell".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from odfbuild.odf.model import (
    TransformSql,
)
from odfbuild.sql.answers import told_once
from odfbuild.sql.query_text import conditions_of, is_call, parts_of, relation_of

_MAY_BE_EQUAL = re.compile(r"[\d\s.+-]|(true|false|t|f|yes|no|y|n|nan|inf|infinity)$", re.I)
"""How texts begin, or what they are, that another text may be equal to as a number or a time."""
_OF_MANY = ("limit", "offset", "order", "qualify")


def never_adds_records(transform: TransformSql, inputs: Iterable[str]) -> bool:
    """Whether a transformation over `inputs` (their names in the query) can only drop records."""
    return _unread(transform, inputs) is not None


def keeps_every_record(transform: TransformSql, inputs: Collection[str]) -> bool:
    """Whether a query that handles each record alone makes one of each."""
    parts = [part for step in transform.queries or () for part in parts_of(step.query) or ()]
    return _unread(transform, inputs) == set() and not any(part.drops for part in parts)


def changes_two_at_most(transform: TransformSql) -> bool:
    """Whether each new record brings a changelog at most two: the old sum goes, the new one comes.

    That is so for groups, unless one record can make several of them one, as sessions do.
    """
    steps = transform.queries or ()
    return len(steps) == 1 and _changes_two_at_most(steps[0].query)


@told_once(bool)
def _changes_two_at_most(query: str) -> bool:
    from sqlglot import exp

    from odfbuild.sql.parsed import parsed

    tree = parsed(query)
    return isinstance(tree, exp.Select) and not any(
        isinstance(each, exp.Window)
        or (isinstance(each, exp.Query) and each is not tree)
        or is_call(each, "window", "session_window")
        or any(each.args.get(clause) for clause in _OF_MANY)
        for each in tree.walk()
    )


_Kept = tuple[str, tuple[str, ...]] | None


def kept_values(transform: TransformSql, inputs: Collection[str]) -> _Kept:
    """A column, and those of its values that a query keeps: `WHERE origin = 'EWR' AND …`.

    `None` where none are recognised, or where others may be equal to them.
    """
    steps = transform.queries or ()
    if len(steps) != 1 or "'" not in steps[0].query:
        return None
    return _kept_values((steps[0].query, *sorted(map(str.lower, inputs))))


@told_once(_Kept)
def _kept_values(query_and_inputs: tuple[str, ...]) -> _Kept:
    from sqlglot import exp

    from odfbuild.sql.parsed import parsed

    query, *inputs = query_and_inputs
    tree = parsed(query)
    if not isinstance(tree, exp.Select) or relation_of(tree) not in inputs:
        return None
    for column, given in conditions_of(tree):
        texts = [each.name.casefold().strip() for each in given if each.is_string]
        if len(texts) == len(given) and not any(
            not each or "\\" in each or _MAY_BE_EQUAL.match(each) for each in texts
        ):
            return column.name.lower(), tuple(texts)
    return None


def _unread(transform: TransformSql, inputs: Iterable[str]) -> set[str] | None:
    """Which inputs a transformation does not read, where it can only drop records."""
    unused = {name.lower() for name in inputs}
    for step in transform.queries or ():
        sources = [part.relation for part in parts_of(step.query) or ()]
        if not sources or len({*sources}) < len(sources) or not unused.issuperset(sources):
            return None
        unused.difference_update(sources)
        if step.alias:
            unused.add(step.alias.lower())
    return unused
