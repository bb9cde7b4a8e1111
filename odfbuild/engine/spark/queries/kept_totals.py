"""What a step changes in a result that follows from totals of groups, which are kept.

The totals of the new records, and of those that are retracted, are put together with the kept ones
of the same groups. Then what the query makes of totals is computed twice, over these groups as they
were and as they are. Where nothing is kept, a step over all records computes the totals of all
groups first, and keeps them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from odfbuild.engine.affected_records import affected, records_of
from odfbuild.engine.contract import Extent, InputSlices, TransformTask
from odfbuild.engine.precision import Micros
from odfbuild.engine.spark.internals.catalyst import Catalyst
from odfbuild.engine.spark.internals.node import Node
from odfbuild.engine.spark.queries.added import cut
from odfbuild.engine.spark.queries.inputs import (
    changes,
    has_operations,
    only_new,
    takes_too_much,
)
from odfbuild.engine.spark.queries.modes import changelog
from odfbuild.engine.spark.queries.modes.choose import key_of
from odfbuild.engine.spark.queries.step import steps_of, tuned
from odfbuild.engine.spark.queries.totals import BEFORE, NEW, TAKEN, UNSURE, Totals, plain
from odfbuild.engine.spark.queries.validate import result_of
from odfbuild.engine.spark.results import small_jobs as few
from odfbuild.engine.spark.results.executor import write_parts
from odfbuild.engine.spark.results.order import committed_form
from odfbuild.records.kept_groups import KeptGroups
from odfbuild.records.key_hash import comparable_type
from odfbuild.sql.increments.kept_totals import (
    aggregation_in,
    kept_totals_of,
)
from odfbuild.sql.increments.one_by_one import Additions
from odfbuild.sql.increments.parts import KeyColumn, Parts, Reading, most_affected
from odfbuild.sql.increments.plan_inputs import Views
from odfbuild.store.side_cars import by_key_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def kept_totals(
    spark: SparkSession, task: TransformTask, query: Node, views: Views
) -> KeptTotals | None:
    """The totals that the result of an analysed `query` follows from, if it does.

    `None` also where none can be kept.
    """
    catalyst = Catalyst(spark)
    plan = plain(catalyst, query)
    grouped = aggregation_in(plan)
    if grouped is None or task.transform.temporal_tables:
        return None
    totals = Totals(spark, grouped)
    groups = _kept_groups(task, totals.keys)
    if groups is None:
        return None
    additions = kept_totals_of(catalyst, plan, views, catalyst.optimised)
    if additions is None:
        return None
    return KeptTotals(spark, task, additions, views, totals, groups)


class KeptTotals:
    """The totals of a step's query, and what is kept of them: `groups`."""

    def __init__(
        self,
        spark: SparkSession,
        task: TransformTask,
        additions: Additions,
        views: Views,
        totals: Totals,
        groups: KeptGroups,
    ) -> None:
        self._spark = spark
        self._task = task
        self._additions = additions
        self._views = views
        self._totals = totals
        self._groups = groups
        self._changed: Sequence[Path] = ()

    @property
    def are_held(self) -> bool:
        """Whether the totals over all earlier records are kept."""
        return self._groups.are_held

    def changes(self, micros: Micros) -> tuple[tuple[Path, ...] | None, Extent]:
        """What to append, and how many records that takes; `None` where totals do not tell it.

        They do not where the least or the greatest value of a group is retracted, and where more
        of a record is retracted than there is.
        """
        task, spark = self._task, self._spark
        beside, read = cut(Catalyst(spark), self._additions, self._views, task)
        for alias in beside:
            changelog.history_view(spark, beside[alias], task.scratch)
        retracting = [each for each in task.inputs if has_operations(each.files, each.vocab)]
        looked_at = self._looked_at(retracting) if retracting else 0
        total = records_of(task.inputs)
        extent = Extent(min(total, read + (looked_at or 0)), total)
        if looked_at is None:
            return None, extent
        sides: dict[int, tuple[Path, ...]] = {}
        for side in (NEW, TAKEN) if retracting else (NEW,):
            query, sides[side] = self._of_side(side, beside)
        self._changed = [file for files in sides.values() for file in files]
        changed = [pq.read_table(file) for file in self._changed]
        before = task.scratch / "groups-before.parquet"
        kept = self._groups.like(changed)
        pq.write_table(
            kept, before, compression="snappy", use_dictionary=False, write_statistics=False
        )
        sides[BEFORE] = (before,)
        few.tune(spark, [file for files in sides.values() for file in files])
        after = write_parts(self._totals.put_together(sides), task.scratch / "groups-after")
        groups = [pq.read_table(file) for file in after]
        if any(True in each[UNSURE].to_pylist() for each in groups):
            return None, extent
        results = (
            committed_form(self._totals.result(query, self._totals.read(files)), micros)
            for files in (after, (before,))
        )
        found = changelog.write_changes(changelog.difference(*results), task, key_of(query))
        self._groups.keep([each.drop_columns([UNSURE]) for each in groups], _new(task))
        return found, extent

    def _looked_at(self, retracting: Sequence[InputSlices]) -> int | None:
        """How many records may equal new ones; `None` where some retracted ones are not there.

        Or where nobody knows.
        """
        spaces = []
        for each in retracting:
            system = (each.vocab.offset, each.vocab.operation_type, each.vocab.system_time)
            names = [name for name in each.schema.names if name not in system]
            kinds = {name: each.schema.field(name).type for name in names}
            plain = [KeyColumn(n) for n in names if comparable_type(kinds[n]) is not None]
            spaces.append((Reading(each.alias, tuple(plain)),))
        folder = self._task.scratch / "taken"
        folder.mkdir()
        found = affected(retracting, Parts(tuple(spaces)), folder)
        if found is None:
            return None
        few.tune(self._spark, [file for each in found.after for file in each.all_files()])
        if any(takes_too_much(self._spark, each, each.all_files()) for each in found.after):
            return None
        return found.extent.records

    def keep_changed(self, query: Node) -> None:
        """Keep the totals of the groups that `changes` was not sure of.

        `query` stands over all records of these.
        """
        if not self._changed:
            return
        groups = self._totals.grouped(query)
        frame = self._totals.of_keys(self._totals.read(self._changed), groups)
        files = write_parts(frame, self._task.scratch / "groups-changed")
        if self._totals.are_exact(self._totals.read(files)):
            self._groups.keep([pq.read_table(file) for file in files], _new(self._task))

    def of_all(self, query: Node) -> DataFrame | None:
        """The result of `query` over all records; keeps the totals. `None` where it needs more."""
        task = self._task
        frame = self._totals.grouped(query)
        tuned(frame, task)
        files = write_parts(frame, task.scratch / "groups")
        groups = self._totals.read(files)
        if not self._totals.are_exact(groups):
            return None
        count = sum(pq.read_metadata(file).num_rows for file in files)
        is_small = count <= most_affected(records_of(task.inputs))
        # From then on a record that comes is one more.
        if is_small and not any(takes_too_much(self._spark, e, e.all_files()) for e in task.inputs):
            tables = [pq.read_table(file) for file in files]
            self._groups.keep(tables, [*_earlier(task), *_new(task)], instead=True)
        return self._totals.result(query, groups)

    def _of_side(
        self, side: int, beside: Mapping[str, InputSlices]
    ) -> tuple[Node, tuple[Path, ...]]:
        """The query, over the new records of one side, and the totals of these."""
        task = self._task
        for each in task.inputs:
            if each.alias not in beside:
                frame = changes(self._spark, each, taken=side == TAKEN)
                Catalyst(self._spark).show(frame, each.alias)
        query, _ = result_of(self._spark, steps_of(task.transform))
        frame = self._totals.grouped(query)
        read = tuple(beside.get(each.alias, each) for each in task.inputs)
        tuned(frame, replace(task, inputs=read))
        return query, write_parts(frame, task.scratch / f"groups-{side}")


def _kept_groups(task: TransformTask, keys: Sequence[str]) -> KeptGroups | None:
    """What is kept of the totals; `None` where slices do not tell what a step has read."""
    names = _earlier(task)
    is_told = names.isdisjoint(_new(task)) and all(map(only_new, task.inputs))
    if task.copies.side_cars is None or not is_told:
        return None
    inputs = [(each.alias, str(each.schema.remove_metadata())) for each in task.inputs]
    query = repr(([each.sql for each in steps_of(task.transform)], inputs))
    name = "totals " + hashlib.sha256(query.encode()).hexdigest()
    return KeptGroups(by_key_folder(task.copies.side_cars, name), name, keys, names)


def _earlier(task: TransformTask) -> frozenset[str]:
    """Names of the slices before the new ones."""
    return frozenset(f"{each.alias}/{e.path.name}" for each in task.inputs for e in each.earlier())


def _new(task: TransformTask) -> tuple[str, ...]:
    return tuple(f"{each.alias}/{e.path.name}" for each in task.inputs for e in each.slices)
