"""What the passports of a dataset are made of: its chain, digests of its files, and settings.

Everything follows from the head and the settings; no clock is read, so equal states give equal
passports.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.model import (
    AddData,
    AddPushSource,
    DataSlice,
    ExecuteTransform,
    ExecuteTransformInput,
    MetadataBlock,
    SetPollingSource,
    SetTransform,
)
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.schema.arrow import Field
from odfbuild.odf.schema.arrow_form import read_schema
from odfbuild.odf.timestamp import Timestamp
from odfbuild.odf.vocabulary import Vocabulary, vocabulary_of
from odfbuild.project.model import Config
from odfbuild.project.settings.checks import checks_of
from odfbuild.project.settings.describing import descriptions_of
from odfbuild.project.settings.freshness import max_age
from odfbuild.project.settings.owners import owners_of
from odfbuild.records.checks import Asked
from odfbuild.store.sha256 import sha256_of
from odfbuild.store.workspace import Workspace
from odfbuild.values import Value

_DESCRIPTION = b"opendatafabric.org/description"


class Step(Value, kw_only=True):
    """A block with records, and `source`, the block that said then how they are made.

    `sha256` is that of the data file, in hexadecimal. `engine` is the name and, where the chain
    has it, the release of what computed a query; `None` of records that were read. `inputs` are
    what was read of other datasets.
    """

    block: Multihash
    number: int
    time: Timestamp
    data: DataSlice
    sha256: str
    source: Multihash | None = None
    engine: tuple[str, str | None] | None = None
    inputs: tuple[ExecuteTransformInput, ...] = ()

    @property
    def path(self) -> str:
        """The data file, from the folder of the dataset."""
        return f"data/{self.data.physical_hash}"


class Facts(Value, kw_only=True):
    """A dataset at `state`; `steps` are oldest first. Of a `portal` nobody is told the inputs."""

    name: str
    state: Projection
    created: Timestamp
    steps: tuple[Step, ...]
    owners: tuple[str, ...]
    checks: tuple[Asked, ...]
    max_age: timedelta | None
    described: Mapping[str, str]
    portal: bool = False

    @property
    def vocabulary(self) -> Vocabulary:
        """What its system columns are called."""
        return vocabulary_of(self.state.vocab)

    @property
    def version(self) -> str:
        """The number of its newest block, as a semantic version: what comes later only adds."""
        return f"1.{self.state.blocks - 1}.0"

    @property
    def fields(self) -> tuple[Field, ...]:
        """Its columns; none where it has no data yet."""
        return () if self.state.schema is None else read_schema(self.state.schema).fields

    def description_of(self, column: Field) -> str | None:
        """What the schema says of a column, or else odfbuild.yaml."""
        said = (column.metadata or {}).get(_DESCRIPTION)
        return said.decode(errors="replace") if said else self.described.get(column.name.lower())


def facts_of(config: Config, workspace: Workspace, name: str, state: Projection) -> Facts:
    """The facts of a dataset at its head; brings data files that are not here.

    `IntegrityError` E0811 for a data file that is nowhere, E0813 for one that is damaged.
    """
    store = workspace.dataset(name)
    blocks = list(store.walk(state.head))[::-1]
    hashes = [
        block.event.new_data.physical_hash
        for _, block in blocks
        if isinstance(block.event, AddData | ExecuteTransform) and block.event.new_data
    ]
    return Facts(
        name=name,
        state=state,
        created=blocks[0][1].system_time,
        steps=tuple(_steps(blocks, sha256_of(store, hashes, config.cache))),
        owners=owners_of(config.owners, name),
        checks=checks_of(config.checks, name),
        max_age=max_age(config.freshness, name),
        described=descriptions_of(config.descriptions, name),
        portal=any(each.name.lower() == name.lower() for each in config.portals),
    )


def _steps(
    blocks: Sequence[tuple[Multihash, MetadataBlock]], digests: Sequence[bytes]
) -> Iterator[Step]:
    remaining = iter(digests)
    source: Multihash | None = None
    engine: tuple[str, str | None] | None = None
    for hash, block in blocks:
        match block.event:
            case SetTransform(transform=made_by):
                source, engine = hash, (made_by.engine, made_by.version)
            case SetPollingSource() | AddPushSource():
                source = hash
            case (
                AddData(new_data=DataSlice() as data)
                | ExecuteTransform(new_data=DataSlice() as data)
            ):
                event = block.event
                yield Step(
                    block=hash,
                    number=block.sequence_number,
                    time=block.system_time,
                    data=data,
                    sha256=next(remaining).hex(),
                    source=source,
                    engine=engine,
                    inputs=event.query_inputs if isinstance(event, ExecuteTransform) else (),
                )
