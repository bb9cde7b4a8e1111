"""Messages from a broker that are not committed yet.

Each batch is a journal with one line for each message: its packet identifier, a tab, the payload.
A message is acknowledged to the broker only once its line is on disk, and a journal is settled only
once a chain names it in its source state. So a crash at any point neither loses nor repeats one.
Of the messages that were settled last, marks are kept: an acknowledgement may be lost on its way,
and then the broker sends those messages again. Of retained messages the last one of each topic is
known by a hash: the broker sends it to everybody who asks, and only another one is news.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from odfbuild.values import Value

IN_FLIGHT = 1000
"""Most messages that the broker may believe unacknowledged (MQTT 5, Receive Maximum).

Acknowledgements are sent in order, so those that get lost are of the newest messages.
"""

_PACKET_BITS = 16
_TOPIC_BITS = 64


class Message(Value):
    """A payload as one line, and the packet identifier under which it came.

    In front of the identifier of a retained one is a hash of its topic.
    """

    packet: int
    line: bytes

    @classmethod
    def of(cls, packet: int, payload: bytes, retained_in: str | None = None) -> Message:
        """A payload becomes one line: line breaks in it become blanks."""
        if retained_in is not None:
            topic = hashlib.blake2b(retained_in.encode(), digest_size=_TOPIC_BITS // 8).digest()
            packet |= int.from_bytes(b"\1" + topic, "big") << _PACKET_BITS
        return cls(packet, b" ".join(payload.strip().splitlines()))

    @property
    def mark(self) -> str:
        """What it has in common with the same message when it is sent again."""
        return f"{self.packet} {self.digest}"

    @property
    def digest(self) -> str:
        """A hash of the payload."""
        return hashlib.blake2b(self.line, digest_size=16).hexdigest()

    @property
    def topic(self) -> str | None:
        """A hash of the topic of a retained message; `None` for others."""
        topic = self.packet >> _PACKET_BITS
        return f"{topic:x}" if topic else None


@dataclass(slots=True)
class Journal:
    """One batch; its name is what the chain says once it is committed."""

    file: Path
    messages: int = 0
    _open: IO[bytes] | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """Unique among all batches of all datasets."""
        return self.file.stem

    def append(self, messages: list[Message]) -> None:
        """Put messages on disk; only after that may they be acknowledged."""
        if self._open is None:
            self._open = self.file.open("ab")
        for message in messages:
            self._open.write(b"%d\t%s\n" % (message.packet, message.line))
        self._open.flush()
        os.fsync(self._open.fileno())
        self.messages += len(messages)

    def read(self) -> Iterator[Message]:
        """All messages that are whole."""
        with self.file.open("rb") as file:
            for line in file:
                packet, tab, payload = line.partition(b"\t")
                # A line that was cut off was never acknowledged, so it will come again.
                if tab and payload.endswith(b"\n"):
                    yield Message(int(packet), payload[:-1])

    def write_payloads(self, target: Path) -> Path:
        """The payloads alone, one to a line, in `target`."""
        with target.open("wb") as sink:
            for message in self.read():
                sink.write(message.line + b"\n")
        return target

    def close(self) -> None:
        """Let go of the file."""
        if self._open is not None:
            self._open.close()
            self._open = None


def rename_inbox(folder: Path, old: str, new: str) -> None:
    """What belonged to the dataset `old` belongs to `new`; nothing when that was done already."""
    source, target = _folder(folder, old), _folder(folder, new)
    if source == target or not source.is_dir():
        return
    if target.exists():  # of a dataset that had that name once
        target.replace(target.with_name(f"{target.name}.{uuid.uuid4()}"))
    source.replace(target)


def put_away_inbox(folder: Path, dataset: str, target: Path) -> None:
    """Keep in `target` what came for a deleted dataset: no later one of its name gets it."""
    source = _folder(folder, dataset)
    if source.is_dir():
        shutil.move(source, target)


def bring_back_inbox(source: Path, folder: Path, dataset: str) -> None:
    """What `put_away_inbox` kept is there again."""
    if source.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        shutil.move(source, _folder(folder, dataset))


def _folder(folder: Path, dataset: str) -> Path:
    return folder / dataset.lower().replace("/", "%2F")


class Inbox:
    """The journals of one dataset, and the name under which the broker knows it."""

    def __init__(self, folder: Path, dataset: str) -> None:
        self._folder = _folder(folder, dataset)
        self._settled = self._folder / "settled"
        self._retained = self._folder / "retained"

    def journals(self) -> list[Journal]:
        """Those that are left from earlier runs, oldest first."""
        if not self._folder.is_dir():
            return []
        found = [Journal(file) for file in self._folder.glob("*.journal")]
        for journal in found:
            journal.messages = sum(1 for _ in journal.read())
        return sorted(found, key=lambda journal: journal.file.stat().st_mtime_ns)

    def client(self, first: str) -> str:
        """The name of the session: what it was at first, also after the dataset was renamed."""
        file = self._folder / "client"
        try:
            return file.read_text(encoding="ascii")
        except FileNotFoundError:
            self._folder.mkdir(parents=True, exist_ok=True)
            file.write_text(first, encoding="ascii")
            return first

    def begin(self) -> Journal:
        """A new, empty batch."""
        self._folder.mkdir(parents=True, exist_ok=True)
        return Journal(self._folder / f"{uuid.uuid4()}.journal")

    def settle(self, journal: Journal) -> None:
        """A chain holds this batch: it is never given out again."""
        journal.close()
        if journal.messages:
            marks = [*self._marks(), *(message.mark for message in journal.read())]
            _write(self._settled, marks[-IN_FLIGHT:])
        journal.file.unlink(missing_ok=True)

    def retained(self) -> dict[str, str] | None:
        """Digests of the last retained messages that we have, by topic; `None`: nobody knows."""
        lines = _lines(self._retained)
        kept = dict(line.split() for line in lines or ())
        left = (message for journal in self.journals() for message in journal.read())
        found = {m.topic: m.digest for m in left if m.topic is not None}
        return kept | found if found or lines is not None else None

    def keep_retained(self, digests: Mapping[str, str]) -> None:
        """Remember the last retained messages of all topics, which are on disk or no news."""
        self._folder.mkdir(parents=True, exist_ok=True)
        _write(self._retained, [f"{topic} {digest}" for topic, digest in digests.items()])

    def maybe_sent_again(self) -> set[str]:
        """Marks of messages that the broker may believe unacknowledged although we have them."""
        left = (message.mark for journal in self.journals() for message in journal.read())
        return {*self._marks(), *left}

    def _marks(self) -> list[str]:
        return _lines(self._settled) or []


def _write(file: Path, lines: Sequence[str]) -> None:
    staged = file.with_suffix(".new")
    staged.write_text("\n".join(lines), encoding="ascii")
    staged.replace(file)


def _lines(file: Path) -> list[str] | None:
    try:
        return file.read_text(encoding="ascii").splitlines()
    except FileNotFoundError:
        return None
