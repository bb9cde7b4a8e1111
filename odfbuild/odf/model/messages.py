"""Messages between a coordinator and an engine.

Not part of `odfbuild.odf.model`: only engines need them.
"""

from __future__ import annotations

from typing import ClassVar

from odfbuild.odf.identity import DatasetAlias, DatasetId
from odfbuild.odf.model.data import OffsetInterval
from odfbuild.odf.model.record import U64, implied, record
from odfbuild.odf.model.transform import Transform
from odfbuild.odf.timestamp import Timestamp


@record
class DatasetVocabulary:
    """Names of the system columns."""

    offset_column: str | None = implied(default="offset")
    operation_type_column: str | None = implied(default="op")
    system_time_column: str | None = implied(default="system_time")
    event_time_column: str | None = implied(default="event_time")


@record
class Watermark:
    """A watermark and when it was recorded."""

    system_time: Timestamp
    event_time: Timestamp


@record
class RawQueryRequest:
    """A query over raw input data."""

    input_data_paths: tuple[str, ...]
    transform: Transform
    output_data_path: str


@record
class TransformRequestInput:
    """An input of a transform request."""

    dataset_id: DatasetId
    dataset_alias: DatasetAlias
    query_alias: str
    vocab: DatasetVocabulary
    offset_interval: OffsetInterval | None = None
    data_paths: tuple[str, ...]
    schema_file: str
    explicit_watermarks: tuple[Watermark, ...]


@record
class TransformRequest:
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


@record
class RawQueryResponseProgress:
    """The query is running."""

    KIND: ClassVar[str] = "Progress"


@record
class RawQueryResponseSuccess:
    """The query wrote its result."""

    KIND: ClassVar[str] = "Success"

    num_records: U64


@record
class RawQueryResponseInvalidQuery:
    """The query was refused: its author has to correct it."""

    KIND: ClassVar[str] = "InvalidQuery"

    message: str


@record
class RawQueryResponseInternalError:
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


@record
class TransformResponseProgress:
    """The transformation is running."""

    KIND: ClassVar[str] = "Progress"


@record
class TransformResponseSuccess:
    """The step was performed; without an interval it gave no records."""

    KIND: ClassVar[str] = "Success"

    new_offset_interval: OffsetInterval | None = None
    new_watermark: Timestamp | None = None


@record
class TransformResponseInvalidQuery:
    """The query was refused: its author has to correct it."""

    KIND: ClassVar[str] = "InvalidQuery"

    message: str


@record
class TransformResponseInternalError:
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


@record
class RawQueryResponseRoot:
    """An answer as it travels: FlatBuffers have no union as their root."""

    value: RawQueryResponse


@record
class TransformResponseRoot:
    """An answer as it travels: FlatBuffers have no union as their root."""

    value: TransformResponse
