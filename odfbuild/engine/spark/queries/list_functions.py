"""Print the body of `function_list` for the release of Spark that is installed; takes minutes."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from odfbuild.engine.spark.internals.catalyst import Catalyst
from odfbuild.engine.spark.session.session import Session
from odfbuild.sql.functions import FORBIDDEN

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MOST = 10
"""A function that takes so many arguments takes any number."""


def signatures(spark: SparkSession) -> Iterator[str]:
    """`name:arity`, and the class behind the name of an aggregate, as in `avg:1:Average`."""
    for name, (kind, group) in sorted(Catalyst(spark).functions().items()):
        if name not in FORBIDDEN:
            taken = [n for n in range(_MOST + 1) if _takes(spark, name, n)]
            suffix = f":{kind}" if group == "agg_funcs" else ""
            yield f"{name}:{arity(taken)}{suffix}"


def _takes(spark: SparkSession, name: str, number: int) -> bool:
    from pyspark.errors import PySparkException

    try:
        spark.sql(f"SELECT `{name}`({', '.join(['NULL'] * number)})")
    except PySparkException as error:
        return "WRONG_NUM_ARGS" not in str(error.getCondition())
    return True


def arity(taken: Sequence[int]) -> str:
    """Numbers of arguments: `1`, `1-3`, `2,6`, `2+`; `0+` where Spark has a syntax of its own."""
    if not taken:
        return "0+"
    first, last = taken[0], taken[-1]
    if last == _MOST:
        return f"{first}+"
    if len(taken) == last - first + 1:
        return str(first) if first == last else f"{first}-{last}"
    return ",".join(map(str, taken))


def main() -> None:
    """Start Spark and print the signatures, wrapped."""
    session = Session()
    try:
        found = " ".join(signatures(session.spark))
    finally:
        session.stop()
    for line in textwrap.wrap(found, 96, break_on_hyphens=False, break_long_words=False):
        print(f"    {line}")


if __name__ == "__main__":
    main()
