"""A web server that does what it is told, also what a web server should not do."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

Answer = bytes | Callable[[socket.socket, str], None]


@dataclass
class Faulty:
    """Answers the n-th request with the n-th of `answers`, the last one for all that follow."""

    answers: list[Answer]
    port: int = 0
    requests: list[str] = field(default_factory=list)
    wrap: Callable[[socket.socket], socket.socket] = lambda connection: connection

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/data.csv"


def response(
    body: bytes, *headers: str, status: str = "200 OK", length: int | None = None
) -> bytes:
    """A response; `length` is what it pretends."""
    size = len(body) if length is None else length
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {size}", "Connection: close", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def silent(after: bytes) -> Answer:
    """Send `after`, and then nothing for a long time."""

    def answer(connection: socket.socket, request: str) -> None:
        connection.sendall(after)
        time.sleep(30)  # nobody waits for its end

    return answer


@contextlib.contextmanager
def faulty_server(*answers: Answer) -> Iterator[Faulty]:
    """Listen until the end of the block."""
    server = Faulty(list(answers))
    listener = socket.create_server(("127.0.0.1", 0))
    server.port = listener.getsockname()[1]

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=_answer, args=(connection, server), daemon=True).start()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(60)


def _answer(connection: socket.socket, server: Faulty) -> None:
    with contextlib.suppress(OSError), server.wrap(connection) as connection:
        request = b""
        while b"\r\n\r\n" not in request:
            got = connection.recv(65536)
            if not got:
                return
            request += got
        number = len(server.requests)
        server.requests.append(request.decode())
        answer = server.answers[min(number, len(server.answers) - 1)]
        if callable(answer):
            answer(connection, request.decode())
        else:
            connection.sendall(answer)
