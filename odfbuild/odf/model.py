"""The objects of the specification: the one source of truth for every field.

Each class is one object of the metadata reference (0.36, with what 0.37 and 0.38 added on the
wire). Fields stand in the order of their FlatBuffers slots; the annotation gives the wire type:

    str, bool                a string, a bool
    bytes                    a [ubyte] vector, base64 in YAML
    Multihash, DatasetId     a [ubyte] vector in binary form, text in YAML
    DatasetRef               a string
    Timestamp                the 16-byte struct, RFC 3339 in YAML
    U64, U32, I32, I16       a scalar of that width
    an `Enum`                a scalar (int32; `TimeUnit` int16), numbered in order of definition
    tuple[X, ...]            a vector
    A | B | …                a union: tag (one-based, in this order) and value, two slots
    X | None                 optional: absent is not the same as the default

A scalar that is not optional is left out of the bytes when it equals 0. `open_map` marks the one
free-form object, kept as JSON text on the wire. The YAML form names fields in camelCase; members of
a union carry `kind`. Sources: metadata reference; `opendatafabric.fbs`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, ClassVar

from odfbuild.odf.identity import DatasetAlias, DatasetId, DatasetRef
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp

U64 = Annotated[int, "u64"]
U32 = Annotated[int, "u32"]
I32 = Annotated[int, "i32"]
I16 = Annotated[int, "i16"]
Extra = Annotated[Mapping[str, Any], "open_map"]


class DatasetKind(Enum):
    """Where the data of a dataset comes from."""

    Root = 0
    Derivative = 1


class CompressionFormat(Enum):
    """Compression of source data."""

    Gzip = 0
    Zip = 1


class SourceOrdering(Enum):
    """Order in which the files of a glob are ingested."""

    ByEventTime = 0
    ByName = 1


class MqttQos(Enum):
    """MQTT quality of service class."""

    AtMostOnce = 0
    AtLeastOnce = 1
    ExactlyOnce = 2


class TimeUnit(Enum):
    """Unit of times, timestamps and durations (int16 on the wire)."""

    Second = 0
    Millisecond = 1
    Microsecond = 2
    Nanosecond = 3


# --- Data types (ODF schema, 0.37+) ---


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTypeBinary:
    """Bytes, of one length if `fixed_length` is given."""

    KIND: ClassVar[str] = "Binary"

    fixed_length: U64 | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTypeBool:
    """True or false."""

    KIND: ClassVar[str] = "Bool"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTypeDate:
    """A day of the calendar."""

    KIND: ClassVar[str] = "Date"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTypeDecimal:
    """Exact decimal number."""

    KIND: ClassVar[str] = "Decimal"

    precision: U32
    scale: I32


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTypeDuration:
    """Span of time."""

    KIND: ClassVar[str] = "Duration"

    unit: TimeUnit | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTypeFloat16:
    """IEEE 754 half precision."""

    KIND: ClassVar[str] = "Float16"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTypeFloat32:
    """IEEE 754 single precision."""

    KIND: ClassVar[str] = "Float32"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTypeFloat64:
    """IEEE 754 double precision."""

    KIND: ClassVar[str] = "Float64"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTypeInt8:
    """Signed integer of 8 bits."""

    KIND: ClassVar[str] = "Int8"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTypeInt16:
    """Signed integer of 16 bits."""

    KIND: ClassVar[str] = "Int16"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTypeInt32:
    """Signed integer of 32 bits."""

    KIND: ClassVar[str] = "Int32"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTypeInt64:
    """Signed integer of 64 bits."""

    KIND: ClassVar[str] = "Int64"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTypeUInt8:
    """Unsigned integer of 8 bits."""

    KIND: ClassVar[str] = "UInt8"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTypeUInt16:
    """Unsigned integer of 16 bits."""

    KIND: ClassVar[str] = "UInt16"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTypeUInt32:
    """Unsigned integer of 32 bits."""

    KIND: ClassVar[str] = "UInt32"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTypeUInt64:
    """Unsigned integer of 64 bits."""

    KIND: ClassVar[str] = "UInt64"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTypeList:
    """Items of one type."""

    KIND: ClassVar[str] = "List"

    item_type: DataType
    fixed_length: U64 | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTypeMap:
    """Keys to values."""

    KIND: ClassVar[str] = "Map"

    key_type: DataType
    value_type: DataType
    keys_sorted: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTypeNull:
    """Only null."""

    KIND: ClassVar[str] = "Null"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTypeOption:
    """A value or null."""

    KIND: ClassVar[str] = "Option"

    inner: DataType


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTypeStruct:
    """Named fields."""

    KIND: ClassVar[str] = "Struct"

    fields: tuple[DataField, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTypeTime:
    """Time of day."""

    KIND: ClassVar[str] = "Time"

    unit: TimeUnit | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTypeTimestamp:
    """Instant in a time zone."""

    KIND: ClassVar[str] = "Timestamp"

    unit: TimeUnit | None = None
    timezone: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTypeString:
    """UTF-8 text."""

    KIND: ClassVar[str] = "String"


DataType = (
    DataTypeBinary
    | DataTypeBool
    | DataTypeDate
    | DataTypeDecimal
    | DataTypeDuration
    | DataTypeFloat16
    | DataTypeFloat32
    | DataTypeFloat64
    | DataTypeInt8
    | DataTypeInt16
    | DataTypeInt32
    | DataTypeInt64
    | DataTypeUInt8
    | DataTypeUInt16
    | DataTypeUInt32
    | DataTypeUInt64
    | DataTypeList
    | DataTypeMap
    | DataTypeNull
    | DataTypeOption
    | DataTypeStruct
    | DataTypeTime
    | DataTypeTimestamp
    | DataTypeString
)
"""Type of a column or of a value inside one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataField:
    """A named column or struct member."""

    name: str
    type: DataType
    extra: Extra | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSchema:
    """Columns of a dataset."""

    fields: tuple[DataField, ...]
    extra: Extra | None = None


