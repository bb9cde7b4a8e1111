"""Run the server: one process, ended in order.

The first signal stops new pulls and pushes and lets those under way finish, up to a limit; the
second ends at once.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from odfbuild.errors import EnvironmentProblem, RepositoryError, missing_extra
from odfbuild.project.model import Config
from odfbuild.values import Value

if TYPE_CHECKING:
    from odfbuild.exchange.repositories.serve.handed import Taker


class Listening(Value):
    """Where a server listens, and how clients call it."""

    host: str
    port: int
    external: str | None = None


def serve(
    config: Config,
    where: Listening,
    ready: Callable[[str], None],
    log: Callable[[str], None],
    taker: Taker | None = None,
) -> None:
    """Serve the datasets of a project until a signal; `ready` is told the address.

    `taker` commits records that others push; without it none are taken. `RepositoryError` E1051 to
    E1053 and E1059 for what cannot be served so, `EnvironmentProblem` E0348 when the port is taken.
    """
    try:
        import uvicorn
        from uvicorn.protocols.http.h11_impl import H11Protocol

        from odfbuild.exchange.repositories.serve.app import Application
    except ModuleNotFoundError:
        raise missing_extra("serve", "servers of datasets") from None
    from odfbuild.exchange.repositories.serve.ingest import Ingesting
    from odfbuild.exchange.repositories.serve.rights import Rights
    from odfbuild.exchange.repositories.serve.site import Site
    from odfbuild.exchange.repositories.serve.smart import OFFERED
    from odfbuild.project.settings.serving import Access

    external = _checked(where.external)
    limits = config.serving
    access = limits.access
    if not access:
        if not _is_loopback(where.host):
            raise _open_to_all(where.host)
        access = (Access(read=("*",)),)
    rights = Rights(access)
    site = Site(config)
    ingesting = None if taker is None else Ingesting(site, rights, limits, taker)
    listener = _listen(where)
    address = f"http://{_spelled(where.host)}:{listener.getsockname()[1]}"
    hosts = _names(where.host, external) if _is_loopback(where.host) else frozenset()
    app = Application(
        site, rights, limits, address=external, hosts=hosts, log=log, ingesting=ingesting
    )

    class Patient(H11Protocol):
        """A connection that is closed when no request comes.

        The subprotocol of the specification is no token, which libraries refuse to read.
        """

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.loop.call_later(limits.idle_seconds, self._give_up)

        def handle_websocket_upgrade(self, event: Any) -> None:
            names = {b"sec-websocket-protocol": OFFERED.encode()}
            self.headers = [(names.get(name, name), value) for name, value in self.headers]
            super().handle_websocket_upgrade(event)

        def _give_up(self) -> None:
            if self.cycle is None and self.transport.get_protocol() is self:
                self.transport.close()

    class Server(uvicorn.Server):
        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            if site.draining:
                self.force_exit = self.should_exit = True
                return
            site.draining = True
            asyncio.get_running_loop().call_soon_threadsafe(
                lambda: setattr(self, "_draining", asyncio.ensure_future(self._drain()))
            )

        async def _drain(self) -> None:
            for _ in range(limits.grace_seconds * 10):
                if not app.running:
                    break
                await asyncio.sleep(0.1)
            self.should_exit = True

    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    server = Server(
        uvicorn.Config(
            app,
            http=Patient,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws_max_size=_max_message(),
            ws_ping_interval=None,
            ws_ping_timeout=None,
            ws_per_message_deflate=False,
            limit_concurrency=limits.max_connections,
            timeout_keep_alive=limits.idle_seconds,
            timeout_graceful_shutdown=2,
            h11_max_incomplete_event_size=32 << 10,
        )
    )
    ready(address)
    with listener:
        server.run(sockets=[listener])


_BACKLOG = 2048
"""Connections that wait to be accepted, as uvicorn has it."""


def _max_message() -> int:
    from odfbuild.exchange.repositories.smart.messages import MAX_MESSAGE

    return MAX_MESSAGE


def _listen(where: Listening) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in where.host else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((where.host, where.port))
        listener.listen(_BACKLOG)  # who is told the address may connect at once
    except OSError as error:
        raise EnvironmentProblem(
            f"nothing can be served on {_spelled(where.host)}:{where.port}: {error.strerror}",
            code="E0348",
            help="give another one with --host and --port; port 0 is any that is free",
        ) from None
    return listener


def _checked(external: str | None) -> str:
    """The address that clients are told, without a slash at its end; empty: where they asked."""
    if external is None:
        return ""
    try:
        parts = urlsplit(external)
        right = parts.scheme in ("http", "https") and bool(parts.hostname)
        _ = parts.port
    except ValueError:
        right = False
    if not right or parts.username or parts.query or parts.fragment:
        raise RepositoryError(
            f"'{external}' is not an address that clients could use",
            code="E1053",
            help="give it as https://data.example.org or http://10.0.0.5:8080",
        )
    return external.rstrip("/")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _names(host: str, external: str) -> frozenset[str]:
    """What a server on loopback is called; any other name was made to lead here."""
    own = {"localhost", "127.0.0.1", "[::1]", _spelled(host)}
    if external:
        own.add(_spelled(urlsplit(external).hostname or ""))
    return frozenset(own)


def _spelled(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _open_to_all(host: str) -> RepositoryError:
    from odfbuild.project.machine import SERVE_TOKEN, machine_file

    return RepositoryError(
        f"nobody is allowed anything yet, and {host} can be reached from other machines",
        code="E1051",
        notes=("without rules, everybody on this machine may read: --host 127.0.0.1",),
        help=f"write who may read and write under `serve.access` in {machine_file()} "
        f"(docs/serve.md), or set {SERVE_TOKEN} to a token that may read and write all",
    )
