"""Serve pages to browsers on this machine, each made when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import PurePosixPath
from urllib.parse import unquote

from odfbuild.errors import EnvironmentProblem, OdfbuildError

_HOST = "127.0.0.1"


_KINDS = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
}


def serve_files(
    port: int, file: Callable[[str], bytes | None], ready: Callable[[str], None]
) -> None:
    """Answer requests until Ctrl-C; `ready` is told the address. Port 0 is any that is free.

    `file` gives what is at a path. What it raises is shown in place of a page.
    `EnvironmentProblem` E0348 when the port is taken.
    """
    try:
        server = HTTPServer((_HOST, port), _handler(file))
    except OSError as error:
        raise EnvironmentProblem(
            f"nothing can be served on port {port}: {error.strerror}",
            code="E0348",
            help="give another one with --port, or 0 for any that is free",
        ) from None
    with server:
        ready(f"http://{_HOST}:{server.server_port}/")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return


def _handler(file: Callable[[str], bytes | None]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 30  # a connection that says nothing does not keep others waiting for ever

        def do_GET(self) -> None:
            # A name that somebody lets point here must not read the page (DNS rebinding).
            host = self.headers.get("Host", "").rpartition(":")[0]
            if host not in (_HOST, "localhost"):
                self._answer(HTTPStatus.FORBIDDEN, "text/plain", "Ask for 127.0.0.1.\n")
            else:
                self._file(unquote(self.path.partition("?")[0]).removeprefix("/") or "index.html")

        do_HEAD = do_GET  # noqa: N815 (as the library calls it)

        def _file(self, path: str) -> None:
            from odfbuild.report.errors import render_error

            try:
                found = file(path)
                if found is None:
                    self._answer(HTTPStatus.NOT_FOUND, "text/plain", "There is no such page: /\n")
                else:
                    kind = _KINDS.get(PurePosixPath(path).suffix, "text/plain")
                    self._answer(HTTPStatus.OK, kind, found)
            except OdfbuildError as error:
                self._answer(HTTPStatus.INTERNAL_SERVER_ERROR, "text/plain", render_error(error))

        def _answer(self, status: HTTPStatus, kind: str, text: str | bytes) -> None:
            body = text if isinstance(text, bytes) else text.encode()
            self.send_response(status)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing: whoever looks at a page sees it."""

    return Handler
