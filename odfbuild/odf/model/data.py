"""Data in blocks: slices, checkpoints, source states, consumed inputs."""

from __future__ import annotations

from odfbuild.odf.identity import DatasetId
from odfbuild.odf.model.record import U64, Record
from odfbuild.odf.multihash import Multihash


class OffsetInterval(Record):
    """Closed interval of record offsets."""

    start: U64
    end: U64


class DataSlice(Record):
    """A data file: hashes, offsets, bytes."""

    logical_hash: Multihash
    physical_hash: Multihash
    offset_interval: OffsetInterval
    size: U64

    @property
    def records(self) -> int:
        """How many records it has."""
        return self.offset_interval.end - self.offset_interval.start + 1


class Checkpoint(Record):
    """A checkpoint file of an engine."""

    physical_hash: Multihash
    size: U64


class SourceState(Record):
    """What was read of a source, for resuming. Kinds: `odf/etag`, `odf/last-modified`."""

    source_name: str
    kind: str
    value: str


class ExecuteTransformInput(Record):
    """Half-open intervals of blocks and offsets that a transaction consumed of an input."""

    dataset_id: DatasetId
    prev_block_hash: Multihash | None = None
    new_block_hash: Multihash | None = None
    prev_offset: U64 | None = None
    new_offset: U64 | None = None
