"""What blocks refer to, and how much it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from odfbuild.odf.flatbuffers.reader import decode_block
from odfbuild.repository.accept import objects_in, records_in
from odfbuild.repository.contract import ObjectFile, RawBlock
from odfbuild.repository.smart.messages import TransferPlan


def objects_of(block: RawBlock) -> Iterator[ObjectFile]:
    """The objects of a block: data before the checkpoint."""
    return objects_in(decode_block(block.data))


def plan_of(blocks: Sequence[RawBlock]) -> TransferPlan:
    """How much a transfer of blocks is; blocks of one checkpoint count it each."""
    objects = [each for block in blocks for each in objects_of(block)]
    return TransferPlan(
        num_blocks=len(blocks),
        num_objects=len(objects),
        num_records=sum(records_in(decode_block(block.data)) for block in blocks),
        bytes_in_raw_blocks=sum(len(block.data) for block in blocks),
        bytes_in_raw_objects=sum(each.size for each in objects),
    )


def distinct(objects: Iterable[ObjectFile]) -> list[ObjectFile]:
    """Each object once, in the order of their first appearance."""
    return list({(each.kind, each.hash): each for each in objects}.values())
