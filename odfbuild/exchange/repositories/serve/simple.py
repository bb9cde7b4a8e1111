"""The Simple Transfer Protocol, and what peers ask besides: names, accounts, health, uploads.

Blocks and objects never change, so whoever has one may keep it; a head is asked for each time.
Sources: RFC-007; RFC 9110 (ranges, conditions); reference behaviour, "HTTP API".
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import secrets
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import cast

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response

from odfbuild.errors import Code, OdfbuildError
from odfbuild.exchange.passport.forms import form_of
from odfbuild.exchange.repositories.history import pack_at
from odfbuild.exchange.repositories.serve.rights import Caller, MalformedToken, Rights, UnknownToken
from odfbuild.exchange.repositories.serve.site import Absent, Push, Site
from odfbuild.odf.identity import DatasetId, is_alias
from odfbuild.odf.multihash import SHA3_256, Multihash
from odfbuild.odf.signed_head import FILE
from odfbuild.odf.stewardship import FILE as STATEMENTS
from odfbuild.odf.stewardship import MOST_BYTES
from odfbuild.project.settings.serving import Serving
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.files import PENDING, move_file
from odfbuild.store.storage import ObjectKind
from odfbuild.store.stored_blocks import PACKS

_WRITE = 1 << 20
SLOWEST = 1 << 10
"""Bytes per second that an upload brings at least."""


class Refusal(Exception):
    """A request is answered with an error; `message` in the form that peers have."""

    def __init__(self, status: int, message: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.message = message

    def response(self) -> Response:
        """The answer."""
        body = {"message": self.message or {404: "Not Found"}.get(self.status, "Error")}
        headers = {"WWW-Authenticate": "Bearer"} if self.status == 401 else {}
        return JSONResponse(body, self.status, headers)


def caller_of(rights: Rights, header: str | None) -> Caller:
    """Who asks; `Refusal` for a token that is none, or nobody's."""
    try:
        return rights.caller(header)
    except MalformedToken:
        raise Refusal(400, "Invalid Bearer token header") from None
    except UnknownToken:
        raise Refusal(401, "Authentication token invalid") from None


class _LargeFile(FileResponse):
    """A file in large pieces: each is read by another thread."""

    chunk_size = 1 << 20


