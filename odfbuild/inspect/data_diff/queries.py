"""What changed queries would do to records: computed in a scratch folder, committed nowhere.

A query over all records of its inputs is compared with what is committed. Where the inputs are
larger than a limit, the newest records of the largest ones are read, and the query of the chain is
computed over the same ones, so that nothing but the query differs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.engine.contract import InputSlices, SliceFile, TransformTask
from odfbuild.engine.personal import plain_input, scope_of
from odfbuild.engine.request import history_files
from odfbuild.engine.slice import dataset_schema, write_slice
from odfbuild.errors import PersonalDataError
from odfbuild.inspect.data_diff.compare import Side, compare
from odfbuild.inspect.data_diff.limit import newest, within
from odfbuild.inspect.data_diff.model import DataDiff
from odfbuild.inspect.data_diff.states import (
    committed,
    computed,
    database,
    keys_of,
    nothing_like,
)
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.model import MetadataEvent, SetTransform, SetVocab
from odfbuild.odf.schema.arrow_schema import schema_of
from odfbuild.odf.timestamp import Timestamp
from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.odf.vocabulary import vocabulary_of as vocabulary
from odfbuild.plan.model import DatasetPlan, ReasonCode
from odfbuild.records.records import records_of
from odfbuild.store.committed import files_of
from odfbuild.store.disposable import scratch_folder
from odfbuild.wording import count, named

if TYPE_CHECKING:
    import duckdb

    from odfbuild.engine.contract import Engine
    from odfbuild.odf.chain.projection import Projection
    from odfbuild.store.committed import CommittedSlice
    from odfbuild.store.workspace import Workspace
    from odfbuild.survey.survey import Survey


@dataclass(frozen=True, slots=True)
class Part:
    """The newest `records` of a dataset that is read; `slices` have all of them, oldest first."""

    workspace: Workspace
    name: str
    state: Projection
    slices: tuple[CommittedSlice, ...]
    records: int = 0

    @property
    def total(self) -> int:
        """Records that there are."""
        return 0 if self.state.last_offset is None else self.state.last_offset + 1

    @property
    def size(self) -> int:
        """Bytes of all of them."""
        return sum(each.data.size for each in self.slices)

    def as_input(self, alias: str) -> InputSlices:
        """It as the input of a step that begins with nothing; other files are not opened."""
        assert self.state.schema is not None
        first = self.total - self.records
        if first:
            read = [each for each in self.slices if each.data.offset_interval.end >= first]
            files = tuple(map(SliceFile, files_of(read)))
        else:
            files = history_files(self.workspace.dataset(self.name), self.state.head)
        return InputSlices(
            alias=alias,
            schema=schema_of(self.state.schema),
            vocab=vocabulary(self.state.vocab),
            slices=files,
            first=first if self.records else None,
            last=self.state.last_offset if self.records else None,
            watermark=self.state.watermark,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedQuery:
    """A derivative whose query changed, or is new (`before` is `None`), and what it reads.

    `chain` is the name under which its chain lies; `state` what that says. `missing` are inputs
    that have no records yet, `changing` those that change themselves.
    """

    dataset: str
    chain: str
    state: Projection | None
    before: SetTransform | None
    after: SetTransform
    vocab: Vocabulary
    inputs: Mapping[str, str | None]
    parts: Mapping[str, Part] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    changing: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether all records of all inputs are read."""
        return all(each.records == each.total for each in self.parts.values())

    @property
    def bytes(self) -> int:
        """About how much is read for it; a sample is read once for each of the two queries."""
        read = sum(e.size * e.records // (e.total or 1) for e in self.parts.values())
        return read if self.whole or self.before is None else 2 * read


def changed_queries(found: Survey, limit: int) -> tuple[ChangedQuery, ...]:
    """The changed queries of a plan, in its order, and the records that are read within `limit`."""
    workspace = found.workspace
    events = {each.name: _events(each) for each in found.plan.datasets}
    changing = {name for name, those in events.items() if _query(those) is not None}
    items = [each for each in found.plan.datasets if each.name in changing]

    @cache
    def part(name: str) -> Part | None:
        state = workspace.projection(name)
        if state is None or state.schema is None:
            return None
        return Part(workspace, name, state, workspace.committed(name, state).slices())

    queries = [_changed(found, each, events[each.name], part, changing) for each in items]
    sizes = {
        (query.dataset, name): each.size
        for query in queries
        if not query.missing
        for name, each in query.parts.items()
    }
    # A sample is read once for each of the two queries.
    read = within(sizes, limit if sum(sizes.values()) <= limit else limit // 2)
    return tuple(
        replace(
            query,
            parts={
                name: replace(
                    each, records=newest(each.total, each.size, read[query.dataset, name])
                )
                for name, each in query.parts.items()
                if (query.dataset, name) in read
            },
        )
        for query in queries
    )


def _events(item: DatasetPlan) -> Sequence[MetadataEvent]:
    """The events that a plan would append, or refuses because they break what there is."""
    if item.snapshot is not None and any(r.code is ReasonCode.BREAKING for r in item.reasons):
        return item.snapshot.metadata
    return [change.after for change in item.changes]


def _query(events: Sequence[MetadataEvent]) -> SetTransform | None:
    return next((each for each in reversed(events) if isinstance(each, SetTransform)), None)


def _changed(
    found: Survey,
    item: DatasetPlan,
    events: Sequence[MetadataEvent],
    part: Callable[[str], Part | None],
    changing: Collection[str],
) -> ChangedQuery:
    after = _query(events)
    assert after is not None, "only changed queries are looked at"
    state = found.projections.get(item.name)
    before = state.transform if state is not None and state.schema is not None else None
    vocab = next((each for each in reversed(events) if isinstance(each, SetVocab)), None)
    names = {
        str(each.dataset_ref): _chain_of(found, str(each.dataset_ref))
        for transform in (before, after)
        for each in (transform.inputs if transform is not None else ())
    }
    present = {chain: name for name, chain in found.renames.items()}
    parts = {name: there for name in names.values() if name and (there := part(name)) is not None}
    return ChangedQuery(
        dataset=item.name,
        chain=item.renamed_from or item.name,
        state=state,
        before=before,
        after=after,
        vocab=vocabulary(vocab or (state.vocab if state is not None else None)),
        inputs=names,
        parts=parts,
        missing=tuple(ref for ref, name in names.items() if name not in parts),
        changing=tuple(name for chain in parts if (name := present.get(chain, chain)) in changing),
    )


def _chain_of(found: Survey, reference: str) -> str | None:
    """The chain of what a definition or a chain calls an input."""
    if reference.startswith("did:"):
        return found.workspace.resolve(DatasetId.parse(reference))
    name = found.plan.called(reference) or reference
    return found.workspace.find(found.renames.get(name, name))


def diff_query(
    found: Survey,
    query: ChangedQuery,
    get_engine: Callable[[], Engine],
    key: Sequence[str] = (),
) -> DataDiff:
    """What a changed query does to records. Raises `QueryError`s as an apply would."""
    workspace = found.workspace
    _check_shown(workspace, query)
    state = query.state if query.state is not None and query.state.schema is not None else None
    names = ("committed", "changed query") if query.whole else ("query of the chain", "new query")
    with scratch_folder(workspace.cache, "changed") as folder, database(workspace) as connection:
        run = _Run(query, get_engine(), folder, connection)
        new = run.side("new", names[1], query.after)
        if query.before is None or state is None:
            old = nothing_like(connection, "old", "nothing", new.state)
        elif query.whole:
            records = records_of(workspace, query.chain, state)
            old = committed(connection, "old", names[0], records, records.history())
        else:
            old = run.side("old", names[0], query.before)
        keys = keys_of(found.project.config, query.dataset, state, key)
        made = compare(connection, query.dataset, old, new, keys)
    return replace(made, notes=tuple(_notes(query)))


def _check_shown(workspace: Workspace, query: ChangedQuery) -> None:
    """`PersonalDataError` E1613 where the result may have personal values that are not shown."""
    personal = workspace.personal
    if personal is None or personal.shows("people"):
        return
    read = [query.chain, *(name for name in query.inputs.values() if name is not None)]
    found = [name for name in read if personal.has(name)]
    if found:
        raise PersonalDataError(
            f"what the changed query of '{query.dataset}' gives is not shown: '{found[0]}' has "
            "personal columns",
            code="E1613",
            dataset=query.dataset,
            notes=("this machine has no keys of subjects, or may not show values",),
            help="ask on a machine with `personal: {keys: …, show: true}` in its configuration",
        )


def _notes(query: ChangedQuery) -> Iterator[str]:
    if not query.whole:
        read = ", ".join(
            f"the newest {each.records:,} of {count(each.total, 'record')} of '{each.name}'"
            for each in query.parts.values()
            if each.records < each.total
        )
        yield f"a sample: both queries were computed over {read}"
    if query.changing:
        yield f"{named(query.changing)} changed, too: it was read as it is committed"


@dataclass(frozen=True, slots=True)
class _Run:
    query: ChangedQuery
    engine: Engine
    folder: Path
    connection: duckdb.DuckDBPyConnection

    def side(self, prefix: str, name: str, transform: SetTransform) -> Side:
        """What a transformation gives, as a state."""
        query, vocab = self.query, self.query.vocab
        scratch = self.folder / prefix
        scratch.mkdir()
        result = self.engine.run(
            TransformTask(
                dataset=query.dataset,
                transform=transform.transform,
                inputs=tuple(self._inputs(transform)),
                vocab=vocab,
                scratch=scratch,
            )
        )
        assert result.schema is not None, "a query has columns"
        schema = dataset_schema(result.schema, vocab)
        staged = write_slice(
            result,
            dataset=query.dataset,
            schema=schema,
            vocab=vocab,
            first_offset=0,
            system_time=Timestamp.now(),
            target=scratch / "result.parquet",
        )
        files = [staged.path] if staged else []
        return computed(self.connection, prefix, name, files, schema, vocab)

    def _inputs(self, transform: SetTransform) -> Sequence[InputSlices]:
        found = []
        for declared in transform.inputs:
            name = self.query.inputs[str(declared.dataset_ref)]
            assert name is not None, "what lacks an input is not computed"
            part = self.query.parts[name]
            each, store = part.as_input(declared.alias or name), part.workspace.dataset(name)
            scope = scope_of(store, part.state)
            scope = scope.within(each.schema.names) if scope is not None else None
            scratch = self.folder / "read"
            found.append(each if scope is None else plain_input(each, store, scope, scratch))
        return found
