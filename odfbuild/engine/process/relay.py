"""Lead a unix socket to a port of this machine: `relay.py SOCKET PORT…`.

Runs by itself in the network of a container, whose files it does not see: it imports nothing of
ours. It listens as soon as one of the ports takes connections.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
import time

_PAUSE = 0.02


def main(path: str, ports: list[int]) -> None:
    """Relay until killed."""
    port = _open_port(ports)
    server = socket.socket(socket.AF_UNIX)
    server.bind(f"{path}.new")
    server.listen()
    os.rename(f"{path}.new", path)  # noqa: PTH104
    while True:
        near, _ = server.accept()
        far = _connected(port)
        if far is None:
            near.close()
            continue
        for source, target in ((near, far), (far, near)):
            threading.Thread(target=_pump, args=(source, target), daemon=True).start()


def _open_port(ports: list[int]) -> int:
    while True:
        for port in ports:
            found = _connected(port)
            if found is not None:
                found.close()
                return port
        time.sleep(_PAUSE)


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