class Simple:
    """The answers to plain requests."""

    def __init__(self, site: Site, rights: Rights, limits: Serving) -> None:
        self._site = site
        self._rights = rights
        self._limits = limits

    async def __call__(self, request: Request) -> Response:
        """Answer any request."""
        try:
            caller = caller_of(self._rights, request.headers.get("authorization"))
            request.scope["caller"] = caller.name
            return await self._answer(request, caller)
        except Refusal as refusal:
            return refusal.response()

    async def _answer(self, request: Request, caller: Caller) -> Response:
        path = request.url.path.strip("/")
        if request.method == "PUT":
            return await self._take(request, caller, path)
        if request.method not in ("GET", "HEAD"):
            raise Refusal(405, "Method Not Allowed")
        if path == "system/health":
            return JSONResponse({"ok": True, "draining": self._site.draining})
        if path == "info":
            return JSONResponse({"isMultiTenant": False})
        if path == "accounts/me":
            if caller.token is None:
                raise Refusal(401, "Unauthenticated")
            return JSONResponse({"id": _account_id(caller.name), "accountName": caller.name})
        if path == "datasets":
            return JSONResponse({"datasets": await run_in_threadpool(self._list, caller)})
        if path.startswith("datasets/did:"):
            return await run_in_threadpool(self._by_id, caller, path.removeprefix("datasets/"))
        if path.rpartition("/")[2] in ("pull", "push"):
            raise Refusal(426, "This is an address for WebSockets")
        alias, _, name = path.rpartition("/")
        if form_of(name) is not None:
            return await self._passport(caller, alias, name)
        store, kind, name = await run_in_threadpool(self._dataset, caller, path)
        return await self._file(request, store, kind, name)

    # --- Names ---

    def _list(self, caller: Caller) -> list[dict[str, object]]:
        return [
            {
                "id": str(each.state.dataset_id),
                "alias": each.alias,
                "kind": each.state.kind.name,
                "head": str(each.state.head),
                "blocks": each.state.blocks,
                "records": each.state.records,
                "updated": str(each.state.system_time),
            }
            for each in self._site.datasets()
            if caller.may_read(each.alias)
        ]

    def _by_id(self, caller: Caller, text: str) -> Response:
        try:
            dataset_id = DatasetId.parse(text)
        except ValueError:
            raise Refusal(400, "Malformed dataset id") from None
        alias = self._site.workspace.resolve(dataset_id)
        if alias is None or not caller.may_read(alias):
            raise Refusal(404)
        account, _, name = alias.rpartition("/")
        owner = {"accountName": account, "accountId": _account_id(account)}
        return JSONResponse({"id": str(dataset_id), "owner": owner, "datasetName": name})

    async def _passport(self, caller: Caller, alias: str, name: str) -> Response:
        store = await run_in_threadpool(self._readable, caller, alias)
        data = await run_in_threadpool(self._site.passport, store, name)
        if data is None:
            raise Refusal(404)
        kind = "application/ld+json" if name.endswith(".json") else "text/plain"
        return Response(data, headers={"Cache-Control": "no-cache"}, media_type=kind)

    def _dataset(self, caller: Caller, path: str) -> tuple[DatasetStore, str, str]:
        alias, kind, name = split(path)
        if not is_alias(alias):
            raise Refusal(400 if alias and kind in _KINDS else 404, "no name of a dataset")
        return self._readable(caller, alias), kind, name

    def _readable(self, caller: Caller, alias: str) -> DatasetStore:
        store = self._site.find(alias) if is_alias(alias) else None
        if store is None or not caller.may_read(store.name):
            raise Refusal(404)
        return store

    # --- Files ---

    async def _file(self, request: Request, store: DatasetStore, kind: str, name: str) -> Response:
        if kind == "refs":
            head = await run_in_threadpool(store.head) if name == "head" else None
            if head is None:
                raise Refusal(404)
            return _cached(request, str(head), "no-cache") or PlainTextResponse(
                str(head), headers=_headers(str(head), "no-cache")
            )
        if kind == "info":
            data = await run_in_threadpool(self._site.info, store, name)
            if data is None:
                raise Refusal(404)
            return Response(data, headers={"Cache-Control": "no-cache"})
        if kind not in (*_KINDS, PACKS):
            raise Refusal(404)
        hash = _hash(name)
        if (known := _cached(request, str(hash), _FOR_EVER)) is not None:
            return known
        return await self._stored(store, kind, hash)

    async def _stored(self, store: DatasetStore, kind: str, hash: Multihash) -> Response:
        headers = _headers(str(hash), _FOR_EVER)
        if kind in ("blocks", PACKS):
            read: Callable[[Multihash], bytes | None] = (
                store.read_raw if kind == "blocks" else partial(pack_at, store)
            )
            try:
                data = await run_in_threadpool(read, hash)
            except OdfbuildError as error:
                raise Refusal(404 if error.code == Code.BLOCK_MISSING else 500) from None
            if data is None:
                raise Refusal(404)
            return Response(data, headers=headers, media_type=_OCTETS)
        wanted = cast(ObjectKind, kind)
        file = await run_in_threadpool(self._site.object_file, store, wanted, hash)
        if file is None:
            raise Refusal(404)
        return _LargeFile(file, headers=headers, media_type=_OCTETS)

    # --- Uploads ---

    async def _take(self, request: Request, caller: Caller, path: str) -> Response:
        alias, kind, name = split(path)
        if not is_alias(alias) or not (
            kind in ("data", "checkpoints") or (kind == "info" and name in _SAID)
        ):
            raise Refusal(404)
        if not caller.may_write(alias):
            known = await run_in_threadpool(self._site.find, alias)
            if caller.token is None:
                raise Refusal(401, "Unauthenticated")
            raise Refusal(403 if known and caller.may_read(alias) else 404, "Unauthorized")
        if kind == "info":
            return await self._take_statement(request, alias, name)
        wanted, hash = cast(ObjectKind, kind), _hash(name)
        push = self._announced(alias, caller, wanted, hash)
        size = push.expected[wanted, hash]
        if request.headers.get("content-length") != str(size):
            raise Refusal(400, f"Content-Length has to be {size}, as it was announced")
        await self._receive(request, push, self._site.staged(push.alias, wanted, hash), hash, size)
        return Response(status_code=200)

    async def _take_statement(self, request: Request, alias: str, name: str) -> Response:
        """A signature of the head that is there already, or what is said of withdrawn records."""
        length = request.headers.get("content-length", "")
        if not re.fullmatch("[0-9]{1,9}", length) or int(length) > _SAID[name]:
            raise Refusal(413, "too large")
        try:
            async with asyncio.timeout(self._limits.idle_seconds):
                data = await request.body()
            keep = self._site.vouch if name == FILE else self._site.hear
            await run_in_threadpool(keep, alias, data)
        except Absent:
            raise Refusal(404) from None
        except (OdfbuildError, TimeoutError, ClientDisconnect) as error:
            raise Refusal(400, str(error)) from None
        return Response(status_code=200)

    def _announced(self, alias: str, caller: Caller, kind: ObjectKind, hash: Multihash) -> Push:
        """The push that this object belongs to: nothing else is taken."""
        for push in self._site.pushes:
            mine = (push.alias.lower(), push.token) == (alias.lower(), caller.token)
            if mine and (kind, hash) in push.expected:
                return push
        raise Refusal(409, "No push has announced this object")

    async def _receive(
        self, request: Request, push: Push, target: Path, hash: Multihash, size: int
    ) -> None:
        staged = target.parent / f"{PENDING}{secrets.token_hex(8)}"
        hasher, received = hashlib.sha3_256(), 0
        try:
            with staged.open("wb") as file:

                def add(data: bytes) -> None:
                    hasher.update(data)
                    file.write(data)

                async for part in self._parts(request, push):
                    received += len(part)
                    if received > size:
                        raise Refusal(400, f"more than {size} bytes")
                    await run_in_threadpool(add, part)
            if Multihash.of(SHA3_256, hasher.digest()) != hash:
                raise Refusal(400, f"the bytes do not hash to {hash}")
            await run_in_threadpool(move_file, staged, target)
        finally:
            staged.unlink(missing_ok=True)

    async def _parts(self, request: Request, push: Push) -> AsyncIterator[bytes]:
        """The body in large parts; given up when it comes too slowly."""
        began, total, waiting = time.monotonic(), 0, bytearray()
        stream = request.stream().__aiter__()
        try:
            while True:
                async with asyncio.timeout(self._limits.idle_seconds):
                    part = await anext(stream, None)
                if part is None:
                    break
                push.heard = time.monotonic()
                total += len(part)
                if push.heard - began > self._limits.idle_seconds + total / SLOWEST:
                    raise Refusal(408, "too slow")
                waiting += part
                if len(waiting) >= _WRITE:
                    yield bytes(waiting)
                    waiting.clear()
        except TimeoutError:
            raise Refusal(408, "too slow") from None
        except ClientDisconnect:
            raise Refusal(400, "cut off") from None
        yield bytes(waiting)


