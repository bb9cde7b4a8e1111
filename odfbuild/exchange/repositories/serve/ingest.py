"""Records that others push: `POST /NAME/ingest` by a token, `POST /webhooks/NAME` by a signature.

An answer comes after the commit. What cannot be taken is refused before its body is read, where
that is possible. Errors are JSON: code, message, notes, help.
Sources: RFC 9110; "The Idempotency-Key HTTP Header Field" (IETF draft); reference behaviour, "HTTP
API" (`sourceName`, `odf-event-time`).
"""

from __future__ import annotations

import asyncio
import math
import secrets
import time
from collections.abc import Mapping
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from odfbuild.errors import OdfbuildError, RepositoryError
from odfbuild.exchange.repositories.serve.batches import Batches
from odfbuild.exchange.repositories.serve.handed import FORMATS, Handed, Receipt, Taker
from odfbuild.exchange.repositories.serve.rights import Rights
from odfbuild.exchange.repositories.serve.simple import Refusal, caller_of
from odfbuild.exchange.repositories.serve.site import Site
from odfbuild.exchange.repositories.serve.webhooks import Hook, hooks_of
from odfbuild.ingest.secrets import scrub, scrub_error
from odfbuild.odf.identity import is_alias
from odfbuild.odf.timestamp import Timestamp
from odfbuild.project.settings.serving import Serving

_TYPES: dict[str, str | None] = {
    **{media: kind for kind, each in FORMATS.items() for media in each.MEDIA_TYPES},
    "application/octet-stream": None,
    "": None,
}
"""Media types, and the formats that they stand for; `None`: what the push source reads."""

_LONGEST_KEY = 255
_PIECE = 1 << 20
_MINUTE = 60.0

_STATUS = {
    "E0301": 404,
    "E0320": 409,
    "E0321": 400,
    "E1054": 405,
    "E1055": 415,
    "E1056": 413,
    "E1057": 429,
    "E1058": 401,
}
"""The status of an error by its code; others are about the records (422) or the server (503)."""


class Ingesting:
    """The answers to requests that bring records, which `taker` commits."""

    def __init__(self, site: Site, rights: Rights, limits: Serving, taker: Taker) -> None:
        self._site = site
        self._rights = rights
        self._idle_seconds = limits.idle_seconds
        self._limits = limits.ingest
        self._hooks = hooks_of(limits.ingest.webhooks)
        self._batches = Batches(taker, limits.ingest)
        self._folder = taker.folder
        self._waiting = 0
        self._budgets: dict[str, _Budget] = {}

    async def __call__(self, request: Request) -> Response | None:
        """The answer; `None` for a request that brings no records."""
        path = request.url.path.strip("/")
        folder, _, last = path.rpartition("/")
        if request.method != "POST":
            return None
        try:
            if self._site.draining:
                raise Refusal(503, "The server is about to end")
            if folder == "webhooks" and last in self._hooks:
                return await self._signed(request, self._hooks[last])
            if last == "ingest":
                return await self._pushed(request, folder)
        except Refusal as refusal:
            return refusal.response()
        except _Busy as busy:
            request.scope["said"] = str(busy)
            return _failure(busy.error, busy.seconds)
        except OdfbuildError as error:
            request.scope["said"] = f"{error.code} {scrub(error.message)}"
            return _failure(error)
        return None

    async def _pushed(self, request: Request, alias: str) -> Response:
        caller = caller_of(self._rights, request.headers.get("authorization"))
        request.scope["caller"] = caller.name
        if not is_alias(alias):
            raise Refusal(404)
        if caller.token is None:
            raise Refusal(401, "Unauthenticated")
        if not caller.may_ingest(alias):
            raise Refusal(403 if caller.may_read(alias) else 404, "Unauthorized")
        format = _format(request.headers)
        key = request.headers.get("idempotency-key")
        if key is not None and (not key.isprintable() or not 0 < len(key) <= _LONGEST_KEY):
            raise _not_understood(
                "`Idempotency-Key` is no key",
                f"send 1 to {_LONGEST_KEY} characters, such as a UUID",
            )
        handed = Handed(
            file=self._file(),
            source=request.query_params.get("sourceName"),
            format=format,
            keys=(key,) if key is not None else (),
            event_time=_event_time(request.headers.get("odf-event-time")),
        )
        with self._place(caller.name):
            try:
                size = await self._receive(request, handed.file)
                return await self._commit(alias, handed, size)
            finally:
                handed.file.unlink(missing_ok=True)

    async def _signed(self, request: Request, hook: Hook) -> Response:
        request.scope["caller"] = f"webhook {hook.about.name}".replace(" ", ":")
        file = self._file()
        try:
            await self._receive(request, file)
            body = await run_in_threadpool(file.read_bytes)
            signed = await run_in_threadpool(hook.read, request.headers, body, time.time())
            with self._place(f"webhook:{hook.about.name}"):
                await run_in_threadpool(file.write_bytes, signed.line + b"\n")
                handed = Handed(
                    file=file, source=hook.about.source, format="NdJson", keys=signed.keys
                )
                return await self._commit(hook.about.dataset, handed, len(signed.line))
        finally:
            file.unlink(missing_ok=True)

    async def _commit(self, alias: str, handed: Handed, size: int) -> Response:
        store = await run_in_threadpool(self._site.find, alias)
        if store is None:
            raise RepositoryError(
                f"there is no dataset '{alias}'",
                code="E0301",
                help="run `odfbuild apply` in the served project to create it",
            )
        answer = await self._batches.commit(store.name, handed, size)
        if isinstance(answer, OdfbuildError):
            raise answer
        return _success(store.name, answer)

    def _file(self) -> Path:
        return self._folder / f"request-{secrets.token_hex(8)}"

    def _place(self, who: str) -> _Place:
        """A place among those that wait; raises `_Busy` where there is none."""
        if self._waiting >= self._limits.max_waiting:
            raise _Busy("as many requests wait as may", 1)
        budget = self._budgets.setdefault(who, _Budget(self._limits.requests_per_minute))
        seconds = budget.seconds_until_next(time.monotonic())
        if seconds > 0:
            raise _Busy(f"{who} sends more than {budget.most} requests a minute", seconds)
        return _Place(self)

    async def _receive(self, request: Request, file: Path) -> int:
        """Write the body to a file; returns its size in bytes."""
        limit = self._limits.max_request_mb << 20
        length = request.headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > limit:
            raise _too_large(self._limits.max_request_mb)
        size, piece = 0, bytearray()
        stream = request.stream().__aiter__()
        with file.open("wb") as opened:
            try:
                while True:
                    async with asyncio.timeout(self._idle_seconds):
                        part = await anext(stream, None)
                    if part is None:
                        break
                    size += len(part)
                    if size > limit:
                        raise _too_large(self._limits.max_request_mb)
                    piece += part
                    if len(piece) >= _PIECE:
                        await run_in_threadpool(opened.write, bytes(piece))
                        piece.clear()
            except TimeoutError:
                raise Refusal(408, "too slow") from None
            except ClientDisconnect:
                raise Refusal(400, "cut off") from None
            opened.write(piece)
        return size


