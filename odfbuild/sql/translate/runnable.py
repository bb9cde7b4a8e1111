"""A transformation in Spark SQL, and the version that the chain records for it.

Imports nothing heavy while engines are Spark: plans of ten thousand datasets ask.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from odfbuild.errors import Errors, OdfbuildError, QueryError
from odfbuild.odf.model import SqlQueryStep, TransformSql
from odfbuild.sql.translate.named import NO_ENGINES, Engines, is_remote_release, remote_of

SPARK = "spark"
FOREIGN = ("flink", "datafusion", "risingwave")
"""Engines whose queries can be translated."""

NO_COLUMNS: Mapping[str, str] = {}


def is_spark(transform: TransformSql) -> bool:
    """Whether the queries are Spark's own."""
    return transform.engine.lower() == SPARK


def runnable(
    transform: TransformSql, dataset: str = "", columns: Mapping[str, str] = NO_COLUMNS
) -> TransformSql:
    """The transformation with queries in Spark SQL; itself where they are that.

    `columns` are the whole numbers among the columns of the inputs, `INT` or `BIGINT` by name:
    with them, divisions of these are translated, too.
    Raises `QueryError` E0513 for an engine that nothing is known about, `Errors` of `QueryError`s
    E0519 for what has no equal, each at its place in the text of its query.
    """
    if is_spark(transform):
        return transform
    engine = transform.engine.lower()
    if engine not in FOREIGN:
        raise QueryError(
            f"engine '{transform.engine}' is not available here",
            code="E0513",
            dataset=dataset,
            help="set `engine: spark` and write the query in Spark SQL",
        )
    known = frozenset(columns.items())
    steps: list[SqlQueryStep] = []
    errors: list[OdfbuildError] = []
    for number, step in enumerate(transform.queries or ()):
        try:
            steps.append(replace(step, query=_translated(engine, step.query, number, known)))
        except Errors as found:
            errors += found.errors
    if errors:
        raise Errors(error.changed(dataset=dataset) for error in errors)
    return replace(transform, engine=SPARK, version=None, queries=tuple(steps))


def if_runnable(transform: TransformSql) -> TransformSql | None:
    """The same; `None` where it cannot be translated."""
    try:
        return runnable(transform)
    except (Errors, QueryError):
        return None


@lru_cache(maxsize=1000)
def _translated(engine: str, query: str, number: int, columns: frozenset[tuple[str, str]]) -> str:
    from odfbuild.sql.translate.query import translate

    return translate(engine, query, number, dict(columns))


def release_for(transform: TransformSql, engine_version: str, engines: Engines = NO_ENGINES) -> str:
    """The version that a chain pins for a transformation that would be computed now.

    That is of the program that `engines` names for it, or else `engine_version` of Spark.
    For another engine's queries the latter names Spark and stands for the text that ran: the block
    says by `engine` whose queries they are, and by this what computed them. Empty where they cannot
    be translated, and without an `engine_version`.
    """
    remote = remote_of(transform, engines)
    if remote is not None:
        return remote.release(transform.engine)
    if is_spark(transform) or not engine_version:
        return engine_version
    ours = if_runnable(transform)
    if ours is None:
        return ""
    text = "\0".join(step.query for step in ours.queries or ())
    return f"{SPARK}-{engine_version}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def ran_on_spark(transform: TransformSql) -> bool:
    """Whether a committed transformation says that Spark computed it, translated or not."""
    if is_remote_release(transform.version):
        return False
    return is_spark(transform) or (transform.version or "").startswith(f"{SPARK}-")
