"""Data slices of a chain: all of them, or those that came after a given block."""

from __future__ import annotations

from odfbuild.odf.model import AddData, DataSlice, ExecuteTransform
from odfbuild.odf.multihash import Multihash
from odfbuild.store.dataset import DatasetStore


def slices_between(
    store: DatasetStore, after: Multihash | None, head: Multihash | None
) -> tuple[DataSlice, ...]:
    """Slices of the blocks in `(after, head]`, oldest first; of the whole chain without `after`."""
    if head is None or head == after:
        return ()
    slices = [
        block.event.new_data
        for _, block in store.walk(head, after)
        if isinstance(block.event, AddData | ExecuteTransform) and block.event.new_data is not None
    ]
    return tuple(reversed(slices))
