"""Check the events that a plan would append against the rules of the chain, before anything runs.

The rules are those of every append (`odf.rules`); what they need to know of the chain is in its
projection. Reads nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from msgspec.structs import replace

from odfbuild.errors import ChainError
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.chain.rules import check
from odfbuild.odf.chain.state import ChainState, advance
from odfbuild.odf.identity import DatasetAlias, DatasetId
from odfbuild.odf.model import MetadataBlock, MetadataEvent, SetTransform, TransformInput
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp

_NEXT = Multihash(b"")
_SOME_TIME = Timestamp(0)


def broken_rule(
    events: Sequence[MetadataEvent], projection: Projection | None
) -> tuple[MetadataEvent, ChainError] | None:
    """The first event that may not follow, and the rule that it breaks; `None` when all may.

    `projection` is `None` for a dataset that is to be created.
    """
    state = _created() if projection is None else _state(projection)
    block = None
    for event in events:
        if block is not None:
            state = advance(state, _NEXT, block)
        block = MetadataBlock(
            system_time=state.system_time,
            prev_block_hash=state.head,
            sequence_number=state.sequence_number + 1,
            event=_identified(event),
        )
        try:
            check(state, block)
        except ChainError as error:
            return event, error
    return None


def _created() -> ChainState:
    return ChainState(head=_NEXT, sequence_number=0, system_time=_SOME_TIME)


def _state(projection: Projection) -> ChainState:
    """What rules about definitions ask for; a plan appends no records, so offsets stay out."""
    return ChainState(
        head=projection.head,
        sequence_number=projection.blocks - 1,
        system_time=projection.system_time,
        schema=projection.schema,
        transform=projection.transform,
        polling=projection.polling_source is not None,
        push_sources=projection.push_sources,
    )


def _identified(event: MetadataEvent) -> MetadataEvent:
    """The event with inputs by DID, as it will be appended: made-up ones where no chain is yet."""
    if not isinstance(event, SetTransform):
        return event
    inputs = tuple(
        each
        if isinstance(each.dataset_ref, DatasetId)
        else TransformInput(dataset_ref=_made_up(each.dataset_ref), alias=each.alias)
        for each in event.inputs
    )
    return replace(event, inputs=inputs)


def _made_up(alias: DatasetAlias) -> DatasetId:
    return DatasetId(sha256(alias.folded.encode()).digest())
