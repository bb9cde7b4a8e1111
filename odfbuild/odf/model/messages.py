"""Messages between a coordinator and an engine.

Not part of `odfbuild.odf.model`: only engines need them.
"""

from __future__ import annotations

from typing import ClassVar

from odfbuild.odf.identity import DatasetAlias, DatasetId
from odfbuild.odf.model.data import OffsetInterval
from odfbuild.odf.model.record import U64, Record, implied
from odfbuild.odf.model.transform import Transform
from odfbuild.odf.timestamp import Timestamp


class DatasetVocabulary(Record):
    """Names of the system columns."""

    offset_column: str | None = implied(default="offset")
    operation_type_column: str | None = implied(default="op")
    system_time_column: str | None = implied(default="system_time")
    event_time_column: str | None = implied(default="event_time")


class Watermark(Record):
    """A watermark and when it was recorded."""

    system_time: Timestamp
    event_time: Timestamp


class RawQueryRequest(Record):
    """A query over raw input data."""

    input_data_paths: tuple[str, ...]
    transform: Transform
    output_data_path: str


class TransformRequestInput(Record):
    """An input of a transform request."""

    dataset_id: DatasetId
    dataset_alias: DatasetAlias
    query_alias: str
    vocab: DatasetVocabulary
    offset_interval: OffsetInterval | None = None
    data_paths: tuple[str, ...]
    schema_file: str
    explicit_watermarks: tuple[Watermark, ...]


class TransformRequest(Record):
    """The next step of a transformation."""

    dataset_id: DatasetId
    dataset_alias: DatasetAlias
    system_time: Timestamp
    vocab: DatasetVocabulary
    transform: Transform
    query_inputs: tuple[TransformRequestInput, ...]
    next_offset: U64
    prev_checkpoint_path: str | None = None
    new_checkpoint_path: str
    new_data_path: str


# --- Answers ---


class RawQueryResponseProgress(Record):
    """The query is running."""

    KIND: ClassVar[str] = "Progress"


class RawQueryResponseSuccess(Record):
    """The query wrote its result."""

    KIND: ClassVar[str] = "Success"

    num_records: U64


class RawQueryResponseInvalidQuery(Record):
    """The query was refused: its author has to correct it."""

    KIND: ClassVar[str] = "InvalidQuery"

    message: str


class RawQueryResponseInternalError(Record):
    """The engine failed."""

    KIND: ClassVar[str] = "InternalError"

    message: str
    backtrace: str | None = None


RawQueryResponse = (
    RawQueryResponseProgress
    | RawQueryResponseSuccess
    | RawQueryResponseInvalidQuery
    | RawQueryResponseInternalError
)
"""What an engine says about a raw query: any number of times progress, then one of the others."""


class TransformResponseProgress(Record):
    """The transformation is running."""

    KIND: ClassVar[str] = "Progress"


class TransformResponseSuccess(Record):
    """The step was performed; without an interval it gave no records."""

    KIND: ClassVar[str] = "Success"

    new_offset_interval: OffsetInterval | None = None
    new_watermark: Timestamp | None = None


class TransformResponseInvalidQuery(Record):
    """The query was refused: its author has to correct it."""

    KIND: ClassVar[str] = "InvalidQuery"

    message: str


class TransformResponseInternalError(Record):
    """The engine failed."""

    KIND: ClassVar[str] = "InternalError"

    message: str
    backtrace: str | None = None


TransformResponse = (
    TransformResponseProgress
    | TransformResponseSuccess
    | TransformResponseInvalidQuery
    | TransformResponseInternalError
)
"""What an engine says about a transformation: any number of times progress, then another."""


class RawQueryResponseRoot(Record):
    """An answer as it travels: FlatBuffers have no union as their root."""

    value: RawQueryResponse


class TransformResponseRoot(Record):
    """An answer as it travels: FlatBuffers have no union as their root."""

    value: TransformResponse
