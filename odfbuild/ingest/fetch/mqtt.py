"""Messages of an MQTT broker, one line each, one batch a run.

The broker keeps a session for the dataset, so messages that come between two runs wait there (with
QoS 1 or 2), and is asked for retained messages, of which it has the last one of each topic. What
was taken is kept in the inbox until a chain holds it. `ExactlyOnce` is subscribed with QoS 1: the
client library gives a QoS 2 message away before it could be on disk, while a message of QoS 1 that
comes twice is known by its packet identifier. Source: specification, `FetchStep::Mqtt`; MQTT 5;
reference behaviour, fetch steps. Needs the extra `mqtt`.
"""

from __future__ import annotations

import hashlib
import re
import ssl
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from odfbuild.errors import IngestError, missing_extra
from odfbuild.ingest.fetch.context import FetchContext
from odfbuild.ingest.fetch.inbox import IN_FLIGHT, Inbox, Journal, Message
from odfbuild.ingest.fetch.result import ETAG, Fetched, etag
from odfbuild.ingest.secrets import resolve, scrub
from odfbuild.ingest.settings import IngestSettings
from odfbuild.odf.model import FetchStepMqtt, MqttQos, SourceState

if TYPE_CHECKING:
    from paho.mqtt.client import Client

_KEEP_ALIVE = 60
_SECURE_PORT = 8883
"""Registered for MQTT over TLS; the definition of a source has no other way to ask for that."""
_FOREVER = 0xFFFFFFFF
_REFUSED = 128
_TURN_SECONDS = 0.05
_SHARED = re.compile(r"^\$share/[^/]+/")
"""What shared subscriptions put before the topic (MQTT 5, section 4.8.2)."""


def fetch_messages(
    step: FetchStepMqtt, state: SourceState | None, context: FetchContext
) -> Iterator[Fetched]:
    """Yield what earlier runs took and did not commit, then a new batch. Raises `IngestError`.

    The new batch is taken first: a broker that is not asked, because earlier messages cannot be
    committed, throws away what it has no room for.
    """
    inbox = Inbox(context.inbox, context.dataset)
    already, retained = inbox.maybe_sent_again(), inbox.retained()
    left = []
    for journal in inbox.journals():
        if state is not None and state.kind == ETAG and state.value == journal.name:
            inbox.settle(journal)
        else:
            left.append(journal)
    journal, problem = inbox.begin(), None
    try:
        session = _Session(step, inbox.client(_client_name(context)), context)
        found = _collect(session, journal, already, retained, context.settings)
    except IngestError as error:
        problem, found = error, inbox.retained() or {}
    finally:
        journal.close()
    if problem is None or found:
        inbox.keep_retained(found)
    for each in (*left, journal):
        if each.messages:
            yield _fetched(step, each, context)
        # Only reached once what was yielded is committed.
        inbox.settle(each)
    if problem is not None:
        raise problem


def _fetched(step: FetchStepMqtt, journal: Journal, context: FetchContext) -> Fetched:
    file = journal.write_payloads(context.scratch / "messages")
    return Fetched(file, etag(journal.name), None, _shown(step))


def _client_name(context: FetchContext) -> str:
    # At most 23 characters, which every broker takes.
    name = f"{context.project}/{context.dataset.lower()}"
    return f"odfbuild-{hashlib.sha256(name.encode()).hexdigest()[:14]}"


def _collect(
    session: _Session,
    journal: Journal,
    already: set[str],
    retained: dict[str, str] | None,
    settings: IngestSettings,
) -> dict[str, str]:
    """Take messages until none comes for a while or the batch is full.

    Then retained messages that are not as they were; where nobody knows how they were they are
    noted only. Returns how they are now.
    """
    known = dict(retained or {})

    def take(wanted: Callable[[Message], bool]) -> None:
        idle_since = time.monotonic()
        while journal.messages < settings.target_records:
            session.turn()
            received = session.take()
            if received:
                new = [m for m, again in received if not (again and m.mark in already)]
                journal.append([message for message in new if wanted(message)])
                known.update((m.topic, m.digest) for m in new if m.topic is not None)
                idle_since = time.monotonic()
            elif time.monotonic() - idle_since > settings.mqtt_idle_seconds:
                return
            session.acknowledge()

    try:
        session.open()
        take(lambda message: True)
        if session.was_known and journal.messages < settings.target_records:
            session.subscribe(again=True)
            as_before = dict(known)
            take(
                lambda message: (
                    message.topic is None
                    or (retained is not None and as_before.get(message.topic) != message.digest)
                )
            )
    finally:
        session.close()
    return known


def check_topics(step: FetchStepMqtt) -> None:
    """Raise `IngestError` when there are no topics, or patterns that none can match."""
    for topic in step.topics:
        levels = _SHARED.sub("", topic.path).split("/")
        wild = any(len(level) > 1 and ("+" in level or "#" in level) for level in levels)
        if not topic.path or wild or "#" in levels[:-1]:
            raise IngestError(
                f"'{topic.path}' is not a topic",
                code="E0416",
                help="+ stands for one whole level, # for all the last ones: a/+/c, a/#",
            )
    if not step.topics:
        raise IngestError(
            "the source has no topics", code="E0416", help="name what to read in `fetch.topics`"
        )


