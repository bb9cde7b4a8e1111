"""What a step changes in a result that follows from totals of groups, which are kept.

The totals of the rows that come, and of those that go, are put together with the kept ones of the
same groups. These rows are made of new records and of those that are retracted, or of the records
of affected keys as they are and as they were: rows that are among both change no total. Then what
the query makes of totals is computed twice, over the changed groups (or all, if it takes all into
account) as they were and as they are. Where nothing is kept, a step over all records computes the
totals of all groups first, and keeps them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from odfbuild.engine.affected_records import affected, records_of
from odfbuild.engine.contract import Extent, InputSlices, TransformTask
from odfbuild.engine.precision import Micros
from odfbuild.engine.spark.internals.catalyst import Catalyst
from odfbuild.engine.spark.internals.node import Node
from odfbuild.engine.spark.queries.added import cut
from odfbuild.engine.spark.queries.inputs import (
    changes,
    empty_view,
    has_operations,
    only_new,
    takes_too_much,
)
from odfbuild.engine.spark.queries.modes import changelog
from odfbuild.engine.spark.queries.modes.choose import key_of
from odfbuild.engine.spark.queries.step import history_views, steps_of, tuned
from odfbuild.engine.spark.queries.totals import BEFORE, NEW, TAKEN, UNSURE, Totals, plain, result
from odfbuild.engine.spark.queries.validate import result_of
from odfbuild.engine.spark.results import small_jobs as few
from odfbuild.engine.spark.results.executor import write_parts
from odfbuild.engine.spark.results.order import committed_form
from odfbuild.engine.unread_corrections import Unread
from odfbuild.records.kept_groups import KeptGroups
from odfbuild.records.key_hash import comparable_type
from odfbuild.sql.increments.kept_totals import KeptLevels, Level, kept_totals_of
from odfbuild.sql.increments.parts import KeyColumn, Parts, Reading, most_affected
from odfbuild.sql.increments.plan_inputs import Views
from odfbuild.store.side_cars import by_key_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def kept_totals(
    spark: SparkSession,
    task: TransformTask,
    given: TransformTask,
    query: Node,
    views: Views,
    unread: Mapping[str, Unread],
) -> KeptTotals | None:
    """The totals that the result of an analysed `query` follows from, if it does.

    `given` is the task with the new records that bring nothing to the query, and what is `unread`
    of the others. `None` also where no totals can be kept.
    """
    catalyst = Catalyst(spark)
    if task.transform.temporal_tables or not _is_told(given):
        return None
    kept = kept_totals_of(catalyst, plain(catalyst, query), views, catalyst.optimised)
    return None if kept is None else KeptTotals(spark, task, given, kept, views, unread)


class _Level:
    """A level of a step's query: its totals, and what is kept of them in `groups`."""

    def __init__(self, spark: SparkSession, given: TransformTask, level: Level) -> None:
        self.level = level
        assert isinstance(level.grouped, Node), "found in a plan of Spark"
        self.totals = Totals(spark, level.grouped, level.paths)
        self.groups = _kept_groups(given, level, self.totals.keys)
        self.changed: Sequence[Path] = ()
        """Totals of the groups that a step changes."""