_SAID = {FILE: 4096, STATEMENTS: MOST_BYTES}
"""Files of `info/` that are taken, and how large they may be."""
_KINDS = ("refs", "blocks", "data", "checkpoints", "info")
_OCTETS = "application/octet-stream"
_FOR_EVER = "private, max-age=31536000, immutable"


def split(path: str) -> tuple[str, str, str]:
    """Alias, folder and file of a path `[account/]name/folder/file`; empty where it is none."""
    alias, kind, name = ["", "", *path.rsplit("/", 2)][-3:]
    return alias, kind, name


def _hash(text: str) -> Multihash:
    try:
        return Multihash.parse(text)
    except ValueError:
        raise Refusal(400, "no hash") from None


def _headers(tag: str, keep: str) -> dict[str, str]:
    return {"ETag": f'"{tag}"', "Cache-Control": keep, "X-Content-Type-Options": "nosniff"}


def _cached(request: Request, tag: str, keep: str) -> Response | None:
    """The answer 304, where the one who asks has it already."""
    known = request.headers.get("if-none-match", "")
    tags = {each.strip().removeprefix("W/") for each in known.split(",")}
    return Response(status_code=304, headers=_headers(tag, keep)) if f'"{tag}"' in tags else None


def _account_id(name: str) -> str:
    """An identity for an account, which has no key here."""
    return str(DatasetId(hashlib.sha3_256(name.encode()).digest()))
