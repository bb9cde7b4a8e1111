"""The newest step of each dataset: its inputs, outputs and query.

Read from chains alone; everything is as it was at the block of the step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from odfbuild.inspect.columns import columns_from
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.model import (
    AddData,
    ExecuteTransform,
    FetchStepContainer,
    FetchStepFilesGlob,
    FetchStepUrl,
    MetadataBlock,
    SetPollingSource,
)
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.schema.arrow_form import read_schema
from odfbuild.plan.columns.lineages import Lineages
from odfbuild.store.cache import project
from odfbuild.store.workspace import Workspace
from odfbuild.values import Value


class ReadInput(Value):
    """A dataset that a step read: name (or identity, if it is not here) and block read up to."""

    name: str
    block: Multihash | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One transaction with records, and `state`, what the chain said at its block.

    `source` is the file pattern, address or image that a root reads. `lineage` tells of each column
    which columns of `inputs`, by the names of the datasets, it is made of; `None`: not known.
    """

    name: str
    hash: Multihash
    block: MetadataBlock
    state: Projection
    inputs: tuple[ReadInput, ...] = ()
    source: str | None = None
    lineage: Mapping[str, tuple[tuple[str, str], ...]] | None = None

    @property
    def event(self) -> AddData | ExecuteTransform:
        """What the block says."""
        event = self.block.event
        if not isinstance(event, AddData | ExecuteTransform):
            raise AssertionError("a step is a transaction with records")
        return event


def newest_steps(workspace: Workspace, names: Sequence[str]) -> Iterator[Step]:
    """The newest step with records of each of `names` that has one, in their order."""
    projections = workspace.readable()
    aliases = {state.dataset_id: name for name, state in projections.items()}
    for name in names:
        now = projections.get(name)
        found = None if now is None else _newest(workspace, name, now)
        if found is not None:
            yield _step(name, *found, projections, aliases)


def _newest(
    workspace: Workspace, name: str, now: Projection
) -> tuple[Multihash, MetadataBlock, Projection] | None:
    store = workspace.dataset(name)
    for hash, block in store.walk(now.head):
        event = block.event
        if isinstance(event, AddData | ExecuteTransform) and event.new_data is not None:
            return hash, block, now if hash == now.head else project(store, hash, None)
    return None


def _step(
    name: str,
    hash: Multihash,
    block: MetadataBlock,
    state: Projection,
    projections: Mapping[str, Projection],
    aliases: Mapping[DatasetId, str],
) -> Step:
    event = block.event
    if not isinstance(event, ExecuteTransform):
        return Step(
            name=name, hash=hash, block=block, state=state, source=_source(state.polling_source)
        )
    inputs = tuple(
        ReadInput(
            aliases.get(each.dataset_id, str(each.dataset_id)),
            each.new_block_hash or each.prev_block_hash,
        )
        for each in event.query_inputs
    )
    return Step(
        name=name,
        hash=hash,
        block=block,
        state=state,
        inputs=inputs,
        lineage=_lineage(state, projections, aliases),
    )


def _source(source: SetPollingSource | None) -> str | None:
    match source and source.fetch:
        case FetchStepFilesGlob(path=found) | FetchStepUrl(url=found):
            return found
        case FetchStepContainer(image=found):
            return found
    return None


def _lineage(
    state: Projection, projections: Mapping[str, Projection], aliases: Mapping[DatasetId, str]
) -> Mapping[str, tuple[tuple[str, str], ...]] | None:
    """Columns of inputs by column of the result; schemas of inputs are those of now."""

    def columns_of(name: str) -> tuple[str, ...] | None:
        known = projections[name].schema if name in projections else None
        return None if known is None else tuple(read_schema(known).names)

    found = columns_from(state, aliases, columns_of, Lineages())
    if found is None:
        return None
    return {
        column: tuple(sorted({(each.dataset, each.column) for each in origins}))
        for column, origins in found.columns.items()
    }
