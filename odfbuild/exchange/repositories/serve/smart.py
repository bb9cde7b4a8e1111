"""The Smart Transfer Protocol: the server's side of both dialogues.

A request for progress is sent only while objects are missing: a client that has sent all of them
may be waiting for the confirmation, which looks the same. What goes wrong after the handshake is
the reason of a close with code 1011, of which WebSockets allow 123 bytes.
Sources: RFC-008; reference behaviour, "Smart Transfer Protocol".
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.websockets import WebSocket, WebSocketDisconnect

from odfbuild.errors import OdfbuildError
from odfbuild.exchange.repositories.accept import Link, objects_of
from odfbuild.exchange.repositories.contract import ObjectFile, RawBlock
from odfbuild.exchange.repositories.serve.rights import Caller, Rights
from odfbuild.exchange.repositories.serve.simple import Refusal, caller_of
from odfbuild.exchange.repositories.serve.site import Push, Site, failure_of
from odfbuild.exchange.repositories.smart.archive import pack, unpack
from odfbuild.exchange.repositories.smart.messages import (
    MAX_MESSAGE,
    VERSION,
    VERSION_HEADER,
    Failure,
    Header,
    Internal,
    InvalidHead,
    Malformed,
    NameCollision,
    Nothing,
    PullMetadataResponse,
    PullObjectsRequest,
    PullObjectsResponse,
    PullRequest,
    PullResponse,
    PullStrategy,
    PushComplete,
    PushMetadataRequest,
    PushObjectsRequest,
    PushObjectsResponse,
    PushRequest,
    PushStrategy,
    RefCollision,
    Refused,
    TransferPlan,
    TransferUrl,
    Uploading,
    read,
    write,
    write_failure,
    write_ok,
)
from odfbuild.odf.identity import is_alias
from odfbuild.project.settings.serving import Serving
from odfbuild.store.dataset import DatasetStore

OFFERED = "x-offered-subprotocol"
"""The header `Sec-WebSocket-Protocol` of the handshake, under a name that libraries pass on."""

SUBPROTOCOL = "odf/smart-transfer-protocol/v1"
"""The subprotocol of the specification; the reference neither offers nor takes one."""

PROGRESS_SECONDS = 10.0
_DOWNLOAD_SECONDS = 6 * 3600
"""A client that downloads says nothing on the WebSocket."""

_REASON = 123
T = TypeVar("T")


class Smart:
    """The dialogues of a server; `address` is where clients find it, empty: where they asked."""

    def __init__(self, site: Site, rights: Rights, limits: Serving, address: str) -> None:
        self._site = site
        self._rights = rights
        self._limits = limits
        self._address = address

    async def __call__(self, socket: WebSocket) -> None:
        """Answer a handshake, and hold the dialogue."""
        alias, _, verb = socket.url.path.strip("/").rpartition("/")
        try:
            caller = caller_of(self._rights, socket.headers.get("authorization"))
            socket.scope["caller"] = caller.name
            store = await run_in_threadpool(self._check, alias, verb, caller, socket.headers)
        except Refusal as refusal:
            await socket.send_denial_response(refusal.response())
            return
        offered = socket.headers.get(OFFERED)
        chosen = [(b"sec-websocket-protocol", SUBPROTOCOL.encode())]
        await socket.accept(headers=chosen if offered == SUBPROTOCOL else None)
        channel = _Channel(socket, self._limits.idle_seconds)
        base = self._address or f"http://{socket.headers.get('host', '')}"
        try:
            if verb == "pull" and store is not None:
                await _Pull(self._site, store, channel, base, caller).run()
            else:
                name = store.name if store is not None else alias
                await _Pushing(self._site, name, channel, base, caller, self._limits).run()
        except WebSocketDisconnect:
            return
        except Refused as refused:
            await channel.fail(refused.failure)
        except Malformed as error:
            await channel.fail(Internal({verb.capitalize(): "InitialRequest"}, str(error)))
        except TimeoutError:
            await channel.fail(Internal({verb.capitalize(): "InitialRequest"}, "no message came"))

    def _check(
        self, alias: str, verb: str, caller: Caller, headers: Mapping[str, str]
    ) -> DatasetStore | None:
        """The dataset that the dialogue is about, `None` for one that a push creates."""
        if verb not in ("pull", "push"):
            raise Refusal(404)
        if not is_alias(alias):
            raise Refusal(400, "no name of a dataset")
        store = self._site.find(alias)
        readable = store is not None and caller.may_read(store.name)
        if verb == "pull" and not readable:
            raise Refusal(404)
        if verb == "push" and not caller.may_write(alias):
            if store is not None and not readable:
                raise Refusal(404)
            raise Refusal(
                403 if caller.token else 401, "Unauthorized" if caller.token else "Unauthenticated"
            )
        version = headers.get(VERSION_HEADER, "")
        if not re.fullmatch(r"-?[0-9]+", version):
            raise Refusal(400, f"Header `{VERSION_HEADER}` is missing, or is no number")
        # As text: the number may have any number of digits.
        if version.lstrip("0") != str(VERSION):
            raise Refusal(400, "Incompatible client version")
        if self._site.draining:
            raise Refusal(503, "The server is about to end")
        return store


class _Channel:
    """Messages of one dialogue."""

    def __init__(self, socket: WebSocket, seconds: float) -> None:
        self._socket = socket
        self.seconds = seconds

    async def receive(self, form: type[T], seconds: float | None = None) -> T:
        """The next message. `Malformed` when it is another, `TimeoutError` when none comes."""
        wait = self.seconds if seconds is None else seconds
        event = await asyncio.wait_for(self._socket.receive(), wait)
        if event["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(event.get("code", 1006))
        text = event.get("text")
        if text is None:
            raise Malformed("it is no text")
        return (
            await run_in_threadpool(read, form, text) if len(text) > 1 << 14 else read(form, text)
        )

    async def send(self, text: str) -> None:
        """Send a message; a peer that does not read is given up."""
        await asyncio.wait_for(self._socket.send_text(text), self.seconds)

    async def fail(self, failure: Failure) -> None:
        """End with an error, cut to what a close can hold; the log has all of it."""
        reason = write_failure(failure)
        self._socket.scope["said"] = reason
        if len(reason) > _REASON and isinstance(failure, Internal):
            room = len(failure.error_message.encode()) - (len(reason.encode()) - _REASON)
            message = failure.error_message.encode()[: max(0, room)].decode(errors="ignore")
            reason = write_failure(Internal(failure.phase, message))
        if len(reason.encode()) > _REASON and isinstance(failure, NameCollision):
            reason = write_failure(Internal({"Push": "EnsuringTargetExists"}, "name taken"))
        await self.end(1011, reason)

    async def refuse(self, failure: Failure) -> None:
        """Answer the first message with an error, which only then is a message of its own."""
        text = write_failure(failure)
        self._socket.scope["said"] = text
        await self.send(text)
        await self.until_closed()

    async def end(self, code: int, reason: str = "") -> None:
        """Close; whoever is gone already does not mind."""
        try:
            await asyncio.wait_for(self._socket.close(code, reason), self.seconds)
        except (RuntimeError, WebSocketDisconnect, TimeoutError, OSError):
            return

    async def until_closed(self) -> None:
        """Wait until the client closes, for a short time."""
        try:
            while True:
                event = await asyncio.wait_for(self._socket.receive(), 5)
                if event["type"] == "websocket.disconnect":
                    return
        except (TimeoutError, RuntimeError):
            await self.end(1000)


class _Places:
    """Where objects of a dataset are fetched from or sent to: on this server."""

    def __init__(self, base: str, alias: str, caller: Caller) -> None:
        self._base = f"{base.rstrip('/')}/{alias}"
        self._headers: tuple[Header, ...] = (Header(VERSION_HEADER, str(VERSION)),)
        if caller.token is not None:
            self._headers += (Header("authorization", f"Bearer {caller.token}"),)

    def url(self, kind: str, hash: object) -> TransferUrl:
        """The place of an object."""
        return TransferUrl(f"{self._base}/{kind}/{hash}", self._headers)


class _Pull:
    """A client pulls."""

    def __init__(
        self, site: Site, store: DatasetStore, channel: _Channel, base: str, caller: Caller
    ) -> None:
        self._site, self._store, self._channel = site, store, channel
        self._places = _Places(base, store.name, caller)

    async def run(self) -> None:
        """From the request to the close of the client."""
        channel = self._channel
        asked = await channel.receive(PullRequest)
        try:
            blocks = await run_in_threadpool(
                self._site.blocks,
                self._store,
                asked.begin_after,
                asked.stop_at,
                asked.force_update_if_diverged,
            )
        except Refused as refused:
            await channel.refuse(refused.failure)
            return
        except OdfbuildError as error:
            raise Refused(Internal({"Pull": "InitialRequest"}, error.message)) from None
        plan = await run_in_threadpool(TransferPlan.of, blocks)
        await channel.send(write_ok(PullResponse(plan)))
        await channel.receive(Nothing)
        text = await run_in_threadpool(_metadata, blocks)
        if len(text) > MAX_MESSAGE:
            raise Refused(Internal({"Pull": "MetadataRequest"}, "too many blocks for a message"))
        await channel.send(text)
        del text, blocks
        while True:
            wanted = await channel.receive(PullObjectsRequest, _DOWNLOAD_SECONDS)
            strategies = tuple(
                PullStrategy(each, self._places.url(*each.key)) for each in wanted.object_files
            )
            await channel.send(write(PullObjectsResponse(strategies)))


def _metadata(blocks: Sequence[RawBlock]) -> str:
    return write(PullMetadataResponse(pack(blocks)))


class _Pushing:
    """A client pushes."""

    def __init__(
        self,
        site: Site,
        alias: str,
        channel: _Channel,
        base: str,
        caller: Caller,
        limits: Serving,
    ) -> None:
        self._site, self._alias, self._channel = site, alias, channel
        self._caller, self._limits = caller, limits
        self._places = _Places(base, alias, caller)

    async def run(self) -> None:
        """From the request to the confirmation."""
        channel, site, alias = self._channel, self._site, self._alias
        asked = await channel.receive(PushRequest)
        force = asked.force_update_if_diverged
        try:
            head = await self._begin(asked.current_head, force)
        except Refused as refused:
            await channel.refuse(refused.failure)
            return
        await channel.send(write_ok(Nothing()))
        batch = (await channel.receive(PushMetadataRequest)).new_blocks
        if batch.num_blocks != asked.transfer_plan.num_blocks:
            raise Refused(_internal("MetadataRequest", "plan and archive differ in blocks"))
        blocks = await _guarded("MetadataRequest", unpack, batch)
        try:
            links = await _guarded("MetadataRequest", site.examine, alias, head, blocks, force)
        except Refused as refused:
            if isinstance(refused.failure, RefCollision | NameCollision):
                # Clients understand a collision only where the dataset is made: in the next reply.
                await channel.send(write_ok(Nothing()))
                await channel.receive(PushObjectsRequest)
            raise
        await channel.send(write_ok(Nothing()))
        push = Push(alias, self._caller.token or "")
        site.pushes.append(push)
        try:
            await self._objects(push, links)
            push.expected.clear()
            complete = await channel.receive(PushComplete)
            await _guarded(
                "CompleteRequest", site.commit, alias, head, blocks, links, complete.info
            )
        finally:
            site.pushes.remove(push)
        await channel.send(write(Nothing()))
        await channel.until_closed()

    async def _begin(self, expected: Any, force: bool) -> Any:
        """The head that the push goes on from."""
        await _guarded("InitialRequest", self._site.check_free, self._alias)
        store = self._site.workspace.dataset(self._alias)
        head = await run_in_threadpool(store.head)
        if head != expected:
            raise Refused(InvalidHead(actual_head=expected, expected_head=head))
        if force and not self._caller.may_replace(self._alias):
            raise Refused(_internal("InitialRequest", "the token may not replace the history"))
        return head

    async def _objects(self, push: Push, links: Iterable[Link]) -> None:
        """Tell where objects go, until the client says that it has sent the last."""
        announced = {(each.kind, each.hash): each for each in objects_of(tuple(links))}
        more = True
        while more:
            asked = await self._channel.receive(PushObjectsRequest)
            unknown = [each for each in asked.object_files if each.key not in announced]
            if unknown:
                raise Refused(_internal("ObjectsRequest", "an object is in none of the blocks"))
            wanted = [announced[each.key] for each in asked.object_files]
            limit = self._limits.max_object_gb << 30
            if any(each.size > limit for each in wanted):
                raise Refused(_internal("ObjectsRequest", "an object is too large"))
            await run_in_threadpool(self._site.prepare, self._alias)
            missing = await run_in_threadpool(self._missing, wanted)
            push.expected.update({(each.kind, each.hash): each.size for each in missing})
            strategies = tuple(
                PushStrategy(each, "HttpUpload", self._places.url(*each.key))
                if each.key in push.expected
                else PushStrategy(each, "SkipUpload")
                for each in asked.object_files
            )
            await self._channel.send(write_ok(PushObjectsResponse(strategies)))
            await self._uploads(push, missing)
            more = asked.is_truncated

    def _missing(self, wanted: Iterable[ObjectFile]) -> list[ObjectFile]:
        return [each for each in wanted if not self._site.has(self._alias, each)]

    async def _uploads(self, push: Push, missing: list[ObjectFile]) -> None:
        """Wait until all is sent, and ask how far that is while objects are missing."""
        push.heard = time.monotonic()
        while True:
            try:
                said = await self._channel.receive(Uploading, PROGRESS_SECONDS)
            except TimeoutError:
                missing = await run_in_threadpool(self._missing, missing)
                if time.monotonic() - push.heard > self._limits.idle_seconds:
                    raise
                if missing:
                    await self._channel.send(write(Nothing()))
                continue
            push.heard = time.monotonic()
            if said.sent is None:
                return


async def _guarded(phase: str, function: Callable[..., T], *arguments: object) -> T:
    """What a function gives, in a thread; `Refused` for what it raises."""
    try:
        return await run_in_threadpool(function, *arguments)
    except OdfbuildError as error:
        raise Refused(failure_of(error, phase)) from error
    except OSError as error:
        raise Refused(_internal(phase, error.strerror or "a file cannot be written")) from error


def _internal(phase: str, message: str) -> Internal:
    return Internal({"Push": phase}, message)
