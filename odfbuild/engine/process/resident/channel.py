"""Requests and answers between a command and a resident engine, over a socket of one user.

Both sides are programs of the same user, from the same code, and check that of each other; so what
goes over the socket are Python's own pickles. Two kinds of values stay where they are: functions
that a request holds are called back, and a dataset is read from its folder, while objects that are
not there are brought by the command, which knows where else they may be.
"""

from __future__ import annotations

import dataclasses
import io
import pickle
import socket
import struct
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path, PurePath
from threading import RLock
from types import FunctionType, MethodType
from typing import Any, TypeVar

from odfbuild.engine.process.resident.card import Card, is_own
from odfbuild.errors import OdfbuildError
from odfbuild.odf.multihash import Multihash
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.storage import ObjectKind
from odfbuild.values import Value

T = TypeVar("T")
_LENGTH = struct.Struct(">Q")
_PEER = struct.Struct("3i")
_XUCRED = struct.Struct("=IIh")


class Lost(Exception):
    """The other side is gone."""


def peer_of(connection: socket.socket) -> int:
    """The user id of the process at the other end, as the kernel says."""
    if hasattr(socket, "SO_PEERCRED"):
        data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
        return int(_PEER.unpack(data)[1])
    return int(_XUCRED.unpack_from(connection.getsockopt(0, 1, 128))[1])  # macOS: LOCAL_PEERCRED


def ask(card: Card, *question: Any) -> Any:
    """What the engine of `card` answers; raises `Lost` when it does not, and what it raises."""
    if not is_own(Path(card.socket).parent):
        raise Lost("the folder of its socket is open to others")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.connect(card.socket)
            mine = peer_of(connection) == Path(card.socket).lstat().st_uid
        except OSError as error:
            raise Lost(str(error)) from None
        if not mine:
            raise Lost("it is another user's")
        return Channel(connection).ask(*question)


def dumps(value: Any) -> bytes:
    """A value that holds no functions and no datasets, as the other side reads it."""
    buffer = io.BytesIO()
    _Pickler(buffer, []).dump(value)
    return buffer.getvalue()


class Channel:
    """One connection. `kept` is what requests of this side hold and the other side refers to."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._kept: list[Any] = []
        self._asking = RLock()

    def send(self, *message: Any) -> None:
        """Send a message; raises `Lost` when nobody takes it."""
        buffer = io.BytesIO()
        _Pickler(buffer, self._kept).dump(message)
        try:
            self._connection.sendall(_LENGTH.pack(buffer.tell()))
            self._connection.sendall(buffer.getbuffer())
        except OSError as error:
            raise Lost(str(error)) from None

    def receive(self) -> Any:
        """The next message; raises `Lost` when there will be none."""
        (size,) = _LENGTH.unpack(self._bytes(_LENGTH.size))
        return _Unpickler(io.BytesIO(self._bytes(size)), self).load()

    def ask(self, *question: Any) -> Any:
        """What the other side answers; it may call back before. Raises what it raised."""
        with self._asking:
            self.send(*question)
            while True:
                kind, *rest = self.receive()
                if kind == "call":
                    self.answer(partial(_call, self._kept, *rest))
                elif kind == "error":
                    raise rest[0]
                else:
                    return rest[0]

    def answer(self, work: Callable[[], Any]) -> None:
        """Send what `work` returns or raises."""
        try:
            result = work()
        except Lost:
            raise
        except Exception as error:
            self.send("error", _sendable(error))
        else:
            self.send("value", result)

    def _bytes(self, count: int) -> bytearray:
        data = bytearray(count)
        view = memoryview(data)
        while view:
            try:
                read = self._connection.recv_into(view)
            except OSError as error:
                raise Lost(str(error)) from None
            if not read:
                raise Lost("the connection was closed")
            view = view[read:]
        return data


def _call(kept: Sequence[Any], number: int, arguments: Sequence[Any]) -> Any:
    return kept[number](*arguments)


def _sendable(error: Exception) -> Exception:
    try:
        dumps(error)
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


class _Pickler(pickle.Pickler):
    def __init__(self, into: io.BytesIO, kept: list[Any]) -> None:
        super().__init__(into, pickle.HIGHEST_PROTOCOL)
        self._kept = kept

    def persistent_id(self, value: Any) -> Any:
        if isinstance(value, DatasetStore):
            blocks = None if value.blocks is None else self._keep(value.read_raw)
            bring = self._keep(value.bring_all)
            return ("store", bring, blocks, value.folder, value.name, value.branch)
        return ("function", self._keep(value)) if _is_local(value) else None

    def reducer_override(self, value: Any) -> Any:
        """Frozen dataclasses are filled past what freezes them, files are named in full."""
        if isinstance(value, PurePath):
            return Path, (str(value.absolute() if isinstance(value, Path) else value),)
        special = type | Value | OdfbuildError  # which say themselves how they are made
        if dataclasses.is_dataclass(value) and not isinstance(value, special):
            fields = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
            return _made, (type(value), fields)
        return NotImplemented

    def _keep(self, value: Any) -> int:
        self._kept.append(value)
        return len(self._kept) - 1


def _is_local(value: Any) -> bool:
    """Whether it is a function that the other side cannot import."""
    function = getattr(value, "__wrapped__", value)
    if isinstance(function, MethodType | partial):
        return True
    return isinstance(function, FunctionType) and "<" in function.__qualname__


def _made(cls: type[T], fields: dict[str, Any]) -> T:
    made = cls.__new__(cls)
    for name, value in fields.items():
        object.__setattr__(made, name, value)
    return made


class _Unpickler(pickle.Unpickler):
    def __init__(self, data: io.BytesIO, channel: Channel) -> None:
        super().__init__(data)
        self._channel = channel

    def persistent_load(self, reference: Any) -> Any:
        kind, number, *rest = reference
        if kind == "function":
            return partial(self._call, number)
        blocks, folder, name, branch = rest
        store = _Chain(folder, name, branch=branch, elsewhere=_AtTheCommand(self._call, number))
        if blocks is not None:
            store.ask = partial(self._call, blocks)
        return store

    def _call(self, number: int, *arguments: Any) -> Any:
        return self._channel.ask("call", number, arguments)


class _Chain(DatasetStore):
    """A dataset whose folder need not have its blocks: the command reads them."""

    ask: Callable[[Multihash], bytes] | None = None

    def read_raw(self, block: Multihash, *, recent: bool = True) -> bytes:
        """The bytes of a block, as the command has them."""
        return super().read_raw(block) if self.ask is None else self.ask(block)


class _AtTheCommand:
    """Objects of a dataset that its folder lacks: the command brings them."""

    def __init__(self, call: Callable[..., Any], number: int) -> None:
        self._call = call
        self._number = number

    def owner(self, store: DatasetStore) -> str | None:
        """Who publishes a dataset is not the engine's business."""
        return None

    def has(self, store: DatasetStore) -> bool:
        """The command says when nobody has an object."""
        return True

    def fetch(self, store: DatasetStore, kind: ObjectKind, hashes: Sequence[Multihash]) -> None:
        """Let the command bring objects into the folder; raises what it raises."""
        self._call(self._number, kind, list(hashes))
