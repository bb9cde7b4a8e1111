"""Spark reads published tables as their metadata says, after increments and corrections."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.exchange.tables.tables import FORMATS, Format, Lake, rows_of

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("format", FORMATS, ids=lambda each: each.name)
def test_after_increments_spark_sees_the_current_state(
    format: Format, tmp_path: Path, spark_engine: Any
) -> None:
    lake = Lake(tmp_path, format.settings)
    for _ in range(5):
        for _ in range(3):
            lake.grow()
            lake.publish()
        found = format.spark(spark_engine._session.spark, lake.folder)
        assert rows_of(found) == lake.expected()
