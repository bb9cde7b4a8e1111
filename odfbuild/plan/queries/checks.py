"""What is certainly wrong with checks of odfbuild.yaml, by the columns that datasets have.

Finds what `apply` would fall over when it asks them, with the same codes. Says nothing where only
data tell which columns there are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from odfbuild.errors import CheckError, InSettings
from odfbuild.odf.model import SqlQueryStep, TransformSql
from odfbuild.plan.columns.known import KnownColumns
from odfbuild.records.checks import (
    AcceptedValues,
    Asked,
    KAnonymous,
    NotNull,
    Relationship,
    Sql,
    Unique,
)
from odfbuild.wording import did_you_mean

VIEW = "slice"
"""What the queries of checks call the records that they look at."""


def wrong_checks(
    dataset: str, asked: Sequence[Asked], known: KnownColumns, names: Collection[str] | None
) -> Iterator[tuple[str, CheckError]]:
    """Errors, each with the part of its check that is wrong.

    `names` are those of all datasets, in lower case; `None` when there may be others. The location
    of an error is its check in odfbuild.yaml, with line and column within the text of a query.
    """
    for each in asked:
        check = each.check
        if isinstance(check, Sql):
            yield from _wrong_query(dataset, each, check, known)
            continue
        if isinstance(check, Relationship) and names is not None and check.to.lower() not in names:
            message = f"a check of '{dataset}' refers to '{check.to}', which is no dataset"
            help_ = did_you_mean(check.to, names, "correct the name in `checks` of odfbuild.yaml")
            yield check.to, _error(message, "E0542", dataset, each, help_)
        for name, column, columns in _missing(dataset, each, known):
            message = f"'{name}' has no column '{column}', which a check asks for"
            help_ = did_you_mean(column, columns, f"it has: {', '.join(columns)}")
            yield column, _error(message, "E0541", dataset, each, help_)


def _missing(
    dataset: str, asked: Asked, known: KnownColumns
) -> Iterator[tuple[str, str, list[str]]]:
    """Datasets, columns that a check asks for and they do not have, and the columns they have."""
    check = asked.check
    wanted: list[tuple[str, Sequence[str]]] = []
    if isinstance(check, Unique | KAnonymous):
        wanted.append((dataset, check.columns))
    elif isinstance(check, NotNull | AcceptedValues | Relationship):
        wanted.append((dataset, [check.column]))
    if isinstance(check, Relationship):
        wanted.append((check.to, [check.field]))
    for name, columns in wanted:
        relation = known.relation(name)
        if relation is not None:
            there = [each.name for each in relation]
            yield from ((name, each, there) for each in columns if each not in there)


def _wrong_query(
    dataset: str, asked: Asked, check: Sql, known: KnownColumns
) -> Iterator[tuple[str, CheckError]]:
    from odfbuild.sql.check.check import errors_of

    query = TransformSql(engine="spark", queries=(SqlQueryStep(query=check.query),))
    for wrong in errors_of(query, {VIEW: known.relation(dataset)}, None, dataset, is_check=True):
        message = f"a check of '{dataset}' is not a query over `{VIEW}`: {wrong.message}"
        error = _error(message, "E0543", dataset, asked, wrong.help)
        found = wrong.location
        if found is not None and error.location is not None:
            column, length = found.column or 1, found.length
            error = error.at(replace(error.location, line=found.line, column=column, length=length))
        yield str(found), error


def _error(message: str, code: str, dataset: str, asked: Asked, help_: str | None) -> CheckError:
    return CheckError(
        message,
        code=code,
        dataset=dataset,
        notes=(f"check: {asked.check}",),
        help=help_,
        location=InSettings.of("checks", *asked.path),
    )
