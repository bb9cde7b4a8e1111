"""Count the records of a frame while an action on it runs, here and on a server."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NUMBER = "records"


def counted(frame: DataFrame) -> tuple[DataFrame, Callable[[], int | None]]:
    """`frame`, and what tells how many records it had once the first action on it is done.

    `None` where the optimiser has taken it out of the plan. Classic frames and those of a server.
    """
    from pyspark.sql import Observation
    from pyspark.sql.functions import count, lit

    observation: Any
    one: Any
    if hasattr(frame, "_jdf"):
        observation = Observation()
        one = count(lit(1))
    else:
        from pyspark.sql.connect import functions
        from pyspark.sql.connect.observation import Observation as ObservationThere

        observation = ObservationThere()
        one = functions.count(functions.lit(1))
    observed = frame.observe(observation, one.alias(_NUMBER))
    return observed, lambda: observation.get.get(_NUMBER)