class KeptTotals:
    """The totals of the levels of a step's query."""

    def __init__(
        self,
        spark: SparkSession,
        task: TransformTask,
        given: TransformTask,
        kept: KeptLevels,
        views: Views,
        unread: Mapping[str, Unread],
    ) -> None:
        self._spark = spark
        self._task = task
        self._given = given
        self._kept = kept
        self._views = views
        self._unread = unread
        self._catalyst = Catalyst(spark)
        self._levels = [_Level(spark, given, each) for each in kept.levels]

    @property
    def are_held(self) -> bool:
        """Whether the totals over all earlier records are kept."""
        return all(each.groups.are_held for each in self._levels)

    def changes(self, micros: Micros) -> tuple[tuple[Path, ...], Extent] | None:
        """What to append, and how many records that takes; `None` where totals do not tell it.

        They do not where the least or the greatest value of a group goes, where more of a record is
        retracted than there is, and where many keys are affected.
        """
        task, total = self._task, records_of(self._task.inputs)
        read, before, after = 0, [], []
        for number, each in enumerate(self._levels):
            folder = task.scratch / f"level-{number}"
            folder.mkdir()
            sides_of = self._of_parts if each.level.additions is None else self._of_new
            found = sides_of(each, folder)
            if found is None:
                return None
            query, sides, records = found
            read += records
            groups = self._put_together(each, sides, folder)
            if groups is None:
                return None
            before.append(groups[0])
            after.append(groups[1])
        if self._kept.of_all or self._kept.reads_more:
            query = self._query_above()
        static = [each for each in task.inputs if each.first is None and self._kept.reads_more]
        files = [file for groups in (*before, *after) for file in groups]
        few.tune(self._spark, [*files, *(file for each in static for file in each.all_files())])
        results = (
            committed_form(self._result(query, groups), micros) for groups in (after, before)
        )
        frame = changelog.difference(*results)
        made = changelog.write_changes(frame, task, key_of(query))
        for each in self._levels:
            self._keep(each, each.changed)
        return made, Extent(min(total, read + records_of(static)), total)

    def _put_together(
        self, each: _Level, sides: dict[int, tuple[Path, ...]], folder: Path
    ) -> tuple[Sequence[Path], Sequence[Path]] | None:
        """The totals of groups before and after; `None` where `sides` do not tell them."""
        each.changed = [file for files in sides.values() for file in files]
        kept = each.groups.like([pq.read_table(file) for file in each.changed])
        sides[BEFORE] = before = (_written(kept, folder / "before.parquet"),)
        few.tune(self._spark, [file for files in sides.values() for file in files])
        after = write_parts(each.totals.put_together(sides), folder / "after")
        groups = [pq.read_table(file) for file in after]
        if any(True in table[UNSURE].to_pylist() for table in groups):
            return None
        each.changed = after
        if not self._kept.of_all:
            return before, after
        groups = [table.drop_columns([UNSURE]) for table in groups]
        return (
            (_written(each.groups.all(), folder / "all-before.parquet"),),
            (_written(each.groups.all(groups), folder / "all-after.parquet"),),
        )

    def _keep(self, each: _Level, files: Sequence[Path]) -> None:
        """Keep the totals in files in place of earlier ones of the same groups."""
        names = each.totals.columns
        each.groups.keep([pq.read_table(file, columns=names) for file in files], _new(self._given))

    def _query_above(self) -> Node:
        """The query, over the whole of inputs without new records, and nothing of the others."""
        for each in self._task.inputs:
            if each.first is None:
                changelog.history_view(self._spark, each, self._task.scratch)
            else:
                empty_view(self._spark, each)
        return result_of(self._spark, steps_of(self._task.transform))[0]

    def _result(self, query: Node, groups: Sequence[Sequence[Path]]) -> DataFrame:
        """What a query makes of the totals of each level, in files."""
        plan = plain(self._catalyst, query)
        instead: dict[tuple[int, ...], Node] = {}
        for each, files in zip(self._levels, groups, strict=True):
            instead |= each.totals.instead(plan, each.totals.read(files))
        return result(self._spark, plan, instead)

    def _of_parts(self, each: _Level, folder: Path) -> Sides | None:
        """The totals of the rows of affected keys, as they were and as they are."""
        assert each.level.parts is not None
        copies = folder / "affected"
        copies.mkdir()
        records = affected(self._task.inputs, each.level.parts, copies, self._unread)
        if records is None:
            return None
        few.tune(self._spark, {file for one in records.after for file in one.all_files()})
        sides: dict[int, tuple[Path, ...]] = {}
        for side, inputs in ((TAKEN, records.before), (NEW, records.after)):
            step = replace(self._task, inputs=inputs, scratch=folder)
            history_views(self._spark, step, folder)
            query, sides[side] = self._totals_of(each, step, folder / f"side-{side}")
        return query, sides, records.extent.records

    def _of_new(self, each: _Level, folder: Path) -> Sides | None:
        """The totals of rows of new records, and of retracted ones.

        `None` where some retracted ones are not there, or nobody knows.
        """
        task, spark = self._task, self._spark
        assert each.level.additions is not None
        beside, read = cut(self._catalyst, each.level.additions, self._views, task, folder)
        for alias in beside:
            changelog.history_view(spark, beside[alias], task.scratch)
        retracting = [one for one in task.inputs if has_operations(one.files, one.vocab)]
        looked_at = self._looked_at(retracting, folder) if retracting else 0
        if looked_at is None:
            return None
        step = replace(task, inputs=tuple(beside.get(one.alias, one) for one in task.inputs))
        sides: dict[int, tuple[Path, ...]] = {}
        for side in (NEW, TAKEN) if retracting else (NEW,):
            for one in task.inputs:
                if one.alias not in beside:
                    frame = changes(spark, one, taken=side == TAKEN)
                    self._catalyst.show(frame, one.alias)
            query, sides[side] = self._totals_of(each, step, folder / f"side-{side}")
        return query, sides, read + looked_at

    def _totals_of(
        self, each: _Level, step: TransformTask, folder: Path
    ) -> tuple[Node, tuple[Path, ...]]:
        """The query over the views, and the totals of a level in files."""
        query, _ = result_of(self._spark, steps_of(step.transform))
        frame = each.totals.grouped(plain(self._catalyst, query))
        tuned(frame, step)
        return query, write_parts(frame, folder)

    def _looked_at(self, retracting: Sequence[InputSlices], folder: Path) -> int | None:
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
        copies = folder / "taken"
        copies.mkdir()
        found = affected(retracting, Parts(tuple(spaces)), copies)
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
        if not all(each.changed for each in self._levels):
            return
        plan = plain(self._catalyst, query)
        for number, each in enumerate(self._levels):
            groups = each.totals.grouped(plan)
            frame = each.totals.of_keys(each.totals.read(each.changed), groups)
            files = write_parts(frame, self._task.scratch / f"groups-changed-{number}")
            if each.totals.are_exact(each.totals.read(files)):
                self._keep(each, files)

    def of_all(self, query: Node) -> DataFrame | None:
        """The result of `query` over all records; keeps the totals. `None` where it needs more."""
        task, plan = self._task, plain(self._catalyst, query)
        made: list[tuple[Path, ...]] = []
        for number, each in enumerate(self._levels):
            frame = each.totals.grouped(plan)
            tuned(frame, task)
            made.append(write_parts(frame, task.scratch / f"groups-{number}"))
            if not each.totals.are_exact(each.totals.read(made[-1])):
                return None
        records = records_of(task.inputs)
        count = sum(pq.read_metadata(file).num_rows for files in made for file in files)
        if count <= most_affected(records) and not self._may_take_too_much():
            slices = [*_earlier(self._given), *_new(self._given)]
            for each, files in zip(self._levels, made, strict=True):
                each.groups.keep([pq.read_table(file) for file in files], slices, instead=True)
        return self._result(query, made)

    def _may_take_too_much(self) -> bool:
        """Whether a new record may count as nothing, where each is taken for one more."""
        if all(each.level.additions is None for each in self._levels):
            return False
        return any(takes_too_much(self._spark, e, e.all_files()) for e in self._task.inputs)


