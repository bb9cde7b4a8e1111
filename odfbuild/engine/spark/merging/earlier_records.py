"""Earlier records that a merge needs: known keys, and the current state.

The one place that decides how little of the history is read. Side-cars save time only: without them
the same records come from the slices.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import pyarrow as pa

from odfbuild.engine.contract import IngestTask
from odfbuild.engine.spark.merging.changes import latest, project, unseen
from odfbuild.engine.spark.results import small_jobs as few
from odfbuild.engine.spark.results.frames import (
    more_members,
    quote,
    read_slices,
    to_arrow_type,
    to_spark_type,
)
from odfbuild.engine.spark.results.local_rows import given_back
from odfbuild.odf.model import MergeStrategyAppend, MergeStrategyLedger
from odfbuild.odf.operation import RETRACT
from odfbuild.records.key_index import KeyIndex, key_index

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FEW_RECORDS = 100_000
"""Up to so many earlier records are read from slices where all of them are needed."""
_FEW_BLOCKS = 256
"""Up to so many earlier records may be few, by the size of their files."""
SMALL_BATCH_BYTES = 64 << 20
SMALL_BATCH_ROWS = 2_000_000
"""Keys of batches up to this size are looked up one by one, in the memory of one process."""


def set_up(spark: SparkSession, tasks: Sequence[IngestTask]) -> None:
    """Set up the session of files that are read together, before anything of them is read."""
    history, files = tasks[0].history, [each.file for each in tasks]
    if not _may_read_slices(tasks[0]):
        few.tune(spark, files)
    elif history.is_short(_FEW_RECORDS, _FEW_BLOCKS):
        few.tune(spark, [*files, *history.files()])


def _may_read_slices(task: IngestTask) -> bool:
    """Whether a merge may read earlier records that its batch has no keys of, which can be many."""
    schema, merge = task.history_schema, task.merge
    if schema is None or isinstance(merge, MergeStrategyAppend):
        return False
    if not merge.LOOKS_UP or not {*merge.key} <= {*schema.names}:
        return True
    return _index(task, schema, merge.key, whole=not isinstance(merge, MergeStrategyLedger)) is None


def _index(
    task: IngestTask, schema: pa.Schema, key: Sequence[str], *, whole: bool
) -> KeyIndex | None:
    """Where keys of a batch are looked up, or `whole` records; `None`: there is no use for it."""
    if task.file.stat().st_size > SMALL_BATCH_BYTES:
        return None
    return key_index(task.history, schema, key, task.vocab.offset if whole else None)


class EarlierRecords:
    """Earlier records for the one merge that `task` asks for; `at_hand` is its batch, if read."""

    def __init__(
        self, spark: SparkSession, task: IngestTask, at_hand: pa.Table | None = None
    ) -> None:
        self._spark = spark
        self._task = task
        self._kept: list[DataFrame] = []
        self._at_hand = at_hand

    def __enter__(self) -> EarlierRecords:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give back memory."""
        for frame in self._kept:
            frame.unpersist()

    def seen_keys(self, batch: DataFrame, key: Sequence[str]) -> DataFrame | None:
        """Keys of earlier records, whatever their operation; at least those that `batch` has too.

        Columns are those of `key`, rows may repeat. `None` when no earlier record can match.
        """
        schema = self._schema(batch, key)
        if schema is None:
            return None
        if looked_up := self._look_up(batch, schema, key, whole=False):
            index, keys = looked_up
            found = index.find(keys)
            return self._spark.createDataFrame(found) if found.num_rows else None
        files = self._task.history.files()
        history = read_slices(self._spark, files, schema, self._task.vocab)
        return history.selectExpr(*map(quote, key)) if files else None

    def current_state(self, batch: DataFrame, key: Sequence[str]) -> DataFrame | None:
        """The current state: the latest record of each key, unless that is a retraction.

        Columns are those of the dataset and of `key`. `None` when there are no earlier records.
        """
        schema, task = self._schema(batch, key), self._task
        if schema is None:
            return None
        index = None
        if not task.history.is_short(_FEW_RECORDS, _FEW_BLOCKS):
            index = key_index(task.history, schema, key, task.vocab.offset)
        if index is None:
            return self._projected(task.history.files(), schema, key)
        files = index.copy(None, task.scratch / "earlier")
        if not files:
            return None
        state = read_slices(self._spark, files[:1], schema, task.vocab)
        if files[1:]:  # later ones have few records
            newer = read_slices(self._spark, files[1:], schema, task.vocab)
            newest = latest(newer, key, task.vocab)
            state = unseen(state, newest, key).unionAll(newest)
        return state.where(f"{quote(task.vocab.operation_type)} != {RETRACT}")

    def state_of(self, batch: DataFrame, key: Sequence[str]) -> DataFrame | None:
        """The current state, at least of the keys that `batch` has too; `None` if it has none."""
        schema = self._schema(batch, key)
        if schema is None:
            return None
        looked_up = self._look_up(batch, schema, key, whole=True)
        if looked_up is None:
            return self.current_state(batch, key)
        index, keys = looked_up
        return self._projected(index.copy(keys, self._task.scratch / "earlier"), schema, key)

    def at_hand(self, batch: DataFrame) -> DataFrame | None:
        """`batch` once it was read, where its few records are merged without another job."""
        looked_up = isinstance(self._task.merge, MergeStrategyLedger) and self._task.history_schema
        self._at_hand = few.few_records(batch, self._task.scratch) if looked_up else None
        if self._at_hand is None:
            return None
        return given_back(batch, self._at_hand, self._task.scratch)

    def read_once(self, batch: DataFrame) -> DataFrame:
        """`batch`, kept in memory for a second look unless it is too large for that."""
        if self._task.file.stat().st_size > SMALL_BATCH_BYTES:
            return batch
        self._kept.append(batch.persist())
        return batch

    def _schema(self, batch: DataFrame, key: Sequence[str]) -> pa.Schema | None:
        """The schema of earlier records, with what is new and null in them.

        That are columns of `key`, and members of structures that `batch` has.
        """
        schema = self._task.history_schema
        if schema is None:
            return None
        for at, field in enumerate(schema):
            if pa.types.is_struct(field.type) and field.name in batch.columns:
                kind = batch.schema[field.name].dataType
                if more_members(kind, to_spark_type(field.type), field.name):
                    schema = schema.set(at, field.with_type(to_arrow_type(kind)))
        new = [name for name in key if name not in schema.names]
        kinds = [to_arrow_type(batch.schema[name].dataType) for name in new]
        return pa.schema([*schema, *map(pa.field, new, kinds)])

    def _projected(
        self, files: Sequence[Path], schema: pa.Schema, key: Sequence[str]
    ) -> DataFrame | None:
        """The current state of the records in files, if there are any."""
        if not files:
            return None
        found = read_slices(self._spark, files, schema, self._task.vocab)
        return project(found, key, self._task.vocab)

    def _look_up(
        self, batch: DataFrame, schema: pa.Schema, key: Sequence[str], *, whole: bool
    ) -> tuple[KeyIndex, pa.Table] | None:
        """An index and the keys of `batch` to look up in it; `None`: there is no use for it."""
        index = _index(self._task, schema, key, whole=whole)
        if index is None:
            return None
        if self._at_hand is not None:
            return index, self._at_hand.select(list(key))
        # The batch is read once, for its keys and for its records.
        if self.read_once(batch).count() > SMALL_BATCH_ROWS:
            return None
        return index, batch.selectExpr(*map(quote, key)).toArrow()
