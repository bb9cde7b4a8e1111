"""What a history amounts to does not depend on how records are found that were taken away."""

from __future__ import annotations

from pathlib import Path

import pytest

from odfbuild.engine.contract import Engine
from odfbuild.engine.spark.queries import inputs
from tests.engine.inputs import sql
from tests.engine.modes.test_affected_keys import Walk
from tests.engine.stepwise import Derived

ALL_VALUES = (
    "SELECT event_time, id, city, amount, x, price, tags, COUNT(*) AS n FROM events"
    " GROUP BY event_time, id, city, amount, x, price, tags"
)
NO_PLAIN_COLUMN = "SELECT MAX(event_time) AS event_time, x, SUM(price) AS s FROM events GROUP BY x"


@pytest.mark.spark
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("query", [ALL_VALUES, NO_PLAIN_COLUMN])
def test_long_histories_amount_to_what_short_ones_do(
    spark_engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, query: str
) -> None:
    walk = Walk(tmp_path / "inputs", seed)
    found = {}
    for name, long, few in (("short", 1000, 0), ("long", 0, 10_000), ("many", 0, 1)):
        monkeypatch.setattr(inputs, "LONG", long)
        monkeypatch.setattr(inputs, "_FEW_TAKEN", few)
        result = Derived(spark_engine, tmp_path / name, sql(query), walk.sources[:1])
        for block in (1, 2, 3, 4):
            result.step(block)
        found[name] = [file.read_bytes() for file in result.files]
    assert found["long"] == found["short"] == found["many"]
