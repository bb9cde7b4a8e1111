"""Steps through the server give what the built-in engine gives, hash for hash."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from odfbuild.engine.process.server.calls import Calls
from odfbuild.engine.process.server.serve import Serving, listening
from odfbuild.engine.spark.engine import SparkEngine
from tests.engine.everywhere import cuts, sources
from tests.engine.inputs import sql
from tests.engine.process.coordinator import NOW, Chain, Line
from tests.engine.queries import ALL, ONE_OF_EACH, STREAM
from tests.engine.stepwise import Derived

pytestmark = pytest.mark.spark

SOME = [*ONE_OF_EACH, STREAM[0]]


@pytest.fixture(scope="module")
def line(spark_engine: SparkEngine) -> Iterator[Line]:
    """The server in this process, on the engine that all tests share."""
    calls = Calls(lambda: spark_engine)
    with listening(calls, Serving(addresses=("127.0.0.1:0",))) as (address,):
        yield Line(address)


def check(engine: SparkEngine, line: Line, query: str, folder: Path) -> None:
    inputs = sources(folder)
    here = Derived(engine, folder / "here", sql(query), inputs, system_time=NOW)
    there = Chain(line, folder / "there", sql(query), inputs)
    for cut in (*cuts(query, seed=3), 6):
        upto = (cut,) * len(inputs)
        assert there.step(*upto) == here.step(*upto), f"{query}: blocks up to {cut}"
        assert there.watermark == here.watermark
    assert there.hashes == here.hashes, query


@pytest.mark.parametrize("query", SOME, ids=itertools.count())
def test_steps_give_the_same_hashes_as_built_in(
    spark_engine: SparkEngine, line: Line, tmp_path: Path, query: str
) -> None:
    check(spark_engine, line, query, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("query", [q for q in ALL if q not in SOME], ids=itertools.count())
def test_steps_of_any_query_give_the_same_hashes_as_built_in(
    spark_engine: SparkEngine, line: Line, tmp_path: Path, query: str
) -> None:
    check(spark_engine, line, query, tmp_path)
