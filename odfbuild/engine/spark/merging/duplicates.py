"""Duplicate keys in a snapshot, with the places of their records.

A snapshot is a whole state, in which a key has one record. Two would be two current rows for good.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from odfbuild.engine.contract import IngestTask
from odfbuild.engine.spark.merging.changes import only
from odfbuild.engine.spark.reading.bad_places import places_of
from odfbuild.engine.spark.reading.bad_records import BadRecords
from odfbuild.engine.spark.reading.read import read_source
from odfbuild.engine.spark.reading.source_text import shown
from odfbuild.engine.spark.reading.splits import one_part
from odfbuild.engine.spark.results import small_jobs as few
from odfbuild.engine.spark.results.frames import quote
from odfbuild.engine.spark.results.hidden import ROW
from odfbuild.errors import IngestError, Location
from odfbuild.odf.model import MergeStrategySnapshot
from odfbuild.wording import count

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

_EXAMPLES = 3
_PLACES = 5
_RECORDS = "__odfbuild_records"


def duplicate_keys(
    spark: SparkSession, frame: DataFrame, task: IngestTask, keyed: Callable[[DataFrame], DataFrame]
) -> IngestError | None:
    """What is wrong with a snapshot whose keys are not unique; `None` for one whose keys are.

    `frame` has keys as they are compared, as `keyed` makes them of what was read. Their hashes are
    collected, which costs a fraction of grouping them; only where two are alike are they grouped.
    """
    from pyspark.sql.functions import expr

    assert isinstance(task.merge, MergeStrategySnapshot)
    key = task.merge.primary_key
    names = [quote(name) for name in key]
    hashed = frame.selectExpr(f"xxhash64({', '.join(_hashed(frame, key))}) AS hash")
    hashes = few.few_records(hashed, task.scratch)
    if hashes is None:
        hashes = hashed.toArrow()
    if len(np.unique(hashes["hash"].to_numpy())) == len(hashes):
        return None
    counted = frame.groupBy(*names).agg(expr(f"count(*) AS {_RECORDS}"))
    repeated = counted.where(f"{_RECORDS} > 1").orderBy(*names)
    examples = repeated.limit(_EXAMPLES).collect()
    if not examples:
        return None
    places = _places(spark, repeated.limit(_EXAMPLES).drop(_RECORDS), task, keyed)
    told = [_told(key, row, places.get(repr(row[:-1]), [])) for row in examples]
    number = repeated.count()
    more = f" and {number - len(told)} more" if number > len(told) else ""
    first = next(iter(places.values()), [])
    return IngestError(
        f"{count(number, 'primary key')} of '{task.source_name}' {'has' if number == 1 else 'have'}"
        f" more than one record: {', '.join(told)}{more}",
        code="E0460",
        location=first[1] if len(first) > 1 else Location(task.source_name),
        notes=("a snapshot is the whole current state, in which a key has one record",),
        help="correct the data or `merge.primaryKey`; `ingest.duplicateKeys: "
        f"{{{task.dataset}: last}}` in odfbuild.yaml takes the last record of a key, `warn` "
        "commits all of them",
        dataset=task.dataset,
    )


def _hashed(frame: DataFrame, key: Sequence[str]) -> list[str]:
    """SQL for the values of keys such that equal ones have one form: -0.0 is 0.0."""
    floats = {f.name for f in frame.schema.fields if f.dataType.typeName() in ("float", "double")}
    return [f"{quote(name)} + 0" if name in floats else quote(name) for name in key]


def _places(
    spark: SparkSession,
    keys: DataFrame,
    task: IngestTask,
    keyed: Callable[[DataFrame], DataFrame],
) -> dict[str, list[Location]]:
    """Where the records of some keys stand in the file; nothing where a query hides that."""
    names = [quote(name) for name in keys.columns]
    with one_part(spark):
        found = read_source(spark, task, BadRecords(task), numbered=True)
        if found is None or ROW not in found[0].columns:
            return {}
        frame, source = found
        rows = only(keyed(frame), keys, keys.columns).selectExpr(*names, ROW).orderBy(ROW).collect()
    where = places_of({row[ROW] for row in rows}, task, source)
    places: dict[str, list[Location]] = {}
    for row in rows:
        places.setdefault(repr(row[:-1]), []).append(where[row[ROW]])
    return places


def _told(key: Sequence[str], row: Sequence[Any], places: Sequence[Location]) -> str:
    values = ("NULL" if value is None else shown(str(value)) for value in row[:-1])
    named = " and ".join(f"{name} {value}" for name, value in zip(key, values, strict=True))
    if not places:
        return f"{named} ({row[-1]} records)"
    where = [f"line {each.line}" if each.line else str(each.instance) for each in places[:_PLACES]]
    return f"{named} ({', '.join(where)}{', …' if len(places) > _PLACES else ''})"
