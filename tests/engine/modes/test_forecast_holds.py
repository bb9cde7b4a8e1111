"""What plans say of the mode of a query, Spark decides, of queries as people write them."""

from pathlib import Path

import pytest

from odfbuild.engine.contract import InputSlices
from odfbuild.engine.spark.engine import SparkEngine
from odfbuild.engine.spark.queries.transform import decide
from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.sql.forecast import expected_mode
from odfbuild.sql.mode import Mode
from odfbuild.sql.parsed import PIPE
from tests.engine.inputs import SCHEMA, sql, task

pytestmark = pytest.mark.spark

QUERIES = (Path(__file__).parents[1] / "accepted.sql").read_text(encoding="utf-8").splitlines()


def test_spark_decides_what_the_plan_said(spark_engine: SparkEngine, tmp_path: Path) -> None:
    cities = InputSlices(alias="cities", schema=SCHEMA, vocab=Vocabulary())
    other = {}
    for query in QUERIES:
        if query.startswith("--"):
            continue
        asked = task(tmp_path, sql(query), cities)
        said = expected_mode(asked.transform)
        with spark_engine.request("tests") as spark:
            decided = decide(spark, asked).choice
        if PIPE in query and decided.mode is Mode.MAP:
            continue  # of pipes the plan says the most that may be read
        if decided.mode is not said.mode:
            other[query] = f"{said.mode.value}, but {decided.mode.value}: {decided.reason}"
    assert other == {}