class _Place:
    """One of those that wait, while the context lasts."""

    def __init__(self, ingesting: Ingesting) -> None:
        self._ingesting = ingesting

    def __enter__(self) -> None:
        self._ingesting._waiting += 1

    def __exit__(self, *_: object) -> None:
        self._ingesting._waiting -= 1


class _Budget:
    """How many requests may come: `most` at once, and as many a minute."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._left = float(most)
        self._at = 0.0

    def seconds_until_next(self, now: float) -> float:
        """Count a request; when it may come, if that is not now."""
        rate = self.most / _MINUTE
        self._left = min(self.most, self._left + (now - self._at) * rate)
        self._at = now
        if self._left < 1:
            return (1 - self._left) / rate
        self._left -= 1
        return 0.0


def _format(headers: Mapping[str, str]) -> str | None:
    """The format that the headers say; raises `RepositoryError` E1055."""
    given, _, parameters = headers.get("content-type", "").partition(";")
    media = given.strip().lower()
    if media not in _TYPES:
        raise _not_understood(
            f"records cannot come as '{media}'",
            f"send {', '.join(each for each in _TYPES if each)} as `Content-Type`, or none",
        )
    charset = parameters.strip().lower().removeprefix("charset=").strip('"')
    if parameters.strip().lower().startswith("charset=") and charset not in ("utf-8", "us-ascii"):
        raise _not_understood(f"records cannot come in '{charset}'", "send UTF-8")
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise _not_understood("the body is compressed", "send it without `Content-Encoding`")
    return _TYPES[media]


def _event_time(text: str | None) -> Timestamp | None:
    if text is None:
        return None
    try:
        return Timestamp.parse(text)
    except ValueError:
        raise _not_understood(
            "`odf-event-time` is no time", "send a time such as 2026-01-31T12:00:00Z"
        ) from None


def _success(dataset: str, receipt: Receipt) -> Response:
    body: dict[str, object] = {
        "dataset": dataset,
        "status": "unchanged" if receipt.block is None else "committed",
        "block": receipt.block,
        "sequenceNumber": receipt.number,
        "records": receipt.records,
        "skipped": receipt.skipped,
    }
    if receipt.warnings:
        body["warnings"] = list(receipt.warnings)
    headers = {"Idempotency-Replayed": "true"} if receipt.repeated else {}
    return JSONResponse(body, headers=headers)


def _failure(error: OdfbuildError, seconds: int = 5) -> Response:
    """The answer to a request that failed; it may come again after `seconds` where that helps."""
    error = scrub_error(error)
    body: dict[str, object] = {
        "code": error.code,
        "message": error.message,
        "notes": list(error.notes),
        "help": error.help,
    }
    about_records = error.code[:3] in ("E04", "E05")
    status = _STATUS.get(error.code, 422 if about_records else 503)
    headers = {"Retry-After": str(seconds)} if status in (429, 503) else {}
    return JSONResponse(body, status, headers)


def switched_off(request: Request) -> Response | None:
    """The answer to records where none are taken."""
    path = request.url.path.strip("/")
    if request.method != "POST" or not (path.endswith("/ingest") or path.startswith("webhooks/")):
        return None
    return _failure(
        RepositoryError(
            "this server takes no records",
            code="E1054",
            help="start it with `odfbuild serve --ingest`, or set `serve.ingest.enabled` in the "
            "machine configuration",
        )
    )


class _Busy(Exception):
    """Too many requests come; the next one may after `seconds`."""

    def __init__(self, why: str, seconds: float) -> None:
        super().__init__(why)
        self.seconds = max(1, math.ceil(seconds))
        self.error = RepositoryError(
            f"too many requests: {why}",
            code="E1057",
            help="send the same request again after `Retry-After`, or several records in one",
        )


def _too_large(megabytes: int) -> RepositoryError:
    return RepositoryError(
        f"the request has more than {megabytes} MiB",
        code="E1056",
        help="send the records in several requests, or raise `serve.ingest.maxRequestMb` in the "
        "machine configuration",
    )


def _not_understood(what: str, help: str) -> RepositoryError:
    return RepositoryError(f"the request is not understood: {what}", code="E1055", help=help)
