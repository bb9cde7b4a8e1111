"""Where the data of a root dataset is fetched from."""

from __future__ import annotations

from enum import Enum
from typing import ClassVar

from odfbuild.odf.model.record import I32, U64, Record, implied


class SourceOrdering(Enum):
    """Order in which the files of a glob are ingested."""

    ByEventTime = 0
    ByName = 1


class MqttQos(Enum):
    """MQTT quality of service class."""

    AtMostOnce = 0
    AtLeastOnce = 1
    ExactlyOnce = 2


class RequestHeader(Record):
    """A header sent with a request."""

    name: str
    value: str


class EnvVar(Record):
    """An environment variable of a job; without value it is passed through."""

    name: str
    value: str | None = None


class MqttTopicSubscription(Record):
    """A topic, possibly a pattern."""

    path: str
    qos: MqttQos | None = implied(default=MqttQos.AtMostOnce)


class EventTimeSourceFromMetadata(Record):
    """Event time from the source's metadata."""

    KIND: ClassVar[str] = "FromMetadata"


class EventTimeSourceFromPath(Record):
    """Event time from the path: first group of `pattern`, read by `timestampFormat`."""

    KIND: ClassVar[str] = "FromPath"

    pattern: str
    timestamp_format: str | None = implied(default="%Y-%m-%d")


class EventTimeSourceFromSystemTime(Record):
    """Event time is the time of ingestion."""

    KIND: ClassVar[str] = "FromSystemTime"


EventTimeSource = (
    EventTimeSourceFromMetadata | EventTimeSourceFromPath | EventTimeSourceFromSystemTime
)
"""Where the event time of records without one comes from."""


class SourceCachingForever(Record):
    """Processed once, never ingested again."""

    KIND: ClassVar[str] = "Forever"


SourceCaching = SourceCachingForever
"""How source data is cached."""


class FetchStepUrl(Record):
    """Data at a URL."""

    KIND: ClassVar[str] = "Url"

    url: str
    event_time: EventTimeSource | None = None
    cache: SourceCaching | None = None
    headers: tuple[RequestHeader, ...] | None = None


class FetchStepFilesGlob(Record):
    """Files that match a glob pattern, one after the other."""

    KIND: ClassVar[str] = "FilesGlob"

    path: str
    event_time: EventTimeSource | None = None
    cache: SourceCaching | None = None
    order: SourceOrdering | None = implied(default=SourceOrdering.ByName)


class FetchStepContainer(Record):
    """Standard output of an OCI container."""

    KIND: ClassVar[str] = "Container"

    image: str
    command: tuple[str, ...] | None = None
    args: tuple[str, ...] | None = None
    env: tuple[EnvVar, ...] | None = None


class FetchStepMqtt(Record):
    """Messages of an MQTT broker."""

    KIND: ClassVar[str] = "Mqtt"

    host: str
    port: I32
    username: str | None = None
    password: str | None = None
    topics: tuple[MqttTopicSubscription, ...]


class FetchStepEthereumLogs(Record):
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
