"""A proxy before a store of objects: it counts requests, and kills who sends a certain one."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.process import BaseProcess
from urllib.parse import urlsplit

_OF_CONNECTIONS = {"connection", "transfer-encoding", "content-length"}


class Proxy:
    """Passes requests on to `store`; in `requests` is the method of each, in order."""

    def __init__(self, store: str) -> None:
        self.store = urlsplit(store).netloc
        self.requests: list[str] = []
        self.endpoint = ""
        self._mutex = threading.Lock()
        self._victim: int | None = None
        self._kill_at: int | None = None

    def watch(self, start: Callable[[], BaseProcess], kill_at: int | None = None) -> BaseProcess:
        """Start a process that is killed when its request `kill_at` (from 0) arrives here."""
        with self._mutex:  # its first request waits until it is known whose it is
            self.requests = []
            process = start()
            self._victim, self._kill_at = process.pid, kill_at
        return process

    def arrived(self, method: str) -> bool:
        """Count a request; whether its sender lives."""
        with self._mutex:
            number = len(self.requests)
            self.requests.append(method)
            if self._kill_at is not None and number >= self._kill_at:
                if number == self._kill_at and self._victim is not None:
                    os.kill(self._victim, signal.SIGKILL)
                return False
        return True


@contextlib.contextmanager
def proxy(store: str) -> Iterator[Proxy]:
    """A proxy before the store at that endpoint."""
    made = Proxy(store)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass_on(self) -> None:
            body = self._body()
            if not made.arrived(self.command):
                self.close_connection = True
                return
            connection = http.client.HTTPConnection(made.store)
            with contextlib.closing(connection):
                connection.putrequest(
                    self.command, self.path, skip_host=True, skip_accept_encoding=True
                )
                for name, value in self.headers.items():
                    if name.lower() not in _OF_CONNECTIONS:
                        connection.putheader(name, value)
                if body or "Content-Length" in self.headers:
                    connection.putheader("Content-Length", str(len(body)))
                connection.endheaders(body)
                answer = connection.getresponse()
                content = answer.read()
            self.send_response_only(answer.status, answer.reason)
            for name, value in answer.getheaders():
                if name.lower() not in _OF_CONNECTIONS:
                    self.send_header(name, value)
            length = answer.getheader("Content-Length") if self.command == "HEAD" else None
            self.send_header("Content-Length", length or str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _pass_on  # noqa: N815

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length", 0)))
            parts = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)

        def handle(self) -> None:
            with contextlib.suppress(OSError):  # who was killed takes no answer
                super().handle()

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    made.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
