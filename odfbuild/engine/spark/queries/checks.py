"""Queries of checks: they return records that violate a condition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odfbuild.engine.contract import ViolationsTask
from odfbuild.engine.spark.internals.catalyst import Catalyst
from odfbuild.engine.spark.internals.status import message
from odfbuild.engine.spark.results.frames import read_slices
from odfbuild.errors import CheckError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VIEW = "slice"


def violations(spark: SparkSession, task: ViolationsTask) -> tuple[int, str]:
    """See `ViolationsTask`."""
    from pyspark.errors import AnalysisException, ParseException

    dataset, query, vocab = task.dataset, task.query, task.vocab
    _only_reads(dataset, query)
    Catalyst(spark).show(read_slices(spark, task.files, task.schema, vocab), VIEW)
    try:
        found = spark.sql(query)
        names = found.columns
    except (AnalysisException, ParseException) as error:
        raise _wrong(dataset, query, message(error)) from None
    number = found.count()
    first = found.first() if number else None
    if first is None:
        return 0, ""
    shown = [name for name in names if name not in (vocab.operation_type, vocab.system_time)]
    return number, ", ".join(f"{name} {first[name]!r}" for name in shown[:6])


def _only_reads(dataset: str, query: str) -> None:
    """A check is one query: anything else could change what others see."""
    from sqlglot import exp, parse
    from sqlglot.errors import SqlglotError

    try:
        statements = parse(query, dialect="spark")
    except SqlglotError as error:
        raise _wrong(dataset, query, str(error).splitlines()[0]) from None
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        raise _wrong(dataset, query, "it must be one SELECT")


def _wrong(dataset: str, query: str, why: str) -> CheckError:
    return CheckError(
        f"a check of '{dataset}' is not a query over `slice`: {why}",
        code="E0543",
        dataset=dataset,
        notes=(f"query: {query}",),
        help="correct it in `checks` of odfbuild.yaml",
    )
