"""Reads partitions of a topic, one after the other, up to an end that was seen before.

Nothing is committed to Kafka: the positions stand in the chain. Messages of transactions that were
aborted are left out. Source: librdkafka, "Introduction"; needs the extra `kafka`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odfbuild.errors import IngestError, missing_extra
from odfbuild.ingest.fetch.kafka.address import Wanted
from odfbuild.ingest.fetch.kafka.problems import (
    another_topic,
    damaged,
    no_topic,
    not_reached,
    refused,
    unusable,
)
from odfbuild.ingest.fetch.kafka.records import Message
from odfbuild.ingest.settings import IngestSettings

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError

_TURN_SECONDS = 0.2
_LONGEST_MILLIS = 86_400_000
_SILENT = logging.getLogger("odfbuild.kafka.client")
_SILENT.disabled = True  # what matters of it is in the errors


@contextmanager
def open_topic(asked: Wanted, settings: IngestSettings, root: Path, shown: str) -> Iterator[Topic]:
    """Connect to the brokers. Raises `OdfbuildError`; no text of it holds the password."""
    try:
        from confluent_kafka import Consumer, KafkaException
    except ModuleNotFoundError:
        raise missing_extra("kafka", "topics of Kafka") from None
    said: list[KafkaError] = []
    for name, path in asked.files.items():
        if not (root / path).exists():
            raise unusable(shown, f"the {name} '{path}'", "it is not there")
    conf = _configuration(asked, settings, root)
    try:
        consumer = Consumer(conf, error_cb=said.append, logger=_SILENT)
    except KafkaException as error:  # nothing was asked yet
        raise unusable(shown, "a certificate or its key", _text(error.args[0])) from None
    try:
        yield Topic(consumer, asked, settings, shown, said)
    except KafkaException as error:
        # Why connections failed is told by a callback, which only this calls.
        consumer.poll(_TURN_SECONDS)
        raise _failed(error.args[0], said, asked, shown) from None
    finally:
        consumer.close()


class Topic:
    """A topic of a cluster."""

    def __init__(
        self,
        consumer: Consumer,
        asked: Wanted,
        settings: IngestSettings,
        shown: str,
        said: list[KafkaError],
    ) -> None:
        from confluent_kafka import KafkaException

        self._consumer = consumer
        self._asked = asked
        self._settings = settings
        self._shown = shown
        self._said = said
        found = consumer.list_topics(asked.topic, timeout=settings.connect_seconds)
        topic = found.topics[asked.topic]
        if topic.error is not None:
            raise KafkaException(topic.error)
        self.cluster = found.cluster_id or "unknown"
        self.position = 0
        self._partitions = sorted(topic.partitions)

    def bounds(self) -> Mapping[int, tuple[int, int]]:
        """The first offset, and the one behind the last, of each partition as of now."""
        from confluent_kafka import TopicPartition

        seconds = self._settings.connect_seconds
        asked = [TopicPartition(self._asked.topic, each) for each in self._partitions]
        found = [self._consumer.get_watermark_offsets(each, timeout=seconds) for each in asked]
        return dict(zip(self._partitions, found, strict=True))

    def messages(self, partition: int, start: int, end: int) -> Iterator[Message]:
        """The messages with offsets in `[start, end)`, in their order; `position` comes after them.

        It is where the next run begins, also where there are no messages up to the end.
        """
        from confluent_kafka import KafkaError, KafkaException, TopicPartition

        self.position = start
        self._consumer.assign([TopicPartition(self._asked.topic, partition, start)])
        heard = time.monotonic()
        while True:
            message = self._consumer.poll(_TURN_SECONDS)
            error = None if message is None else message.error()
            if message is None or (error is not None and error.retriable()):
                if time.monotonic() - heard > self._settings.idle_seconds:
                    raise not_reached(self._shown, _last(self._said))
            elif error is None:
                self.position = min(end, message.offset())
                if self.position == end:
                    return
                self.position += 1
                yield _message(message)
                if self.position == end:
                    return
                # Whoever takes messages may take long between them.
                heard = time.monotonic()
            elif error.code() == KafkaError._PARTITION_EOF:
                # A transaction that is open now may end before `end`.
                self.position = min(end, message.offset())
                return
            elif error.code() == KafkaError._AUTO_OFFSET_RESET:
                raise another_topic(self._shown, f"offset {start} is gone while it is read")
            else:
                raise KafkaException(error)


def _message(found: Any) -> Message:
    kind, millis = found.timestamp()
    return Message(
        partition=found.partition(),
        offset=found.offset(),
        key=found.key(),
        value=found.value(),
        millis=millis if kind else None,
        headers=tuple(found.headers() or ()),
    )


def _configuration(asked: Wanted, settings: IngestSettings, root: Path) -> dict[str, Any]:
    conf: dict[str, Any] = {
        "bootstrap.servers": asked.brokers,
        "client.id": "odfbuild",
        "group.id": "odfbuild",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        "isolation.level": "read_committed",
        "auto.offset.reset": "error",
        "allow.auto.create.topics": False,
        "check.crcs": True,
        # The next partition is asked for behind the last answer.
        "fetch.wait.max.ms": 20,
        # A batch is committed before the next one is asked for.
        "max.poll.interval.ms": _LONGEST_MILLIS,
        "socket.timeout.ms": int(min(settings.idle_seconds, 300) * 1000),
        "socket.connection.setup.timeout.ms": max(1000, int(settings.connect_seconds * 1000)),
    }
    if asked.user is not None:
        conf |= {
            "sasl.mechanism": asked.sasl,
            "sasl.username": asked.user,
            "sasl.password": asked.password,
        }
    names = {(False, False): "plaintext", (True, False): "ssl"}
    names |= {(False, True): "sasl_plaintext", (True, True): "sasl_ssl"}
    conf["security.protocol"] = names[asked.tls, asked.user is not None]
    places = {
        "ca": "ssl.ca.location",
        "certificate": "ssl.certificate.location",
        "certificateKey": "ssl.key.location",
    }
    given = {places[name]: str(root / path) for name, path in asked.files.items() if name in places}
    return conf | given


def _failed(error: KafkaError, said: list[KafkaError], asked: Wanted, shown: str) -> IngestError:
    """What went wrong; where nothing was reached, what the connections said decides."""
    from confluent_kafka import KafkaError

    code = error.code()
    rights = (
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError._AUTHENTICATION,
        KafkaError._SSL,
    )
    if code in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC):
        return no_topic(shown, asked.topic, _text(error))
    if code == KafkaError._BAD_MSG:
        return damaged(shown, _text(error))
    causes = [each for each in said if each.code() in rights]
    if code in rights or causes:
        return refused(shown, _text(causes[-1] if causes else error))
    return not_reached(shown, _last(said) or _text(error))


def _last(said: list[KafkaError]) -> str:
    return _text(said[-1]) if said else ""


def _text(error: Any) -> str:
    return str(error.str()) if hasattr(error, "str") else str(error)
