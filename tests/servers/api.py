"""A web server whose answers a test computes from what is asked."""

import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Answer:
    """`body` that is no bytes becomes JSON."""

    body: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Api:
    """`answer` says what comes; `asked` is what was asked."""

    port: int = 0
    answer: Callable[[Asked], Any] = lambda asked: Answer(None, 404)
    asked: list[Asked] = field(default_factory=list)

    def url(self, rest: str = "/orders", api: str = "") -> str:
        return f"http://127.0.0.1:{self.port}{rest}" + (f"#api?{api}" if api else "#api?")


@contextlib.contextmanager
def api_server() -> Iterator[Api]:
    api = Api()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
            headers = {key.lower(): value for key, value in self.headers.items()}
            asked = Asked(self.command, parts.path, query, headers, body)
            api.asked.append(asked)
            answer = api.answer(asked)
            answer = answer if isinstance(answer, Answer) else Answer(answer)
            data = (
                answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
            )
            self.send_response(answer.status)
            for key, value in {"Content-Length": str(len(data)), **answer.headers}.items():
                self.send_header(key, value)
            self.end_headers()
            self.wfile.write(data)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        api.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield api
        finally:
            server.shutdown()
            thread.join()
