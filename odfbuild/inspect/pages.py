"""Collect the content of the data catalogue from files, chains and Git."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from odfbuild.errors import OdfbuildError, PlanError
from odfbuild.inspect.columns import Column, ColumnsFrom, SurveyedColumns
from odfbuild.inspect.samples import Sample, sample_of
from odfbuild.odf.model import (
    AddData,
    AttachmentEmbedded,
    Description,
    ExecuteTransform,
    MetadataBlock,
    SetAttachments,
    SetInfo,
    SetLicense,
    SetTransform,
)
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp
from odfbuild.plan.columns.lineages import Lineages
from odfbuild.project.git.notes import CommitInfo, last_changes
from odfbuild.project.git.repository import inside, repository
from odfbuild.project.settings.checks import checks_of
from odfbuild.project.settings.owners import owners_of
from odfbuild.project.settings.showing import Showing, ShownColumns
from odfbuild.project.tables import Table, declared_tables
from odfbuild.survey.faults import fault_of
from odfbuild.survey.runs import LastResult, runs_in
from odfbuild.survey.survey import Survey
from odfbuild.values import Value

if TYPE_CHECKING:
    from odfbuild.odf.chain.projection import Projection, QueryEra
    from odfbuild.project.model import Config, Definition

Event = TypeVar("Event", bound=Description)

Made = TypeVar("Made")

NEWEST = 20
"""So many blocks of each history are shown."""

READERS = 20
"""For so many downstream datasets the page tells which columns they use."""


class Point(Value, kw_only=True):
    """A step with records: its block, what it added, and the watermark since then."""

    block: int
    time: Timestamp
    records: int
    bytes: int
    watermark: Timestamp | None


class Query(Value, kw_only=True):
    """A transformation that was in force, and the records that it made (`None`: none)."""

    block: int
    event: SetTransform
    era: QueryEra | None


class RunOf(Value):
    """What became of a dataset in a run."""

    run: str
    result: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A dataset, as far as it is told without reading its blocks.

    What it does not have (chain, definition) is `None` or empty. `owners` are whom to ask.
    """

    name: str
    definition: Definition | None
    state: Projection | None
    inputs: tuple[str, ...]
    readers: tuple[str, ...]
    info: SetInfo | None
    columns: tuple[Column, ...]
    owners: tuple[str, ...]
    last: LastResult | None

    @property
    def template(self) -> str | None:
        """The file of the template that it is an instance of."""
        return self.definition.file if self.definition and self.definition.instance else None


class Use(Value, kw_only=True):
    """What a reader makes of the columns that it reads; the template that it is an instance of."""

    reader: str
    template: str | None
    origins: ColumnsFrom


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Entry):
    """All that is told of a dataset.

    `roots` are those that it derives from, however far. `changed` is the commit that last changed
    the file of its definition. `history` are the newest blocks, newest first; `points` and
    `queries` are in the order of the chain, `runs` newest first, `tables` are published from it.
    `shown` tells whether values of records may be shown; only then there is a `sample`. `fault` is
    why no more can be told.
    """

    roots: tuple[str, ...]
    license: SetLicense | None
    attachments: tuple[AttachmentEmbedded, ...]
    origins: ColumnsFrom | None
    used_by: tuple[Use, ...]
    checks: tuple[str, ...]
    tables: tuple[Table, ...]
    history: tuple[tuple[Multihash, MetadataBlock], ...]
    points: tuple[Point, ...]
    queries: tuple[Query, ...]
    changed: CommitInfo | None
    runs: tuple[RunOf, ...]
    shown: bool
    sample: Sample | None
    fault: OdfbuildError | None = None


