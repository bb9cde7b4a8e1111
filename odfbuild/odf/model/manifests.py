"""Manifests: blocks of the chain, definitions of datasets."""

from __future__ import annotations

from odfbuild.odf.identity import DatasetAlias
from odfbuild.odf.model.events import DatasetKind, MetadataEvent
from odfbuild.odf.model.record import U64, Record
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp


class MetadataBlock(Record):
    """One link of the chain."""

    system_time: Timestamp
    prev_block_hash: Multihash | None = None
    sequence_number: U64
    event: MetadataEvent


class DatasetSnapshot(Record):
    """A dataset as defined by a person: alias, kind and the events that define it."""

    name: DatasetAlias
    kind: DatasetKind
    metadata: tuple[MetadataEvent, ...]
