"""What a topic looks like, for whoever writes or checks a definition of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from odfbuild.errors import OdfbuildError
from odfbuild.ingest.fetch.kafka.address import Wanted, named, wanted
from odfbuild.ingest.fetch.kafka.consumer import Topic, open_topic
from odfbuild.ingest.fetch.kafka.records import Lines, Message
from odfbuild.ingest.guess import InferredFormat, guess
from odfbuild.ingest.secrets import remember_password, resolve_address
from odfbuild.ingest.settings import IngestSettings
from odfbuild.values import Value

_MESSAGES = 1000


class TopicKey(Value):
    """The keys of messages: the member of their values that repeats them, if there is one.

    `is_json`: they are numbers, not text. `ddl` is their type.
    """

    member: str | None
    is_json: bool
    ddl: str


class LookedAt(Value):
    """The first messages of a topic: their columns, and what their keys are, if all have one."""

    guess: InferredFormat
    key: TopicKey | None


def look_at_topic(template: str, settings: IngestSettings, root: Path) -> LookedAt:
    """Connect to an address, in which `${{ env.X }}` is filled in, and read the first messages.

    Raises `OdfbuildError`, without a place, because there may be no definition.
    """
    with _opened(template, settings, root) as (asked, topic):
        messages = list(_first(topic))
    lines = Lines(asked, root, named(template), tombstones="skip", operation="op", keeps_bad=False)
    try:
        records = [json.loads(line) for each in messages for line in lines.of(each)]
    except OdfbuildError as error:
        raise error.changed(location=None) from None
    return LookedAt(
        guess([records], is_text=False),
        _key([each for each in messages if each.value is not None]),
    )


def size_of_topic(template: str, settings: IngestSettings, root: Path) -> int:
    """How many offsets the partitions have now. Raises `OdfbuildError`."""
    with _opened(template, settings, root) as (_, topic):
        return sum(end - low for low, end in topic.bounds().values())


@contextmanager
def _opened(template: str, settings: IngestSettings, root: Path) -> Iterator[tuple[Wanted, Topic]]:
    try:
        url = resolve_address(template)
        remember_password(url)
        asked = wanted(url, template)
        with open_topic(asked, settings, root, named(template)) as topic:
            yield asked, topic
    except OdfbuildError as error:
        raise error.changed(location=None) from None


def _first(topic: Topic) -> Iterator[Message]:
    """The first messages of each partition."""
    bounds = topic.bounds()
    share = max(1, _MESSAGES // max(1, len(bounds)))
    for partition, (low, end) in bounds.items():
        if low < end:
            yield from topic.messages(partition, low, min(end, low + share))


def _key(messages: list[Message]) -> TopicKey | None:
    """What the keys are; `None` where some messages have none, or they are no simple values."""
    keys: list[str] = []
    for each in messages:
        try:
            keys.append((each.key or b"").decode())
        except UnicodeDecodeError:
            return None
    if not keys or not all(keys):
        return None
    values = [_parsed(each) for each in keys]
    if any(isinstance(each, dict | list) for each in values):
        return None
    is_json = all(isinstance(each, int) and not isinstance(each, bool) for each in values)
    found = [_parsed((each.value or b"").decode(errors="replace")) for each in messages]
    objects = [each for each in found if isinstance(each, dict)]
    wanted_values: list[Any] = values if is_json else list(keys)
    members = [
        name
        for name in (objects[0] if len(objects) == len(keys) else {})
        if [each.get(name) for each in objects] == wanted_values
    ]
    return TopicKey(members[0] if members else None, is_json, "BIGINT" if is_json else "STRING")


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
