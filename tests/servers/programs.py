"""Programs and ports that the servers of tests need."""

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

# Far above what a start takes: machines are busy.
_SECONDS = 120


def must_run() -> bool:
    """Whether everything that tests need can be there: as root, who installs it, and in CI."""
    return os.getuid() == 0 or bool(os.environ.get("CI"))


def program(name: str) -> str:
    """The path of a program; tests that lack it are skipped, as root and in CI they fail."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin:/sbin")
    if found is None:
        hint = f"{name} is not installed; `make system-packages` as root installs it"
        if must_run():
            pytest.fail(hint)
        pytest.skip(hint)
    return found


def free_port() -> int:
    """A port that nobody listens on, below those that the system gives to whoever asks for any.

    Between this answer and the start of a server nobody is given it: neither the other end of a
    connection nor a server of another test, which draws from twelve thousand.
    """
    while True:
        port = secrets.choice(range(20_000, 32_000))
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


@contextlib.contextmanager
def running(command: Sequence[str], port: int, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A server that is started, listens on `port`, and is ended."""
    with log.open("ab") as sink:
        process = subprocess.Popen(list(command), stdout=sink, stderr=sink)
    try:
        _wait(port, process, log)
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(_SECONDS)


def _wait(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            pytest.fail(f"it ended with {process.returncode}: {log.read_text()[-500:]}")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.02)
    pytest.fail(f"it did not begin to listen: {log.read_text()[-500:]}")
