"""What plans say of the mode of a query, Spark decides, of queries as people write them."""

from pathlib import Path

import pytest

from odfbuild.engine.contract import Engine, InputSlices, TransformTask, Vocabulary
from odfbuild.engine.forecast import expected_mode
from odfbuild.engine.spark.queries.transform import decide
from odfbuild.engine.spark.session.session import Session
from tests.engine.inputs import SCHEMA, sql

pytestmark = pytest.mark.spark

QUERIES = (Path(__file__).parents[1] / "accepted.sql").read_text(encoding="utf-8").splitlines()
LEFT_OUT = ("--", "FROM cities |>")
"""Comments, and pipes, which are not understood before they run."""


def test_spark_decides_what_the_plan_said(spark_engine: Engine, tmp_path: Path) -> None:
    session = Session()
    cities = InputSlices(alias="cities", schema=SCHEMA, vocab=Vocabulary())
    other = {}
    for query in QUERIES:
        if query.startswith(LEFT_OUT):
            continue
        task = TransformTask(
            dataset="tests",
            transform=sql(query),
            inputs=(cities,),
            vocab=Vocabulary(),
            scratch=tmp_path,
        )
        decided, said = decide(session.spark, task).choice, expected_mode(task.transform)
        if decided.mode is not said.mode:
            other[query] = f"{said.mode.value}, but {decided.mode.value}: {decided.reason}"
    session.stop()
    assert other == {}
