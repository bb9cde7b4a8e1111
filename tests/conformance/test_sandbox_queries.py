"""What a query may do, against the vectors: files, commands, clock and randomness are refused.

The verdict of a vector is about safety; that a query is not row-wise or depends on order is
reported apart, and does not count here.
"""

from typing import Any

import pytest

from odfbuild.engine.contract import Engine
from odfbuild.engine.spark.engine import SparkEngine
from odfbuild.engine.spark.queries.findings import Step
from odfbuild.engine.spark.queries.validate import check_steps
from tests.conformance.vectors import cases

pytestmark = pytest.mark.spark

INPUT = """offset bigint, event_time timestamp, k bigint, v double, s string, q int,
    arr array<int>"""


@pytest.mark.parametrize("case", cases("sandbox_queries"))
def test_a_query_gets_the_verdict_of_the_sandbox(
    case: dict[str, Any], spark_engine: Engine
) -> None:
    assert isinstance(spark_engine, SparkEngine)
    with spark_engine.request("sandbox") as spark:
        spark.createDataFrame([], INPUT).createOrReplaceTempView("t")
        spark.createDataFrame([], "x string").createOrReplaceTempView("secret")
        report = check_steps(spark, "sandbox", [Step(None, case["sql"])], ["t"])
    verdict = "reject" if report.errors else "accept"
    assert verdict == case["verdict"], [str(error) for error in report.errors]
