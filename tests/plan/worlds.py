"""Projects and chains as values: what planning sees, without files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from odfbuild.ingest.facts import SourceFacts
from odfbuild.odf.chain.projection import Projection, advance, start
from odfbuild.odf.identity import DatasetAlias, DatasetId
from odfbuild.odf.model import (
    AddData,
    DataField,
    DataSchema,
    DatasetKind,
    DatasetSnapshot,
    DataSlice,
    DataTypeInt32,
    DataTypeInt64,
    DataTypeOption,
    DataTypeString,
    DataTypeTimestamp,
    ExecuteTransform,
    ExecuteTransformInput,
    FetchStepFilesGlob,
    MergeStrategy,
    MergeStrategyLedger,
    MetadataBlock,
    MetadataEvent,
    OffsetInterval,
    ReadStepCsv,
    Seed,
    SetDataSchema,
    SetInfo,
    SetPollingSource,
    SetTransform,
    SqlQueryStep,
    TransformInput,
    TransformSql,
)
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp
from odfbuild.plan.build import build_plan
from odfbuild.plan.inputs import NOTHING_BY_POLICY, Asked, ByPolicy, PlanFacts
from odfbuild.plan.model import DatasetPlan, Plan
from odfbuild.plan.slices import ChainSlices
from odfbuild.project.model import Config, Definition, Project

BYTES_PER_RECORD = 10

SCHEMA = SetDataSchema(
    schema=DataSchema(
        fields=(
            DataField(name="offset", type=DataTypeInt64()),
            DataField(name="op", type=DataTypeInt32()),
            DataField(name="system_time", type=DataTypeTimestamp()),
            DataField(name="event_time", type=DataTypeTimestamp()),
            DataField(name="id", type=DataTypeOption(inner=DataTypeInt64())),
            DataField(name="name", type=DataTypeOption(inner=DataTypeString())),
        )
    )
)
"""What every dataset that has records consists of."""


def did(name: str) -> DatasetId:
    return DatasetId(sha256(name.encode()).digest())


def hash_of(text: str) -> Multihash:
    return Multihash.sha3_256(text.encode())


def ledger(*key: str) -> MergeStrategyLedger:
    return MergeStrategyLedger(primary_key=key or ("id",))


def polling(path: str = "data/*.csv", merge: MergeStrategy | None = None) -> SetPollingSource:
    return SetPollingSource(
        fetch=FetchStepFilesGlob(path=path),
        read=ReadStepCsv(header=True, ddl_schema=("id BIGINT", "name STRING")),
        merge=merge or ledger(),
    )


def transform(*inputs: str, query: str | None = None) -> SetTransform:
    return SetTransform(
        inputs=tuple(TransformInput(dataset_ref=DatasetAlias.parse(i), alias=i) for i in inputs),
        transform=TransformSql(
            engine="spark",
            queries=(SqlQueryStep(query=query or f"SELECT *\nFROM {inputs[0]}\nWHERE id > 0\n"),),
        ),
    )


def committed_form(event: MetadataEvent) -> MetadataEvent:
    """As a chain holds it: inputs by DID."""
    if not isinstance(event, SetTransform):
        return event
    return replace(
        event,
        inputs=tuple(replace(i, dataset_ref=did(str(i.dataset_ref))) for i in event.inputs),
    )


@dataclass
class Chain:
    """A chain in memory that grows block by block."""

    name: str
    kind: DatasetKind
    salt: str = ""
    blocks: dict[Multihash, MetadataBlock] = field(default_factory=dict)
    state: Projection | None = None

    def __post_init__(self) -> None:
        self.append(Seed(dataset_id=did(self.name), dataset_kind=self.kind))

    @property
    def now(self) -> Projection:
        assert self.state is not None
        return self.state

    def append(self, event: MetadataEvent) -> Chain:
        number = len(self.blocks)
        block = MetadataBlock(
            system_time=Timestamp(1_700_000_000_000_000_000 + number),
            prev_block_hash=self.state.head if self.state else None,
            sequence_number=number,
            event=committed_form(event),
        )
        name = hash_of(f"{self.name}/{self.salt}/{number}")
        self.blocks[name] = block
        self.state = advance(self.state, name, block) if self.state else start(name, block)
        return self

    def add(self, records: int, watermark: int | None = None) -> Chain:
        """Ingest so many records of ten bytes."""
        self._schema()
        data = self._slice(records)
        mark = Timestamp(watermark) if watermark else None
        return self.append(
            AddData(prev_offset=self.now.last_offset, new_data=data, new_watermark=mark)
        )

    def run(self, records: int, *inputs: Chain, watermark: int | None = None) -> Chain:
        """Transform everything that is new in the inputs into so many records."""
        self._schema()
        before = {i.dataset_id: i for i in self.now.inputs}
        query_inputs = tuple(
            ExecuteTransformInput(
                dataset_id=each.now.dataset_id,
                prev_block_hash=old.new_block_hash if old else None,
                prev_offset=old.new_offset if old else None,
                new_block_hash=each.now.head,
                new_offset=each.now.last_offset,
            )
            for each in inputs
            for old in [before.get(each.now.dataset_id)]
        )
        return self.append(
            ExecuteTransform(
                query_inputs=query_inputs,
                prev_offset=self.now.last_offset,
                new_data=self._slice(records) if records else None,
                new_watermark=Timestamp(watermark) if watermark else None,
            )
        )

    def _schema(self) -> None:
        if self.now.schema is None:
            self.append(SCHEMA)

    def _slice(self, records: int) -> DataSlice:
        first = 0 if self.now.last_offset is None else self.now.last_offset + 1
        return DataSlice(
            logical_hash=hash_of("l"),
            physical_hash=hash_of("p"),
            offset_interval=OffsetInterval(start=first, end=first + records - 1),
            size=records * BYTES_PER_RECORD,
        )


@dataclass
class World:
    """A project and its chains."""

    definitions: dict[str, Definition] = field(default_factory=dict)
    chains: dict[str, Chain] = field(default_factory=dict)
    facts: dict[str, SourceFacts] = field(default_factory=dict)
    checks: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def define(self, name: str, kind: DatasetKind, *events: MetadataEvent) -> World:
        snapshot = DatasetSnapshot(name=DatasetAlias.parse(name), kind=kind, metadata=events)
        self.definitions[name] = Definition(content=snapshot, file=f"datasets/{name}.yaml")
        return self

    def root(self, name: str, *events: MetadataEvent) -> World:
        return self.define(name, DatasetKind.Root, *(events or (polling(),)))

    def derivative(self, name: str, *inputs: str, query: str | None = None) -> World:
        return self.define(name, DatasetKind.Derivative, transform(*inputs, query=query))

    def commit(self, name: str) -> Chain:
        """A chain with what the definition says, no data yet."""
        snapshot = self.definitions[name].snapshot
        chain = self.chains[name] = Chain(name, snapshot.kind)
        for event in snapshot.metadata:
            chain.append(event)
        return chain

    def has(self, name: str, facts: SourceFacts) -> World:
        self.facts[name] = facts
        return self

    @property
    def order(self) -> tuple[str, ...]:
        return tuple(self.definitions)

    @property
    def project(self) -> Project:
        root = Path("/project")
        config = Config(name="world", root=root, datasets=root / "datasets", state=root / "chains")
        return Project(config=config, definitions=tuple(self.definitions.values()))

    def plan_facts(self, **others: Any) -> PlanFacts:
        """What a plan of this world is made from, with `others` in place of what is usual."""
        projections: Mapping[str, Projection] = {n: c.now for n, c in self.chains.items()}
        slices = ChainSlices(
            projections,
            lambda name, block: self.chains[name].blocks[block],
        )
        usual = PlanFacts(
            project=self.project,
            graph=self,
            projections=projections,
            slices=slices,
            sources=self.facts,
        )
        return replace(usual, **others)

    def plan(self, by_policy: ByPolicy = NOTHING_BY_POLICY) -> Plan:
        return build_plan(self.plan_facts(), Asked(by_policy=by_policy))

    def planned(self, name: str) -> DatasetPlan:
        return {dataset.name: dataset for dataset in self.plan().datasets}[name]


UNCHANGED = SourceFacts("unchanged")


def news(records: int | None = 100, exact: bool = True) -> SourceFacts:
    return SourceFacts("news", ("data/2.csv",), records, exact, 2_000, "data/2.csv is new")


def pipeline() -> World:
    """flights → late → worst, all up to date: 50, 20 and 5 records."""
    world = World().root("flights", polling(), SetInfo(description="All flights"))
    world.derivative("late", "flights").derivative("worst", "late")
    flights = world.commit("flights").add(30, watermark=1).add(20, watermark=2)
    late = world.commit("late").run(20, flights, watermark=2)
    world.commit("worst").run(5, late, watermark=2)
    return world.has("flights", UNCHANGED)


LATE = "SELECT event_time, id, name FROM flights WHERE id > 0"
READERS = {
    "shown": "SELECT event_time, id, upper(name) AS name FROM late",
    "early": "SELECT event_time, id, 'x' AS name FROM late WHERE name > 'a'",
    "ids": "SELECT event_time, id, 'x' AS name FROM late",
    "strange": "SELECT event_time, id, name FROM late TABLESAMPLE (10 PERCENT)",
}


def readers() -> World:
    """flights → late → four readers; shown → far, ids → further: everything is up to date."""
    made = World().root("flights", polling(), SetInfo(description="All flights"))
    made.has("flights", UNCHANGED)
    flights = made.commit("flights").add(50)
    made.derivative("late", "flights", query=LATE)
    late = made.commit("late").run(20, flights)
    for name, query in READERS.items():
        made.derivative(name, "late", query=query)
        made.commit(name).run(5, late)
    for name, read in (("far", "shown"), ("further", "ids")):
        made.derivative(name, read, query=f"SELECT event_time, id, name AS name FROM {read}")
        made.commit(name).run(5, made.chains[read])
    return made
