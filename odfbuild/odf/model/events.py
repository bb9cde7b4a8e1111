"""The thirteen events: transactions on a dataset.

docs/extending.md adds one.
"""

from __future__ import annotations

from enum import Enum
from typing import ClassVar

from odfbuild.odf.identity import DatasetId
from odfbuild.odf.model.data import Checkpoint, DataSlice, ExecuteTransformInput, SourceState
from odfbuild.odf.model.data_schema import DataSchema
from odfbuild.odf.model.fetch import FetchStep
from odfbuild.odf.model.merge import MergeStrategy
from odfbuild.odf.model.prepare import PrepStep
from odfbuild.odf.model.read import ReadStep
from odfbuild.odf.model.record import U64, Extra, Record, implied
from odfbuild.odf.model.transform import Transform, TransformInput
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp


class DatasetKind(Enum):
    """Where the data of a dataset comes from."""

    Root = 0
    Derivative = 1


class AttachmentEmbedded(Record):
    """A file kept in the metadata."""

    path: str
    content: str


class AttachmentsEmbedded(Record):
    """Files kept in the metadata."""

    KIND: ClassVar[str] = "Embedded"

    items: tuple[AttachmentEmbedded, ...]


Attachments = AttachmentsEmbedded
"""Files that belong to a dataset."""


class Description(Record):
    """An event that tells people something, `CALLED` so, and changes neither records nor columns.

    The last one of its kind is in force.
    """

    CALLED: ClassVar[str]


class AddData(Record):
    """Data was ingested into a root dataset."""

    KIND: ClassVar[str] = "AddData"

    prev_checkpoint: Multihash | None = None
    prev_offset: U64 | None = None
    new_data: DataSlice | None = None
    new_checkpoint: Checkpoint | None = None
    new_watermark: Timestamp | None = None
    new_source_state: SourceState | None = None
    extra: Extra | None = None


class ExecuteTransform(Record):
    """A transformation was performed."""

    KIND: ClassVar[str] = "ExecuteTransform"

    query_inputs: tuple[ExecuteTransformInput, ...]
    prev_checkpoint: Multihash | None = None
    prev_offset: U64 | None = None
    new_data: DataSlice | None = None
    new_checkpoint: Checkpoint | None = None
    new_watermark: Timestamp | None = None


class Seed(Record):
    """Identity of the dataset: always the first block."""

    KIND: ClassVar[str] = "Seed"

    dataset_id: DatasetId
    dataset_kind: DatasetKind


class SetPollingSource(Record):
    """How a root dataset is fed by polling."""

    KIND: ClassVar[str] = "SetPollingSource"

    fetch: FetchStep
    prepare: tuple[PrepStep, ...] | None = None
    read: ReadStep
    preprocess: Transform | None = None
    merge: MergeStrategy


class SetTransform(Record):
    """The transformation of a derivative dataset."""

    KIND: ClassVar[str] = "SetTransform"

    inputs: tuple[TransformInput, ...]
    transform: Transform


class SetVocab(Record):
    """Names of the system columns."""

    KIND: ClassVar[str] = "SetVocab"

    offset_column: str | None = implied(default="offset")
    operation_type_column: str | None = implied(default="op")
    system_time_column: str | None = implied(default="system_time")
    event_time_column: str | None = implied(default="event_time")


class SetAttachments(Description):
    """Files that belong to the dataset."""

    KIND: ClassVar[str] = "SetAttachments"
    CALLED = "the attachments"

    attachments: Attachments


class SetInfo(Description):
    """Description for people."""

    KIND: ClassVar[str] = "SetInfo"
    CALLED = "the description"

    description: str | None = None
    keywords: tuple[str, ...] | None = None


class SetLicense(Description):
    """License of the data."""

    KIND: ClassVar[str] = "SetLicense"
    CALLED = "the license"

    short_name: str
    name: str
    spdx_id: str | None = None
    website_url: str


class SetDataSchema(Record):
    """Schema of all later data slices: raw Arrow up to 0.36, ODF from 0.37; one of the two."""

    KIND: ClassVar[str] = "SetDataSchema"

    raw_arrow_schema: bytes | None = None
    schema: DataSchema | None = None


class AddPushSource(Record):
    """How pushed data enters a root dataset."""

    KIND: ClassVar[str] = "AddPushSource"

    source_name: str
    read: ReadStep
    preprocess: Transform | None = None
    merge: MergeStrategy


class DisablePushSource(Record):
    """A push source ends."""

    KIND: ClassVar[str] = "DisablePushSource"

    source_name: str


class DisablePollingSource(Record):
    """The polling source ends."""

    KIND: ClassVar[str] = "DisablePollingSource"


MetadataEvent = (
    AddData
    | ExecuteTransform
    | Seed
    | SetPollingSource
    | SetTransform
    | SetVocab
    | SetAttachments
    | SetInfo
    | SetLicense
    | SetDataSchema
    | AddPushSource
    | DisablePushSource
    | DisablePollingSource
)
"""A transaction on a dataset."""
