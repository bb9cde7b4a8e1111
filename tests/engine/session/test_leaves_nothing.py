"""Steps leave nothing behind in the JVM: there are thousands of them in one run."""

import gc
from pathlib import Path

import pytest
from py4j.finalizer import ThreadSafeFinalizer

from odfbuild.engine.spark.engine import SparkEngine
from odfbuild.python_gc import paused_collector
from tests.engine.inputs import rows, slices, sql, task

pytestmark = pytest.mark.spark


def test_objects_of_a_step_are_given_up_when_it_has_ended(
    spark_engine: SparkEngine, tmp_path: Path
) -> None:
    given = slices(tmp_path, rows(0, 5))

    def held_after(steps: int) -> int:
        """Objects in the JVM that this process holds on to."""
        for number in range(steps):
            query = sql(f"SELECT event_time, population + {number} AS more FROM cities")
            spark_engine.run(task(tmp_path, query, given))
            # As chains are read between steps.
            with paused_collector():
                pass
        gc.collect()
        return len(ThreadSafeFinalizer.finalizers)

    at_first = held_after(10)
    # What another thread holds for a moment is given up some steps later; what is kept grows on.
    assert any(held_after(20) <= at_first + 10 for _ in range(3))
