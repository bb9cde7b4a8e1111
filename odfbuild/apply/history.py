"""Data blocks of a chain: which slices exist, and which came after a given block."""

from __future__ import annotations

from dataclasses import dataclass

from odfbuild.odf.model import AddData, DataSlice, ExecuteTransform
from odfbuild.odf.multihash import Multihash
from odfbuild.store.dataset import DatasetStore


@dataclass(frozen=True, slots=True)
class DataInterval:
    """What the blocks of a half-open interval say about data: slices oldest first."""

    slices: tuple[DataSlice, ...]
    has_watermark: bool

    @property
    def is_empty(self) -> bool:
        """Whether a transformation has nothing to learn from it."""
        return not self.slices and not self.has_watermark


def data_interval(
    store: DatasetStore, after: Multihash | None, head: Multihash | None
) -> DataInterval:
    """Data blocks in `(after, head]`; the whole chain when `after` is `None`."""
    slices: list[DataSlice] = []
    has_watermark = False
    if head is not None and head != after:
        for _, block in store.walk(head, after):
            event = block.event
            if isinstance(event, AddData | ExecuteTransform):
                has_watermark = has_watermark or event.new_watermark is not None
                if event.new_data is not None:
                    slices.append(event.new_data)
    slices.reverse()
    return DataInterval(tuple(slices), has_watermark)
