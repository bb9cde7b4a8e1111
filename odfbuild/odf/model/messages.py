"""Messages between a coordinator and an engine.

Not part of `odfbuild.odf.model`: only engines need them.
"""

from __future__ import annotations

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
