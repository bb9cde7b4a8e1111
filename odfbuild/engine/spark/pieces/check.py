"""Let executors check slices of a dataset, each of them read by one task from the storage."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odfbuild.engine.in_pieces import CheckTask
from odfbuild.engine.spark.pieces import tasks
from odfbuild.engine.spark.pieces.run import Workplace, by_tasks, ddl, wrong
from odfbuild.records.intact import Damage
from odfbuild.store.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MOST_TASKS = 2_000


def check_slices(
    spark: SparkSession, task: CheckTask, scratch: Path, cluster: str, server: Any = None
) -> tuple[Damage | None, ...] | None:
    """See `CheckTask`; `None` where none of the slices is in the storage as it was committed."""
    storage = Storage(task.storage.address, task.storage.root)
    slices = [data for data, _ in task.slices]
    whole = (each for each in slices if storage.size("data", each.physical_hash) == each.size)
    seen = next(whole, None)
    if seen is None:
        return None
    place = Workplace(task.dataset, task.storage, scratch, cluster, server, only_reads=True)
    size = len(slices)
    how = tasks.Checking(task.dataset, task.slices, task.storage, task.logical)
    with by_tasks(spark, place, seen):
        numbers = (server or spark).range(0, size, 1, min(size, _MOST_TASKS))
        rows = numbers.mapInArrow(partial(tasks.check, how), ddl(tasks.DAMAGE)).collect()
    found = {each.piece: _damage(each) for each in rows}
    if len(rows) != size or len(found) != size:
        raise wrong(task.dataset, f"of {size} slices {len(rows)} were checked")
    return tuple(found[number] for number in range(size))


def _damage(row: Any) -> Damage | None:
    return Damage(row.code, row.message, row.help) if row.code is not None else None