class _Session:
    """A connection to the broker whose turns we take ourselves, so that nothing is hurried."""

    def __init__(self, step: FetchStepMqtt, client: str, context: FetchContext) -> None:
        self._step = step
        self._settings = context.settings
        self._received: list[tuple[Message, bool]] = []
        self._to_acknowledge: list[tuple[int, int]] = []
        self._connected: Any = None
        self.was_known = False
        self._subscribed: list[Any] | None = None
        self._client = self._make_client(client)

    def open(self) -> None:
        """Connect and subscribe."""
        from paho.mqtt.packettypes import PacketTypes
        from paho.mqtt.properties import Properties

        lasting = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        lasting.SessionExpiryInterval = _FOREVER
        lasting.ReceiveMaximum = min(IN_FLIGHT, self._settings.target_records)
        try:
            if self._step.port == _SECURE_PORT:
                self._client.tls_set_context(ssl.create_default_context())
            self._client.connect(
                self._step.host,
                self._step.port,
                keepalive=_KEEP_ALIVE,
                clean_start=False,
                properties=lasting,
            )
        except (OSError, ValueError) as error:
            raise self._failed(str(error) or type(error).__name__) from None
        self._wait(lambda: self._connected is not None, "the broker does not greet")
        self.subscribe()

    def subscribe(self, *, again: bool = False) -> None:
        """Ask for the topics; `again` for their retained messages, too, where that was done."""
        from paho.mqtt.subscribeoptions import SubscribeOptions

        options = SubscribeOptions
        handling = options.RETAIN_SEND_ON_SUBSCRIBE if again else options.RETAIN_SEND_IF_NEW_SUB
        topics = [
            (
                topic.path,
                options(
                    qos=min((topic.qos or MqttQos.AtMostOnce).value, 1),
                    retainAsPublished=True,
                    retainHandling=handling,
                ),
            )
            for topic in self._step.topics
        ]
        self._subscribed = None
        try:
            self._client.subscribe(topics)
        except ValueError as error:
            raise self._failed(f"{error}", "correct `fetch.topics` in the definition") from None
        self._wait(lambda: self._subscribed is not None, "the broker does not confirm the topics")
        codes: list[Any] = self._subscribed or []
        for topic, code in zip(self._step.topics, codes, strict=False):
            if code.value >= _REFUSED:
                raise self._failed(
                    f"the broker refused the topic '{topic.path}': {code}",
                    "correct `fetch.topics`, or ask for the right to read this topic",
                )

    def turn(self) -> None:
        """Let the client read and write once."""
        from paho.mqtt.client import MQTT_ERR_SUCCESS, error_string

        code = self._client.loop(timeout=_TURN_SECONDS)
        if self._connected is not None and self._connected.is_failure:
            raise self._failed(f"the broker refused: {self._connected}")
        if code != MQTT_ERR_SUCCESS:
            raise self._failed(error_string(code))

    def take(self) -> list[tuple[Message, bool]]:
        """Messages since the last time, and for each whether the broker sends it again."""
        received, self._received = self._received, []
        return received

    def acknowledge(self) -> None:
        """Tell the broker that everything that was taken is safe."""
        for packet, qos in self._to_acknowledge:
            self._client.ack(packet, qos)
        self._to_acknowledge.clear()

    def close(self) -> None:
        """End the connection; the session stays with the broker."""
        self._client.disconnect()
        self._client.loop(timeout=_TURN_SECONDS)

    def _make_client(self, name: str) -> Client:
        try:
            from paho.mqtt.client import Client, MQTTv5
            from paho.mqtt.enums import CallbackAPIVersion
        except ImportError:
            raise missing_extra("mqtt", "sources of kind Mqtt") from None
        client = Client(CallbackAPIVersion.VERSION2, name, protocol=MQTTv5, manual_ack=True)
        if self._step.username is not None and self._step.password is not None:
            client.username_pw_set(self._step.username, resolve(self._step.password))
        client.on_connect = self._on_connect
        client.on_subscribe = self._on_subscribe
        client.on_message = self._on_message
        return client

    def _on_connect(self, _client: Any, _data: Any, flags: Any, code: Any, _props: Any) -> None:
        self._connected = code
        self.was_known = bool(flags.session_present)

    def _on_subscribe(self, _client: Any, _data: Any, _mid: Any, codes: Any, _props: Any) -> None:
        self._subscribed = codes

    def _on_message(self, _client: Any, _data: Any, message: Any) -> None:
        if message.payload.strip() and self._is_wanted(message.topic):
            topic = message.topic if message.retain else None
            found = Message.of(message.mid, message.payload, topic)
            self._received.append((found, message.dup))
        if message.qos:
            self._to_acknowledge.append((message.mid, message.qos))

    def _is_wanted(self, topic: str) -> bool:
        # The session still has the topics of an earlier definition.
        from paho.mqtt.client import topic_matches_sub

        paths = (_SHARED.sub("", each.path) for each in self._step.topics)
        return any(topic_matches_sub(path, topic) for path in paths)

    def _wait(self, done: Any, complaint: str) -> None:
        deadline = time.monotonic() + self._settings.connect_seconds
        while not done():
            if time.monotonic() > deadline:
                raise self._failed(complaint)
            self.turn()

    def _failed(self, reason: str, help: str | None = None) -> IngestError:
        return IngestError(
            scrub(f"cannot fetch from {_shown(self._step)}: {reason}"),
            code="E0416",
            help=help
            or "check `host`, `port`, `username` and `password` in `fetch`; the broker must "
            "speak MQTT 5",
        )


def _shown(step: FetchStepMqtt) -> str:
    return f"mqtt://{step.host}:{step.port}"