Sides = tuple[Node, dict[int, tuple[Path, ...]], int]
"""A query, the totals of each side of a step, and over how many records these are computed."""


def _is_told(given: TransformTask) -> bool:
    """Whether slices tell what a step has read, and there is room to keep totals."""
    is_told = _earlier(given).isdisjoint(_new(given)) and all(map(only_new, given.inputs))
    return is_told and given.copies.side_cars is not None


def _kept_groups(given: TransformTask, level: Level, keys: Sequence[str]) -> KeptGroups:
    assert given.copies.side_cars is not None
    inputs = [(each.alias, str(each.schema.remove_metadata())) for each in given.inputs]
    query = repr(([each.sql for each in steps_of(given.transform)], inputs, level.paths))
    name = "totals " + hashlib.sha256(query.encode()).hexdigest()
    folder = by_key_folder(given.copies.side_cars, name)
    return KeptGroups(folder, name, keys, _earlier(given))


def _written(table: pa.Table, file: Path) -> Path:
    pq.write_table(table, file, compression="snappy", use_dictionary=False, write_statistics=False)
    return file


def _earlier(task: TransformTask) -> frozenset[str]:
    """Names of the slices before the new ones."""
    return frozenset(f"{each.alias}/{e.path.name}" for each in task.inputs for e in each.earlier())


def _new(task: TransformTask) -> tuple[str, ...]:
    return tuple(f"{each.alias}/{e.path.name}" for each in task.inputs for e in each.slices)