# --- Fetching ---


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestHeader:
    """A header sent with a request."""

    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvVar:
    """An environment variable of a job; without value it is passed through."""

    name: str
    value: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MqttTopicSubscription:
    """A topic, possibly a pattern."""

    path: str
    qos: MqttQos | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTimeSourceFromMetadata:
    """Event time from the source's metadata."""

    KIND: ClassVar[str] = "FromMetadata"


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTimeSourceFromPath:
    """Event time from the path: first group of `pattern`, read by `timestamp_format`."""

    KIND: ClassVar[str] = "FromPath"

    pattern: str
    timestamp_format: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTimeSourceFromSystemTime:
    """Event time is the time of ingestion."""

    KIND: ClassVar[str] = "FromSystemTime"


EventTimeSource = (
    EventTimeSourceFromMetadata | EventTimeSourceFromPath | EventTimeSourceFromSystemTime
)
"""Where the event time of records without one comes from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceCachingForever:
    """Processed once, never ingested again."""

    KIND: ClassVar[str] = "Forever"


SourceCaching = SourceCachingForever
"""How source data is cached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchStepUrl:
    """Data at a URL."""

    KIND: ClassVar[str] = "Url"

    url: str
    event_time: EventTimeSource | None = None
    cache: SourceCaching | None = None
    headers: tuple[RequestHeader, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchStepFilesGlob:
    """Files that match a glob pattern, one after the other."""

    KIND: ClassVar[str] = "FilesGlob"

    path: str
    event_time: EventTimeSource | None = None
    cache: SourceCaching | None = None
    order: SourceOrdering | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchStepContainer:
    """Standard output of an OCI container."""

    KIND: ClassVar[str] = "Container"

    image: str
    command: tuple[str, ...] | None = None
    args: tuple[str, ...] | None = None
    env: tuple[EnvVar, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchStepMqtt:
    """Messages of an MQTT broker."""

    KIND: ClassVar[str] = "Mqtt"

    host: str
    port: I32
    username: str | None = None
    password: str | None = None
    topics: tuple[MqttTopicSubscription, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchStepEthereumLogs:
    """Transaction logs of an Ethereum node."""

    KIND: ClassVar[str] = "EthereumLogs"

    chain_id: U64 | None = None
    node_url: str | None = None
    filter: str | None = None
    signature: str | None = None


FetchStep = (
    FetchStepUrl | FetchStepFilesGlob | FetchStepContainer | FetchStepMqtt | FetchStepEthereumLogs
)
"""External source of data."""


# --- Preparing and reading ---


@dataclass(frozen=True, slots=True, kw_only=True)
class PrepStepDecompress:
    """Decompress; `sub_path` picks a file of an archive."""

    KIND: ClassVar[str] = "Decompress"

    format: CompressionFormat
    sub_path: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PrepStepPipe:
    """Pipe through a command, without a shell."""

    KIND: ClassVar[str] = "Pipe"

    command: tuple[str, ...]


PrepStep = PrepStepDecompress | PrepStepPipe
"""Preparation of raw data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadStepCsv:
    """Comma-separated values."""

    KIND: ClassVar[str] = "Csv"

    ddl_schema: tuple[str, ...] | None = None
    separator: str | None = None
    encoding: str | None = None
    quote: str | None = None
    escape: str | None = None
    header: bool | None = None
    infer_schema: bool | None = None
    null_value: str | None = None
    date_format: str | None = None
    timestamp_format: str | None = None
    schema: DataSchema | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadStepGeoJson:
    """One GeoJSON FeatureCollection."""

    KIND: ClassVar[str] = "GeoJson"

    ddl_schema: tuple[str, ...] | None = None
    schema: DataSchema | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadStepEsriShapefile:
    """ESRI shapefile in a ZIP archive."""

    KIND: ClassVar[str] = "EsriShapefile"

    ddl_schema: tuple[str, ...] | None = None
    sub_path: str | None = None
    schema: DataSchema | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadStepParquet:
    """Apache Parquet."""

    KIND: ClassVar[str] = "Parquet"

    ddl_schema: tuple[str, ...] | None = None
    schema: DataSchema | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadStepJson:
    """JSON with an array of objects at `sub_path`."""

    KIND: ClassVar[str] = "Json"

    sub_path: str | None = None
    ddl_schema: tuple[str, ...] | None = None
    date_format: str | None = None
    encoding: str | None = None
    timestamp_format: str | None = None
    schema: DataSchema | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadStepNdJson:
    """One JSON object a line."""

    KIND: ClassVar[str] = "NdJson"

    ddl_schema: tuple[str, ...] | None = None
    date_format: str | None = None
    encoding: str | None = None
    timestamp_format: str | None = None
    schema: DataSchema | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadStepNdGeoJson:
    """One GeoJSON feature a line."""

    KIND: ClassVar[str] = "NdGeoJson"

    ddl_schema: tuple[str, ...] | None = None
    schema: DataSchema | None = None


ReadStep = (
    ReadStepCsv
    | ReadStepGeoJson
    | ReadStepEsriShapefile
    | ReadStepParquet
    | ReadStepJson
    | ReadStepNdJson
    | ReadStepNdGeoJson
)
"""How data is read into columns."""


# --- Transforming and merging ---


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlQueryStep:
    """A query; with an alias it becomes a view for later steps, without one it is the result."""

    alias: str | None = None
    query: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TemporalTable:
    """A stream turned into a temporal table (as-of joins)."""

    name: str
    primary_key: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformSql:
    """SQL in the dialect of `engine`. Committed in normal form: `queries` only."""

    KIND: ClassVar[str] = "Sql"

    engine: str
    version: str | None = None
    query: str | None = None
    queries: tuple[SqlQueryStep, ...] | None = None
    temporal_tables: tuple[TemporalTable, ...] | None = None


Transform = TransformSql
"""Processing that shapes data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformInput:
    """An input of a transformation; committed with a DID and an alias."""

    dataset_ref: DatasetRef
    alias: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeStrategyAppend:
    """Everything is appended."""

    KIND: ClassVar[str] = "Append"


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeStrategyLedger:
    """Records whose key was never seen are appended."""

    KIND: ClassVar[str] = "Ledger"

    primary_key: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeStrategySnapshot:
    """Differences to the current state are recorded."""

    KIND: ClassVar[str] = "Snapshot"

    primary_key: tuple[str, ...]
    compare_columns: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeStrategyChangelogStream:
    """The source is a changelog already."""

    KIND: ClassVar[str] = "ChangelogStream"

    primary_key: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeStrategyUpsertStream:
    """The source is a stream of upserts and deletes."""

    KIND: ClassVar[str] = "UpsertStream"

    primary_key: tuple[str, ...]


MergeStrategy = (
    MergeStrategyAppend
    | MergeStrategyLedger
    | MergeStrategySnapshot
    | MergeStrategyChangelogStream
    | MergeStrategyUpsertStream
)
"""How new data joins the history."""


# --- Data of blocks ---


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetInterval:
    """Closed interval of record offsets."""

    start: U64
    end: U64


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSlice:
    """A data file: hashes, offsets, bytes."""

    logical_hash: Multihash
    physical_hash: Multihash
    offset_interval: OffsetInterval
    size: U64


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A checkpoint file of an engine."""

    physical_hash: Multihash
    size: U64


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceState:
    """What was read of a source, for resuming. Kinds: `odf/etag`, `odf/last-modified`."""

    source_name: str
    kind: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecuteTransformInput:
    """Half-open intervals of blocks and offsets that a transaction consumed of an input."""

    dataset_id: DatasetId
    prev_block_hash: Multihash | None = None
    new_block_hash: Multihash | None = None
    prev_offset: U64 | None = None
    new_offset: U64 | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachmentEmbedded:
    """A file kept in the metadata."""

    path: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachmentsEmbedded:
    """Files kept in the metadata."""

    KIND: ClassVar[str] = "Embedded"

    items: tuple[AttachmentEmbedded, ...]


Attachments = AttachmentsEmbedded
"""Files that belong to a dataset."""


# --- Events ---


@dataclass(frozen=True, slots=True, kw_only=True)
class AddData:
    """Data was ingested into a root dataset."""

    KIND: ClassVar[str] = "AddData"

    prev_checkpoint: Multihash | None = None
    prev_offset: U64 | None = None
    new_data: DataSlice | None = None
    new_checkpoint: Checkpoint | None = None
    new_watermark: Timestamp | None = None
    new_source_state: SourceState | None = None
    extra: Extra | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecuteTransform:
    """A transformation was performed."""

    KIND: ClassVar[str] = "ExecuteTransform"

    query_inputs: tuple[ExecuteTransformInput, ...]
    prev_checkpoint: Multihash | None = None
    prev_offset: U64 | None = None
    new_data: DataSlice | None = None
    new_checkpoint: Checkpoint | None = None
    new_watermark: Timestamp | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seed:
    """Identity of the dataset: always the first block."""

    KIND: ClassVar[str] = "Seed"

    dataset_id: DatasetId
    dataset_kind: DatasetKind


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPollingSource:
    """How a root dataset is fed by polling."""

    KIND: ClassVar[str] = "SetPollingSource"

    fetch: FetchStep
    prepare: tuple[PrepStep, ...] | None = None
    read: ReadStep
    preprocess: Transform | None = None
    merge: MergeStrategy


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTransform:
    """The transformation of a derivative dataset."""

    KIND: ClassVar[str] = "SetTransform"

    inputs: tuple[TransformInput, ...]
    transform: Transform


@dataclass(frozen=True, slots=True, kw_only=True)
class SetVocab:
    """Names of the system columns."""

    KIND: ClassVar[str] = "SetVocab"

    offset_column: str | None = None
    operation_type_column: str | None = None
    system_time_column: str | None = None
    event_time_column: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAttachments:
    """Files that belong to the dataset."""

    KIND: ClassVar[str] = "SetAttachments"

    attachments: Attachments


@dataclass(frozen=True, slots=True, kw_only=True)
class SetInfo:
    """Description for people."""

    KIND: ClassVar[str] = "SetInfo"

    description: str | None = None
    keywords: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetLicense:
    """License of the data."""

    KIND: ClassVar[str] = "SetLicense"

    short_name: str
    name: str
    spdx_id: str | None = None
    website_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetDataSchema:
    """Schema of all later data slices: raw Arrow up to 0.36, ODF from 0.37; one of the two."""

    KIND: ClassVar[str] = "SetDataSchema"

    raw_arrow_schema: bytes | None = None
    schema: DataSchema | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPushSource:
    """How pushed data enters a root dataset."""

    KIND: ClassVar[str] = "AddPushSource"

    source_name: str
    read: ReadStep
    preprocess: Transform | None = None
    merge: MergeStrategy


@dataclass(frozen=True, slots=True, kw_only=True)
class DisablePushSource:
    """A push source ends."""

    KIND: ClassVar[str] = "DisablePushSource"

    source_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DisablePollingSource:
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


# --- Blocks and manifests ---


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataBlock:
    """One link of the chain."""

    system_time: Timestamp
    prev_block_hash: Multihash | None = None
    sequence_number: U64
    event: MetadataEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetSnapshot:
    """A dataset as defined by a person: alias, kind and the events that define it."""

    name: DatasetAlias
    kind: DatasetKind
    metadata: tuple[MetadataEvent, ...]


# --- Engine protocol ---


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetVocabulary:
    """Names of the system columns."""

    offset_column: str
    operation_type_column: str
    system_time_column: str
    event_time_column: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Watermark:
    """A watermark and when it was recorded."""

    system_time: Timestamp
    event_time: Timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class RawQueryRequest:
    """A query over raw input data."""

    input_data_paths: tuple[str, ...]
    transform: Transform
    output_data_path: str


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
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
