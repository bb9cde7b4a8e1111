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

`model.record` declares objects; each module holds those of one part of the specification. Messages
of engines stand apart in `model.messages`, which nothing here loads.

A scalar that is not optional is left out of the bytes when it equals 0. `open_map` marks the one
free-form object, kept as JSON text on the wire. The YAML form names fields in camelCase; members of
a union carry `kind`. Sources: metadata reference; `opendatafabric.fbs`.
"""

from __future__ import annotations

from odfbuild.odf.model.data import (
    Checkpoint,
    DataSlice,
    ExecuteTransformInput,
    OffsetInterval,
    SourceState,
)
from odfbuild.odf.model.data_schema import (
    DataField,
    DataSchema,
    DataType,
    DataTypeBinary,
    DataTypeBool,
    DataTypeDate,
    DataTypeDecimal,
    DataTypeDuration,
    DataTypeFloat16,
    DataTypeFloat32,
    DataTypeFloat64,
    DataTypeInt8,
    DataTypeInt16,
    DataTypeInt32,
    DataTypeInt64,
    DataTypeList,
    DataTypeMap,
    DataTypeNull,
    DataTypeOption,
    DataTypeString,
    DataTypeStruct,
    DataTypeTime,
    DataTypeTimestamp,
    DataTypeUInt8,
    DataTypeUInt16,
    DataTypeUInt32,
    DataTypeUInt64,
    TimeUnit,
)
from odfbuild.odf.model.events import (
    AddData,
    AddPushSource,
    AttachmentEmbedded,
    Attachments,
    AttachmentsEmbedded,
    DatasetKind,
    DisablePollingSource,
    DisablePushSource,
    ExecuteTransform,
    MetadataEvent,
    Seed,
    SetAttachments,
    SetDataSchema,
    SetInfo,
    SetLicense,
    SetPollingSource,
    SetTransform,
    SetVocab,
)
from odfbuild.odf.model.fetch import (
    EnvVar,
    EventTimeSource,
    EventTimeSourceFromMetadata,
    EventTimeSourceFromPath,
    EventTimeSourceFromSystemTime,
    FetchStep,
    FetchStepContainer,
    FetchStepEthereumLogs,
    FetchStepFilesGlob,
    FetchStepMqtt,
    FetchStepUrl,
    MqttQos,
    MqttTopicSubscription,
    RequestHeader,
    SourceCaching,
    SourceCachingForever,
    SourceOrdering,
)
from odfbuild.odf.model.manifests import DatasetSnapshot, MetadataBlock
from odfbuild.odf.model.merge import (
    MergeStrategy,
    MergeStrategyAppend,
    MergeStrategyChangelogStream,
    MergeStrategyLedger,
    MergeStrategySnapshot,
    MergeStrategyUpsertStream,
)
from odfbuild.odf.model.prepare import CompressionFormat, PrepStep, PrepStepDecompress, PrepStepPipe
from odfbuild.odf.model.read import (
    ReadStep,
    ReadStepCsv,
    ReadStepEsriShapefile,
    ReadStepGeoJson,
    ReadStepJson,
    ReadStepNdGeoJson,
    ReadStepNdJson,
    ReadStepParquet,
)
from odfbuild.odf.model.record import I16, I32, U32, U64, Extra
from odfbuild.odf.model.transform import (
    SqlQueryStep,
    TemporalTable,
    Transform,
    TransformInput,
    TransformSql,
)

__all__ = [
    "I16",
    "I32",
    "U32",
    "U64",
    "AddData",
    "AddPushSource",
    "AttachmentEmbedded",
    "Attachments",
    "AttachmentsEmbedded",
    "Checkpoint",
    "CompressionFormat",
    "DataField",
    "DataSchema",
    "DataSlice",
    "DataType",
    "DataTypeBinary",
    "DataTypeBool",
    "DataTypeDate",
    "DataTypeDecimal",
    "DataTypeDuration",
    "DataTypeFloat16",
    "DataTypeFloat32",
    "DataTypeFloat64",
    "DataTypeInt8",
    "DataTypeInt16",
    "DataTypeInt32",
    "DataTypeInt64",
    "DataTypeList",
    "DataTypeMap",
    "DataTypeNull",
    "DataTypeOption",
    "DataTypeString",
    "DataTypeStruct",
    "DataTypeTime",
    "DataTypeTimestamp",
    "DataTypeUInt8",
    "DataTypeUInt16",
    "DataTypeUInt32",
    "DataTypeUInt64",
    "DatasetKind",
    "DatasetSnapshot",
    "DisablePollingSource",
    "DisablePushSource",
    "EnvVar",
    "EventTimeSource",
    "EventTimeSourceFromMetadata",
    "EventTimeSourceFromPath",
    "EventTimeSourceFromSystemTime",
    "ExecuteTransform",
    "ExecuteTransformInput",
    "Extra",
    "FetchStep",
    "FetchStepContainer",
    "FetchStepEthereumLogs",
    "FetchStepFilesGlob",
    "FetchStepMqtt",
    "FetchStepUrl",
    "MergeStrategy",
    "MergeStrategyAppend",
    "MergeStrategyChangelogStream",
    "MergeStrategyLedger",
    "MergeStrategySnapshot",
    "MergeStrategyUpsertStream",
    "MetadataBlock",
    "MetadataEvent",
    "MqttQos",
    "MqttTopicSubscription",
    "OffsetInterval",
    "PrepStep",
    "PrepStepDecompress",
    "PrepStepPipe",
    "ReadStep",
    "ReadStepCsv",
    "ReadStepEsriShapefile",
    "ReadStepGeoJson",
    "ReadStepJson",
    "ReadStepNdGeoJson",
    "ReadStepNdJson",
    "ReadStepParquet",
    "RequestHeader",
    "Seed",
    "SetAttachments",
    "SetDataSchema",
    "SetInfo",
    "SetLicense",
    "SetPollingSource",
    "SetTransform",
    "SetVocab",
    "SourceCaching",
    "SourceCachingForever",
    "SourceOrdering",
    "SourceState",
    "SqlQueryStep",
    "TemporalTable",
    "TimeUnit",
    "Transform",
    "TransformInput",
    "TransformSql",
]
