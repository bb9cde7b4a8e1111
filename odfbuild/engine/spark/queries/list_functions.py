"""Print the body of `function_list` for the release of Spark that is installed."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from odfbuild.engine.spark.internals.catalyst import items
from odfbuild.engine.spark.queries.functions import FORBIDDEN
from odfbuild.engine.spark.session.session import Session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def built_in(spark: SparkSession) -> frozenset[str]:
    """Names of the scalar, aggregate and window functions that Spark itself has."""
    registry = spark._jsparkSession.sessionState().functionRegistry()
    return frozenset(str(name.funcName()) for name in items(registry.listFunction()))


def main() -> None:
    """Start Spark and print the names, wrapped."""
    session = Session()
    try:
        names = " ".join(sorted(built_in(session.spark) - FORBIDDEN.keys()))
    finally:
        session.stop()
    indent = "    "
    for line in textwrap.wrap(names, 96, break_on_hyphens=False, break_long_words=False):
        print(indent + line)


if __name__ == "__main__":
    main()
