"""The part of GitHub and GitLab that deals with comments, on loopback."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit


class Service:
    """The part of both services that deals with comments, on loopback."""

    def __init__(self) -> None:
        self.comments: list[dict[str, Any]] = []
        self.asked: list[tuple[str, str, str | None]] = []
        self.refuse: int | None = None
        service = self

        class Handler(BaseHTTPRequestHandler):
            def _do(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else None
                token = self.headers.get("Authorization") or self.headers.get("PRIVATE-TOKEN")
                service.asked.append((self.command, urlsplit(self.path).path, token))
                answer = b"{}" if service.refuse else json.dumps(service.do(self, body)).encode()
                self.send_response(service.refuse or 200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            do_GET = do_POST = do_PATCH = do_PUT = _do  # noqa: N815

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        Thread(target=self.server.serve_forever, daemon=True).start()

    def do(self, request: BaseHTTPRequestHandler, body: Any) -> Any:
        if request.command == "GET":
            asked = parse_qs(urlsplit(request.path).query)
            size, page = int(asked["per_page"][0]), int(asked["page"][0])
            return self.comments[(page - 1) * size : page * size]
        if request.command == "POST":
            self.comments.append({"id": 1000 + len(self.comments), **body})
            return self.comments[-1]
        changed = next(c for c in self.comments if request.path.endswith(f"/{c['id']}"))
        changed |= body
        return changed
