"""Lines of JSON on standard output, as coordinators split them into files of logs.

`process` and `stream` say whose output a line is: this program's own, or what the JVM printed.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from odfbuild.odf.timestamp import Timestamp

INFO, ERROR = 30, 50
"""Levels as Bunyan numbers them."""

_lock = threading.Lock()
_SECONDS = 0.5


def tell(message: str, level: int = INFO, process: str = "odfbuild", stream: str = "log") -> None:
    """Write a line."""
    line = {
        "v": 0,
        "name": "odfbuild-engine",
        "hostname": socket.gethostname(),
        "pid": os.getpid(),
        "level": level,
        "time": str(Timestamp.now()),
        "process": process,
        "stream": stream,
        "msg": message,
    }
    with _lock:
        sys.stdout.write(json.dumps(line, ensure_ascii=False) + "\n")
        sys.stdout.flush()


def follow(printed: Callable[[], Path | None], over: threading.Event) -> None:
    """Pass on what the JVM prints, until `over`; `printed` tells the file, which may change."""
    file, read = None, 0
    while not over.wait(_SECONDS):
        now = printed()
        if now != file:
            file, read = now, 0
        try:
            if file is None or file.stat().st_size <= read:
                continue
            with file.open("rb") as source:
                source.seek(read)
                new = source.read()
        except OSError:
            continue
        whole = new[: new.rfind(b"\n") + 1]
        read += len(whole)
        for line in whole.decode("utf-8", "replace").splitlines():
            tell(line, process="spark", stream="stderr")
