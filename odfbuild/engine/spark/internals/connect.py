"""What is asked of Spark Connect's client beside its public interface."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_COLUMN_ID = re.compile(r"#(\d+)")


def opened(address: str, tries: int, most_millis: int) -> SparkSession:
    """A session of its own with a server, which asks `tries` times, not for ten minutes.

    Raises `ImportError` without the packages for it.
    """
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession

    session: SparkSession = SparkSession.builder.remote(address).create()
    policy = DefaultPolicy(max_retries=tries, max_backoff=most_millis)
    session.client.set_retry_policies([policy])
    return session


def hang_up(session: SparkSession) -> None:
    """Close the connection of a session with a server; else it goes on asking what it had there."""
    session.client.close()


def analysis(frame: DataFrame) -> str:
    """The analysed plan of a frame here or of a server, with columns numbered as they come."""
    start = "== Analyzed Logical Plan =="
    explained = _explained(frame)
    text = explained[explained.index(start) : explained.rindex("== Optimized Logical Plan ==")]
    known: dict[str, int] = {}
    return _COLUMN_ID.sub(lambda found: f"#{known.setdefault(found[1], len(known))}", text)


def _explained(frame: Any) -> str:
    jvm = getattr(frame.sparkSession, "_jvm", None)
    if jvm is None:
        return str(frame._explain_string(extended=True))
    utils = jvm.org.apache.spark.sql.api.python.PythonSQLUtils
    return str(utils.explainString(frame._jdf.queryExecution(), "extended"))
