"""The application: routes, access log, and what holds for every request."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Message, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from odfbuild.exchange.repositories.serve.ingest import Ingesting, switched_off
from odfbuild.exchange.repositories.serve.rights import Rights
from odfbuild.exchange.repositories.serve.simple import Simple
from odfbuild.exchange.repositories.serve.site import Site
from odfbuild.exchange.repositories.serve.smart import Smart
from odfbuild.ingest.secrets import scrub
from odfbuild.project.settings.serving import Serving

Log = Callable[[str], None]

_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+)(:\d{1,5})?")
_PLAIN = re.compile(r"[^!-~]")


class Application:
    """All answers of a server, as ASGI; `hosts` are names that it may be called by, empty: any."""

    def __init__(
        self,
        site: Site,
        rights: Rights,
        limits: Serving,
        *,
        address: str = "",
        hosts: frozenset[str] = frozenset(),
        log: Log = lambda line: None,
        ingesting: Ingesting | None = None,
    ) -> None:
        self._simple = Simple(site, rights, limits)
        self._smart = Smart(site, rights, limits, address)
        self._ingesting = ingesting
        self._hosts = hosts
        self._log = log
        self._limits = limits
        self.running = 0
        """Requests and dialogues under way."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, and write a line of the access log."""
        if scope["type"] not in ("http", "websocket"):
            return
        line = _Line(scope, send, self._limits.idle_seconds)
        self.running += 1
        try:
            await self._answer(scope, receive, line.send)
        except (ClientDisconnect, WebSocketDisconnect, TimeoutError):
            scope["said"] = "the client is gone, or reads nothing"
        except Exception as error:
            scope["said"] = scrub(f"{type(error).__name__}: {error}")
            await line.fail()
        finally:
            self.running -= 1
            self._log(line.text())

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            socket = WebSocket(scope, receive, send)
            await socket.receive()  # the handshake
            refused = self._refused(socket.headers, scope)
            if refused is None:
                await self._smart(socket)
            else:
                await socket.send_denial_response(refused)
            return
        request = Request(scope, receive)
        asked = self._refused(request.headers, scope) or await self._taken(request)
        asked = asked or await self._simple(request)
        await asked(scope, receive, send)

    async def _taken(self, request: Request) -> Response | None:
        """The answer to a request that brings records."""
        if self._ingesting is None:
            return switched_off(request)
        return await self._ingesting(request)

    def _refused(self, headers: Headers, scope: Scope) -> Response | None:
        """The answer to a request that is none of ours, or does not say where it ends."""
        if not self._is_called_so(headers.get("host", "")):
            return PlainTextResponse("This server has another name.\n", 421)
        if "transfer-encoding" in headers and (
            "content-length" in headers or scope.get("http_version") == "1.0"
        ):
            # A proxy may see another end of it, so nothing behind it is a request (RFC 9112, 6.1).
            return PlainTextResponse(
                "Content-Length and Transfer-Encoding exclude each other.\n",
                400,
                headers={"Connection": "close"},
            )
        return None

    def _is_called_so(self, host: str) -> bool:
        """Whether a name leads here on purpose, and not by a foreign entry in the DNS."""
        found = _HOST.fullmatch(host)
        return found is not None and (not self._hosts or found[1].lower() in self._hosts)


class _Line:
    """A line of the access log, while the answer is sent."""

    def __init__(self, scope: Scope, send: Send, seconds: float) -> None:
        self._scope, self._send, self._seconds = scope, send, seconds
        self._began = time.monotonic()
        self._status: Any = "-"
        self._bytes = 0

    async def send(self, message: Message) -> None:
        """Pass on what is sent; a client that does not read is given up."""
        self._status = message.get("status", self._status)
        if message["type"] == "websocket.accept":
            self._status = 101
        elif message["type"] == "websocket.close":
            self._status = message.get("code", 1000)
        content = message.get("body") or message.get("text") or b""
        self._bytes += len(content)
        await asyncio.wait_for(self._send(message), self._seconds)

    async def fail(self) -> None:
        """Answer that something unexpected went wrong, unless an answer was begun."""
        if self._scope["type"] == "websocket" and self._status == 101:
            await self.send({"type": "websocket.close", "code": 1011})
        elif self._scope["type"] == "http" and self._status == "-":
            start = {"type": "http.response.start", "status": 500, "headers": []}
            await self.send(start)
            await self.send({"type": "http.response.body", "body": b""})

    def text(self) -> str:
        """When, who, what, how it went, and why; with no character that a terminal obeys."""
        scope = self._scope
        client = (scope.get("client") or ("-",))[0]
        path = scope.get("raw_path", b"").decode("latin-1") or scope.get("path", "")
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        seconds = time.monotonic() - self._began
        method = scope.get("method", "WS")
        parts = (now, client, scope.get("caller", "-"), method, path, self._status, self._bytes)
        line = " ".join(_PLAIN.sub("?", str(each)) or "-" for each in parts)
        said = " ".join(_PLAIN.sub("?", each) for each in str(scope.get("said", "")).split())
        return f"{line} {seconds:.3f} {said}".rstrip()
