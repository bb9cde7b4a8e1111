"""What a history amounts to, and what a step adds, does not depend on who finds it out, and how."""

from __future__ import annotations

from pathlib import Path

import pytest

from odfbuild.engine.contract import Engine
from odfbuild.engine.spark.queries import few_changes, inputs, present, shared_states
from tests.engine.inputs import sql
from tests.engine.modes.test_affected_keys import Walk
from tests.engine.stepwise import Derived

ALL_VALUES = (
    "SELECT event_time, id, city, amount, x, price, tags, COUNT(*) AS n FROM events"
    " GROUP BY event_time, id, city, amount, x, price, tags"
)
NO_PLAIN_COLUMN = "SELECT MAX(event_time) AS event_time, x, SUM(price) AS s FROM events GROUP BY x"
PLAIN = "SELECT MAX(event_time) AS event_time, city, COUNT(x) AS n FROM events GROUP BY city"


@pytest.mark.spark
@pytest.mark.parametrize(
    ("query", "seed"),
    [(ALL_VALUES, 0), (ALL_VALUES, 1), (NO_PLAIN_COLUMN, 0), (NO_PLAIN_COLUMN, 1), (PLAIN, 0)],
)
def test_histories_that_arrow_or_spark_looks_through_amount_to_the_same(
    spark_engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: str, seed: int
) -> None:
    walk = Walk(tmp_path / "inputs", seed)
    found = {}
    in_memory = present._MOST_BYTES
    for name, most, long, few in (
        ("arrow", in_memory, 1000, 0),
        ("short", 0, 1000, 0),
        ("long", 0, 0, 10_000),
        ("many", 0, 0, 1),
    ):
        monkeypatch.setattr(shared_states, "_of_session", {})
        monkeypatch.setattr(present, "_MOST_BYTES", most)
        monkeypatch.setattr(few_changes, "_LOOKED_AT", few_changes._LOOKED_AT if most else -1)
        monkeypatch.setattr(inputs, "LONG", long)
        monkeypatch.setattr(inputs, "_FEW_TAKEN", few)
        result = Derived(spark_engine, tmp_path / name, sql(query), walk.sources[:1])
        for block in (1, 2, 3, 4):
            result.step(block)
        found[name] = [file.read_bytes() for file in result.files]
    assert found["arrow"] == found["long"] == found["short"] == found["many"]
