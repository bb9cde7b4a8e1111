"""Lead a unix socket to a port of this machine: `relay.py SOCKET PORT…`.

Runs by itself in the network of a container, whose files it does not see: it imports nothing of
ours. It listens as soon as one of the ports takes connections, and ends when the folder of the
socket is gone, which the next run removes where this one was killed.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
import time

_PAUSE = 0.02
_LOOK_SECONDS = 1.0


def main(path: str, ports: list[int]) -> None:
    """Relay until killed, or until nobody wants it any more."""
    port = _open_port(path, ports)
    if port is None:
        return
    server = socket.socket(socket.AF_UNIX)
    server.bind(f"{path}.new")
    server.listen()
    os.rename(f"{path}.new", path)  # noqa: PTH104
    server.settimeout(_LOOK_SECONDS)
    while _is_wanted(path):
        try:
            near, _ = server.accept()
        except TimeoutError:
            continue
        far = _connected(port)
        if far is None:
            near.close()
            continue
        for source, target in ((near, far), (far, near)):
            threading.Thread(target=_pump, args=(source, target), daemon=True).start()


def _is_wanted(path: str) -> bool:
    return os.path.isdir(os.path.dirname(path))  # noqa: PTH112, PTH120


def _open_port(path: str, ports: list[int]) -> int | None:
    while _is_wanted(path):
        for port in ports:
            found = _connected(port)
            if found is not None:
                found.close()
                return port
        time.sleep(_PAUSE)
    return None


def _connected(port: int) -> socket.socket | None:
    try:
        return socket.create_connection(("127.0.0.1", port))
    except OSError:
        return None


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    for each in (source, target):
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


if __name__ == "__main__":
    main(sys.argv[1], [int(each) for each in sys.argv[2:]])
