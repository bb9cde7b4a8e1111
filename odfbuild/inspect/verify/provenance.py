"""Provenance of records, step by step down to the roots.

Chains tell which blocks a step read, and the engine which records of them a record was made of,
when it recomputes the step. Nothing is kept for it, and nothing changes. Source: Open Data Fabric,
"Provenance", "Derive Provenance".
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.displayed import Displayed
from odfbuild.engine.contract import (
    Engine,
    Origin,
    Provenance,
    ProvenanceTask,
)
from odfbuild.engine.personal import plain_files, scope_of
from odfbuild.engine.request import StepInput, as_limited, transform_task
from odfbuild.errors import IntegrityError, PlanError
from odfbuild.inspect.verify.replay import Histories, Replay, plan_replay
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.chain.step import Link
from odfbuild.odf.model import (
    AddData,
    AddPushSource,
    DataSlice,
    ExecuteTransform,
    SetPollingSource,
    SourceState,
)
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.schema.arrow_schema import schema_of
from odfbuild.odf.timestamp import Timestamp
from odfbuild.odf.vocabulary import Vocabulary, vocabulary_of
from odfbuild.records.personal.shown import shown_of
from odfbuild.records.ranges import Ranges, offsets_of, overlap_of, size_of, union_of
from odfbuild.sql.lineage import Influence, Lineage, Origins
from odfbuild.sql.mode import Mode
from odfbuild.store.committed import Committed
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.workspace import Workspace

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockRecords:
    """Records that one block brought.

    `query` is the number of the block with the query that made them, and `mode` how; or `source` is
    what they were read from, as far as the chain says, and `state` how far it was read then.
    """

    block: Multihash
    sequence_number: int
    system_time: Timestamp
    records: Ranges
    query: int | None = None
    mode: Mode | None = None
    source: str | None = None
    state: SourceState | None = None


@dataclass(frozen=True, slots=True, order=True)
class ColumnSource:
    """A column of a dataset, and how it matters to another one."""

    dataset: str
    column: str
    how: Influence


@dataclass(frozen=True, slots=True)
class TracedColumns:
    """What columns are made of (where-provenance), and what decides which records there are.

    `made_of` has the columns in the order of the result; those of constants have no sources.
    """

    made_of: Mapping[str, tuple[ColumnSource, ...]]
    decided_by: tuple[ColumnSource, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedRecords(Displayed):
    """Records of a dataset, and the records of its inputs that they come from.

    `whole`: why these are all records that were read, and not those that were needed. `sample` are
    the first few of the records, with the system columns, which `vocab` names. `before`: a record
    among them takes another one back, and `inputs` tell what that one came from. `untold`: why the
    steps cannot be recomputed here. `columns` is there if it was asked for and can be told: of all
    columns at the top, and below of those that the ones above are made of.
    """

    dataset: str
    records: Ranges
    pieces: tuple[BlockRecords, ...] = ()
    sample: pa.Table | None = None
    vocab: Vocabulary = field(default_factory=Vocabulary)
    whole: str | None = None
    before: bool = False
    inputs: tuple[TracedRecords, ...] = ()
    untold: str | None = None
    columns: TracedColumns | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """How far to go: to the direct inputs or down to the roots, with how many records shown.

    `columns`: tell of columns, too.
    """

    recursive: bool = False
    shown: int = 5
    columns: bool = False


def provenance(
    workspace: Workspace,
    name: str,
    offsets: Sequence[int],
    get_engine: Callable[[], Engine],
    scratch: Path,
    extent: Extent = Extent(),
) -> list[TracedRecords]:
    """Where the records of a dataset at `offsets` come from, each for itself.

    `get_engine` is called only for what is derived. `PlanError` E0660 for an offset at which there
    is no record.
    """
    tracer = _Tracer(workspace, get_engine, scratch, extent)
    return tracer.each(name, offsets)


@dataclass(frozen=True, slots=True)
class _Slice:
    """A slice of a chain with the records of it that are asked for."""

    piece: BlockRecords
    data: DataSlice
    link: Link


@dataclass(slots=True)
class _Found:
    """What records come from, by dataset."""

    records: dict[str, list[Ranges]] = field(default_factory=dict)
    whole: dict[str, str] = field(default_factory=dict)
    before: bool = False
    columns: dict[str, set[ColumnSource]] | None = None
    decided_by: set[ColumnSource] = field(default_factory=set)

    def add(self, other: _Found) -> None:
        """Take over what other records come from."""
        for alias, pieces in other.records.items():
            self.records.setdefault(alias, []).extend(pieces)
        self.whole.update(other.whole)
        self.before |= other.before
        if other.columns is not None:
            self.columns = self.columns or {}
            for name, sources in other.columns.items():
                self.columns.setdefault(name, set()).update(sources)
        self.decided_by |= other.decided_by

    def traced(self, wanted: frozenset[str] | None) -> TracedColumns | None:
        """The sources of the columns that are `wanted`, or of all."""
        if self.columns is None:
            return None
        return TracedColumns(
            {
                name: tuple(sorted(sources))
                for name, sources in self.columns.items()
                if wanted is None or name in wanted
            },
            tuple(sorted(self.decided_by)),
        )


class _Tracer:
    def __init__(
        self,
        workspace: Workspace,
        get_engine: Callable[[], Engine],
        scratch: Path,
        extent: Extent,
    ) -> None:
        self._workspace = workspace
        self._histories = Histories(workspace)
        self._engine = get_engine
        self._scratch = scratch
        self._extent = extent

    def each(self, name: str, offsets: Sequence[int]) -> list[TracedRecords]:
        """A tree for each record; one run of the engine tells of all that a step made."""
        wanted = [((offset, offset),) for offset in sorted(set(offsets))]
        slices = self._slices(name, union_of(wanted))
        known = union_of([each.piece.records for each in slices])
        if size_of(known) < len(wanted):
            missing = next(r[0][0] for r in wanted if not overlap_of(known, r))
            raise PlanError(
                f"'{name}' has no record {missing}",
                code="E0660",
                dataset=name,
                help=f"`odfbuild tail {name}` shows the newest records with their offsets",
            )
        trees = []
        for one in slices:
            asked = [r for r in wanted if overlap_of(one.piece.records, r)]
            for ranges, found in zip(asked, self._origins(name, one, asked), strict=True):
                alone = replace(one, piece=replace(one.piece, records=ranges))
                trees.append(self._tree(name, [alone], ranges, None, found, None))
        return trees

    def _all(
        self, name: str, ranges: Ranges, whole: str | None, columns: frozenset[str]
    ) -> TracedRecords:
        """One tree for some records together, down to the roots if that is asked for."""
        slices = self._slices(name, ranges)
        if not self._extent.recursive:
            return self._tree(name, slices, ranges, whole, _Found(), columns)
        merged = _Found()
        for one in slices:
            if whole is None:
                [found] = self._origins(name, one, [one.piece.records])
            else:
                found = self._all_read(name, one, whole)
            if isinstance(found, str):
                return self._tree(name, slices, ranges, whole, found, columns)
            merged.add(found)
        return self._tree(name, slices, ranges, whole, merged, columns)

    def _tree(
        self,
        name: str,
        slices: Sequence[_Slice],
        ranges: Ranges,
        whole: str | None,
        found: _Found | str,
        columns: frozenset[str] | None,
    ) -> TracedRecords:
        inputs: tuple[TracedRecords, ...] = ()
        told = found.traced(columns) if isinstance(found, _Found) else None
        if isinstance(found, _Found):
            inputs = tuple(
                self._all(alias, union_of(pieces), found.whole.get(alias), _read_of(alias, told))
                for alias, pieces in sorted(found.records.items())
            )
        return TracedRecords(
            dataset=name,
            records=ranges,
            pieces=tuple(each.piece for each in slices),
            sample=self._sample(name, slices),
            vocab=self._vocab(name, slices),
            whole=whole,
            before=isinstance(found, _Found) and found.before,
            inputs=inputs,
            untold=found if isinstance(found, str) else None,
            columns=told,
        )

    # --- What chains tell ---

    def _vocab(self, name: str, slices: Sequence[_Slice]) -> Vocabulary:
        """The names of system columns in the last of some slices."""
        if not slices:
            return Vocabulary()
        return vocabulary_of(self._histories.of(name).state(slices[-1].piece.block).vocab)

    def _slices(self, name: str, ranges: Ranges) -> list[_Slice]:
        history = self._histories.of(name)
        found = []
        for hash, block in history.links:
            event = block.event
            if not isinstance(event, AddData | ExecuteTransform) or event.new_data is None:
                continue
            interval = event.new_data.offset_interval
            records = overlap_of(ranges, ((interval.start, interval.end),))
            if not records:
                continue
            state = history.state(hash)
            read = isinstance(event, AddData)
            piece = BlockRecords(
                block=hash,
                sequence_number=block.sequence_number,
                system_time=block.system_time,
                records=records,
                query=None if read else state.transform_sequence_number,
                source=_source(state.polling_source, state.push_sources) if read else None,
                state=event.new_source_state if isinstance(event, AddData) else None,
            )
            found.append(_Slice(piece, event.new_data, (hash, block)))
        return found

    def _replay(self, name: str, one: _Slice) -> Replay | IntegrityError | None:
        return plan_replay(name, self._histories.of(name), one.link, self._histories.source)

    def _all_read(self, name: str, one: _Slice, why: str) -> _Found | str:
        """All that a step may have used of its inputs."""
        replay = self._replay(name, one)
        if isinstance(replay, IntegrityError):
            return replay.message
        found = _Found()
        if replay is not None and self._extent.columns:
            _add_columns(found, replay, self._ask(name, one, replay, ()).lineage)
        for each in replay.inputs if replay is not None else ():
            ranges = _read(each, Mode.CHANGELOG)
            if ranges:
                found.records[each.store.name] = [ranges]
                found.whole[each.store.name] = why
        return found

    # --- What the engine tells ---

    def _origins(self, name: str, one: _Slice, asked: Sequence[Ranges]) -> Sequence[_Found | str]:
        """What records of a step come from, question by question; nothing for those of a root."""
        replay = self._replay(name, one)
        if replay is None:
            return [_Found() for _ in asked]
        if isinstance(replay, IntegrityError):
            return [replay.message for _ in asked]
        told = self._ask(name, one, replay, asked)
        return [_by_dataset(replay, origin, told) for origin in told.origins]

    def _ask(self, name: str, one: _Slice, replay: Replay, asked: Sequence[Ranges]) -> Provenance:
        store = self._workspace.dataset(name)
        before = replay.before
        if before.schema is None:
            raise AssertionError("a step with records has a schema")
        scratch = Path(tempfile.mkdtemp(dir=self._scratch))
        inputs = as_limited(store, replay.recorded, replay.inputs)
        step = transform_task(name, before, inputs, scratch, Committed(store, before.head))
        return self._engine().run(
            ProvenanceTask(
                step=step,
                file=_plain(store, before, one, scratch),
                schema=schema_of(before.schema),
                asked=tuple(asked),
                columns=self._extent.columns,
            )
        )

    # --- Records ---

    def _sample(self, name: str, slices: Sequence[_Slice]) -> pa.Table | None:
        """The first few of the records, with their values."""
        import pyarrow as pa
        import pyarrow.compute as pc
        import pyarrow.parquet as pq

        store = self._workspace.dataset(name)
        state = self._histories.of(name)
        tables = []
        missing = self._extent.shown
        for one in slices:
            if missing <= 0:
                break
            vocab = vocabulary_of(state.state(one.piece.block).vocab)
            table = pq.read_table(store.bring("data", one.data.physical_hash))
            shown = shown_of(store, state.state(one.piece.block).dataset_id, "people")
            if shown is not None:
                batches = map(shown.convert, table.to_batches())
                table = pa.Table.from_batches(batches, shown.schema(table.schema))
            offsets = table[vocab.offset].cast(pa.int64())
            first = list(islice(offsets_of(one.piece.records), missing))
            table = table.filter(pc.is_in(offsets, pa.array(first, pa.int64())))
            missing -= table.num_rows
            tables.append(table)
        return pa.concat_tables(tables, promote_options="permissive") if tables else None


def _plain(store: DatasetStore, before: Projection, one: _Slice, scratch: Path) -> Path:
    """The file of a slice as the engine compares it with what it computes."""
    file, scope = store.bring("data", one.data.physical_hash), scope_of(store, before)
    if scope is None:
        return file
    return plain_files(lambda: (file,), store, scope, scratch)()[0]


def _source(polling: SetPollingSource | None, push: Mapping[str, AddPushSource]) -> str | None:
    """What a root reads, in a word or two."""
    if polling is not None:
        fetch = polling.fetch
        return next(
            (
                str(getattr(fetch, name))
                for name in ("path", "url", "image")
                if hasattr(fetch, name)
            ),
            fetch.KIND,
        )
    return f"push source '{next(iter(push))}'" if len(push) == 1 else None


def _read_of(dataset: str, columns: TracedColumns | None) -> frozenset[str]:
    """The columns of a dataset that others are made of."""
    sources = [
        each for made_of in (columns.made_of if columns else {}).values() for each in made_of
    ]
    return frozenset(each.column for each in sources if each.dataset == dataset)


def _add_columns(found: _Found, replay: Replay, lineage: Lineage | None) -> None:
    """What the engine tells of columns, by the names of datasets."""
    if lineage is None:
        return
    names = {each.alias: each.store.name for each in replay.inputs}

    def sources(origins: Origins) -> set[ColumnSource]:
        return {ColumnSource(names[alias], column, how) for alias, column, how in origins}

    found.columns = {name: sources(origins) for name, origins in lineage.columns.items()}
    found.decided_by = sources(lineage.records)


def _by_dataset(replay: Replay, origin: Origin, told: Provenance) -> _Found:
    mode = told.choice.mode
    found = _Found(before=origin.before)
    _add_columns(found, replay, told.lineage)
    for each in replay.inputs:
        name = each.store.name
        if each.alias in origin.records:
            found.records.setdefault(name, []).append(origin.records[each.alias])
        ranges = _read(each, mode) if each.alias in origin.whole else ()
        if ranges:
            found.records.setdefault(name, []).append(ranges)
            found.whole[name] = origin.whole[each.alias]
    return found


def _read(each: StepInput, mode: Mode) -> Ranges:
    """The records that a step in this mode may have used of an input."""
    step = each.step
    new = step.offset_interval
    if mode is Mode.MAP:
        return ((new.start, new.end),) if new else ()
    last = step.prev_offset if step.new_offset is None else step.new_offset
    return () if last is None else ((0, last),)