class Pages:
    """Makes the pages of these datasets, each when it is asked for.

    Links lead to others of them only. Lineage is told by `lineages`.
    """

    def __init__(self, found: Survey, names: Iterable[str], lineages: Lineages) -> None:
        self.found = found
        self.names = tuple(sorted(names))
        config = found.project.config
        self.runs = runs_in(config.cache, config.branch)
        self._faults = {name: e for name, e in found.faults.items() if name in set(self.names)}
        self._columns = SurveyedColumns(found, lineages)
        self._wanted = frozenset(self.names)
        self._definitions = {each.name: each for each in found.project.definitions}
        self._changes = _changes(config)
        self._entries: dict[str, Entry] = {}
        self._results: dict[str, list[RunOf]] = {}
        for run in reversed(self.runs):
            for name, result in run.datasets.items():
                self._results.setdefault(name, []).append(RunOf(run.id, result))

    def entry(self, name: str) -> Entry:
        """What the list of datasets says of one."""
        if name not in self._entries:
            made = self._whole(name, lambda fault: Entry(**self._entry(name, fault)))
            self._entries[name] = made
        return self._entries[name]

    def of(self, name: str) -> Page:
        """The page of a dataset."""
        return self._whole(name, lambda fault: self._page(name, fault))

    @property
    def faults(self) -> tuple[OdfbuildError, ...]:
        """Why some of the datasets could not be told of, as far as that was met."""
        return tuple(self._faults.values())

    def _whole(self, name: str, make: Callable[[OdfbuildError | None], Made]) -> Made:
        """Whatever is wrong with one dataset, the others have their pages."""
        try:
            return make(None)
        except Exception as error:
            cache = self.found.project.config.cache
            fault = self._faults[name] = fault_of(cache, "looking at", name, error)
            return make(fault)

    def _entry(self, name: str, fault: OdfbuildError | None) -> dict[str, Any]:
        found = self.found
        definition = self._definitions.get(name)
        state = found.projections.get(name) if fault is None else None
        runs = self._results.get(name)
        return {
            "name": name,
            "definition": definition,
            "state": state,
            "inputs": self._linked(found.graph.inputs.get(name, ())),
            "readers": self._linked(found.graph.readers.get(name, ())),
            "info": _said(SetInfo, definition, state.info if state else None),
            "columns": self._columns.of(name) if fault is None else (),
            "owners": owners_of(found.project.config.owners, name),
            "last": LastResult.of(runs[0].run, runs[0].result) if runs else None,
        }

    def _page(self, name: str, fault: OdfbuildError | None) -> Page:
        entry = self._entry(name, fault)
        definition, state = entry["definition"], entry["state"]
        blocks = self._blocks(name, state) if state else []
        config = self.found.project.config
        checks = checks_of(config.checks, name)
        allowed = Showing(config.show).of(name)
        return Page(
            **entry,
            roots=self._linked(self.found.graph.roots(name)),
            license=_said(SetLicense, definition, state.license if state else None),
            attachments=_attachments(definition, state),
            origins=self._columns.origins(name) if fault is None else None,
            used_by=self._used_by(entry["readers"]) if fault is None else (),
            checks=tuple(str(each.check) for each in checks),
            tables=declared_tables(config, [name]),
            history=tuple(blocks[: -NEWEST - 1 : -1]),
            points=tuple(_points(blocks)),
            queries=_queries(blocks, state.eras if state else ()),
            changed=self._changes.get(definition.file) if definition else None,
            runs=tuple(self._results.get(name, ())),
            shown=allowed is not None,
            sample=self._sample(name, state, allowed),
            fault=fault or self._faults.get(name),
        )

    def _sample(
        self, name: str, state: Projection | None, allowed: ShownColumns | None
    ) -> Sample | None:
        if state is None or allowed is None:
            return None
        present = self.found.renames.get(name, name)
        return sample_of(self.found.workspace, present, state, allowed)

    def _linked(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(name for name in dict.fromkeys(names) if name in self._wanted)

    def _used_by(self, readers: Iterable[str]) -> tuple[Use, ...]:
        told = ((each, self._columns.origins(each)) for each in islice(readers, READERS))
        return tuple(
            Use(reader=name, template=self.entry(name).template, origins=origins)
            for name, origins in told
            if origins is not None
        )

    def _blocks(self, name: str, state: Projection) -> list[tuple[Multihash, MetadataBlock]]:
        """Oldest first; of older data blocks only what they say of records and watermarks."""
        store = self.found.workspace.dataset(self.found.renames.get(name, name))
        return store.summary(state.head)[0]


def _said(
    kind: type[Event], definition: Definition | None, committed: Event | None
) -> Event | None:
    """What the definition says, and else the chain."""
    events = definition.snapshot.metadata if definition else ()
    return next((event for event in events if isinstance(event, kind)), committed)


def _attachments(
    definition: Definition | None, state: Projection | None
) -> tuple[AttachmentEmbedded, ...]:
    said = _said(SetAttachments, definition, state.attachments if state else None)
    return said.attachments.items if said else ()


def _points(blocks: Iterable[tuple[Multihash, MetadataBlock]]) -> Iterator[Point]:
    watermark = None
    for _, block in blocks:
        event = block.event
        if not isinstance(event, AddData | ExecuteTransform):
            continue
        watermark = event.new_watermark or watermark
        if event.new_data is not None:
            interval = event.new_data.offset_interval
            yield Point(
                block=block.sequence_number,
                time=block.system_time,
                records=interval.end - interval.start + 1,
                bytes=event.new_data.size,
                watermark=watermark,
            )


def _queries(
    blocks: Iterable[tuple[Multihash, MetadataBlock]], eras: Iterable[QueryEra]
) -> tuple[Query, ...]:
    made = {era.sequence_number: era for era in eras}
    return tuple(
        Query(
            block=block.sequence_number,
            event=block.event,
            era=made.get(block.sequence_number),
        )
        for _, block in blocks
        if isinstance(block.event, SetTransform)
    )


def _changes(config: Config) -> Mapping[str, CommitInfo]:
    """The commit that last changed each file of definitions, by its path in the project."""
    try:
        with repository(config.root, "nobody is known to own anything") as repo:
            top = inside(repo, config.root)
            folder = inside(repo, config.datasets)
            if top is None or folder is None:
                return {}
            prefix = "" if top == "." else f"{top}/"
            changes = last_changes(repo, folder)
            return {path.removeprefix(prefix): commit for path, commit in changes.items()}
    except PlanError:
        return {}
