"""Mode `changelog`: what is appended when a result changes, by hand."""

from pathlib import Path

import pyarrow as pa
import pytest

from odfbuild.engine.contract import Engine
from odfbuild.sql.mode import Mode
from tests.engine.inputs import sql
from tests.engine.stepwise import Derived, Source

pytestmark = pytest.mark.spark

SCORES = [
    pa.field("match_id", pa.int64()),
    pa.field("player", pa.string()),
    pa.field("score", pa.int64()),
]
LEADERS = """
    SELECT * FROM (
      SELECT ROW_NUMBER() OVER (ORDER BY score DESC, event_time, player) AS place,
             event_time, player, score
      FROM scores
    ) WHERE place <= 2"""


@pytest.fixture
def scores(tmp_path: Path) -> Source:
    return Source(tmp_path, "scores", SCORES)


def derived(engine: Engine, source: Source, query: str) -> Derived:
    return Derived(engine, source.folder / "derived", sql(query), [source])


def test_a_leader_board_corrects_its_places(spark_engine: Engine, scores: Source) -> None:
    board = derived(spark_engine, scores, LEADERS)
    scores.add([("00:01", 1, "Alice", 100), ("00:01", 1, "Bob", 80)])
    assert board.step() == [(0, "00:01", 1, "Alice", 100), (0, "00:01", 2, "Bob", 80)]
    scores.add([("00:02", 2, "Alice", 70), ("00:02", 2, "Charlie", 90)])
    assert board.step() == [(2, "00:01", 2, "Bob", 80), (3, "00:02", 2, "Charlie", 90)]
    scores.add([("00:03", 3, "Bob", 60), ("00:03", 3, "Charlie", 110)])
    assert board.step() == [
        (2, "00:01", 1, "Alice", 100),
        (3, "00:03", 1, "Charlie", 110),
        (2, "00:02", 2, "Charlie", 90),
        (3, "00:01", 2, "Alice", 100),
    ]
    assert board.mode is Mode.CHANGELOG
    assert "a window function (OVER) at line 3" in board.reason


def test_a_retraction_upstream_is_felt(spark_engine: Engine, scores: Source) -> None:
    total = """SELECT max(event_time) AS event_time, player, SUM(score) AS total
        FROM scores GROUP BY player"""
    sums = derived(spark_engine, scores, total)
    scores.add([("00:01", 1, "Alice", 100), ("00:01", 1, "Bob", 80), ("00:02", 2, "Bob", 5)])
    assert sums.step() == [(0, "00:01", "Alice", 100), (0, "00:02", "Bob", 85)]
    scores.add(
        [("00:01", 1, "Alice", 100), ("00:02", 2, "Bob", 5), ("00:02", 2, "Bob", 6)], ops=[1, 2, 3]
    )
    assert sums.step() == [
        (1, "00:01", "Alice", 100),
        (2, "00:02", "Bob", 85),
        (3, "00:02", "Bob", 86),
    ]
    assert sums.amounts_to() == [("00:02", "Bob", 86)]


def test_one_value_over_all_is_corrected(spark_engine: Engine, scores: Source) -> None:
    count = derived(
        spark_engine, scores, "SELECT max(event_time) AS event_time, COUNT(*) AS n FROM scores"
    )
    scores.add([("00:01", 1, "Alice", 100)])
    assert count.step() == [(0, "00:01", 1)]
    scores.add([("00:02", 1, "Alice", 100)])
    assert count.step() == [(2, "00:01", 1), (3, "00:02", 2)]


def test_without_a_key_differences_are_retracted_and_appended(
    spark_engine: Engine, scores: Source
) -> None:
    query = """SELECT a.event_time, a.player FROM scores a
        WHERE NOT EXISTS (SELECT 1 FROM scores b WHERE b.player = a.player AND b.score > a.score)"""
    best = derived(spark_engine, scores, query)
    scores.add([("00:01", 1, "Alice", 1), ("00:01", 2, "Alice", 1)])
    assert best.step() == [(0, "00:01", "Alice"), (0, "00:01", "Alice")]
    scores.add([("00:02", 3, "Alice", 2)])
    assert best.step() == [(1, "00:01", "Alice"), (1, "00:01", "Alice"), (0, "00:02", "Alice")]


@pytest.mark.parametrize("partition", ["1", "'a'", "score > 0", "player || 'x'", "1, player"])
def test_places_in_a_partition_that_is_no_column_are_kept_up_to_date(
    spark_engine: Engine, scores: Source, partition: str
) -> None:
    query = f"""SELECT event_time, player,
        ROW_NUMBER() OVER (PARTITION BY {partition} ORDER BY event_time, player) AS place
        FROM scores"""
    places = derived(spark_engine, scores, query)
    scores.add([("00:01", 1, "Alice", 1), ("00:03", 1, "Bob", 1)])
    places.step()
    scores.add([("00:02", 2, "Bob", 1)])
    places.step()
    first, second = ((1, 2) if "player" in partition else (2, 3)), places.amounts_to()
    alice = ("00:01", "Alice", 1)
    bobs = [("00:02", "Bob", first[0]), ("00:03", "Bob", first[1])]
    assert second == [alice, *bobs]


def test_zero_has_one_sign_and_nan_is_a_value_that_equals_itself(
    spark_engine: Engine, tmp_path: Path
) -> None:
    fields = [pa.field("name", pa.string()), pa.field("value", pa.float64())]
    source = Source(tmp_path, "values", fields)
    nan = float("nan")
    distinct = "SELECT DISTINCT event_time, name, value FROM values"
    result = derived(spark_engine, source, distinct.replace("values", "`values`"))
    source.add([("00:01", "zero", -0.0), ("00:01", "nan", nan)])
    assert [repr(row) for row in result.step()] == [
        "(0, '00:01', 'nan', nan)",
        "(0, '00:01', 'zero', 0.0)",
    ]
    source.add([("00:01", "zero", 0.0), ("00:01", "nan", nan), ("00:02", "one", 1.0)])
    assert result.step() == [(0, "00:02", "one", 1.0)]
