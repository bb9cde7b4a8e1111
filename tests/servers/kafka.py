"""A cluster of Kafka: the mock cluster of librdkafka, in a process of its own that can be killed.

It speaks Kafka's protocol over sockets, keeps messages in memory, and knows neither retention nor
compaction nor logins. Run as `python -m tests.servers.kafka`: reads a JSON line for each call.
"""

from __future__ import annotations

import base64
import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PARTITIONS = 4
"""How many a topic of the mock cluster has."""


@dataclass(frozen=True)
class Said:
    """A message to send; `value` is `None` for a tombstone."""

    value: str | bytes | None
    key: str | None = None
    partition: int = 0
    headers: tuple[tuple[str, str], ...] = ()
    millis: int = 1_767_225_600_000


@dataclass(frozen=True)
class Cluster:
    """A running cluster."""

    process: subprocess.Popen[str]
    brokers: str

    def url(self, topic: str, query: str = "") -> str:
        return f"kafka://{self.brokers}/{topic}{'?' if query else ''}{query}"

    def send(self, topic: str, *messages: Said | str) -> None:
        """Send messages in their order, and wait until the cluster has them."""
        said = [Said(each) if isinstance(each, str) else each for each in messages]
        self._call(topic, [_packed(each) for each in said])

    def make(self, topic: str) -> None:
        """A topic without messages."""
        self._call(topic, [])

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def _call(self, topic: str, messages: Sequence[dict[str, Any]]) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps([topic, messages]), file=self.process.stdin, flush=True)
        assert self.process.stdout.readline() == "ok\n"


@contextlib.contextmanager
def kafka() -> Iterator[Cluster]:
    """A cluster of one broker."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.servers.kafka"],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield Cluster(process, process.stdout.readline().strip())
    finally:
        process.kill()
        process.communicate()


def _packed(said: Said) -> dict[str, Any]:
    value = said.value.encode() if isinstance(said.value, str) else said.value
    return {
        "value": None if value is None else base64.b64encode(value).decode(),
        "key": said.key,
        "partition": said.partition,
        "headers": list(said.headers),
        "timestamp": said.millis,
    }


def _serve() -> None:
    from confluent_kafka import Producer

    producer = Producer({"test.mock.num.brokers": 1, "linger.ms": 0})
    brokers = producer.list_topics(timeout=60).brokers.values()
    print(",".join(f"{each.host}:{each.port}" for each in brokers), flush=True)
    for line in sys.stdin:
        topic, messages = json.loads(line)
        producer.list_topics(topic, timeout=60)
        for each in messages:
            value = each.pop("value")
            headers = [(name, text.encode()) for name, text in each.pop("headers")]
            data = None if value is None else base64.b64decode(value)
            producer.produce(topic, data, headers=headers, **each)
        assert producer.flush(60) == 0
        print("ok", flush=True)


if __name__ == "__main__":
    _serve()
