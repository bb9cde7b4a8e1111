"""Run a program that converts bytes to bytes, with limits of time and size.

Used for pipes and containers: output goes to a file while it comes, complaints are kept short.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from odfbuild.ingest.secrets import PRIVATE
from odfbuild.values import Value

_CHUNK = 1 << 20
_COMPLAINTS = 20
_LONGEST_LINE = 500

_running: set[_Guard] = set()
# Held while a program starts, until it can be ended; an interrupt may come within.
_starting = threading.RLock()
_START_SECONDS = 10


class Finished(Value):
    """How a program ended. `stopped` tells which limit it was ended for, if any.

    `complaints` are the last lines of its standard error.
    """

    status: int
    complaints: tuple[str, ...]
    stopped: str | None = None


def run_to_file(
    command: Sequence[str],
    target: Path,
    *,
    source: Path | None = None,
    folder: Path,
    environ: Mapping[str, str] | None = None,
    seconds: float,
    most_bytes: int,
    on_stop: Callable[[], None] | None = None,
) -> Finished:
    """Run `command` in `folder`, `source` to its input, its output to `target`.

    Ends it and all that it started after `seconds`, or when it writes more than `most_bytes`;
    `on_stop` ends what is out of reach then. Raises `OSError` when it cannot be started.
    """
    with target.open("wb") as sink, open(source or os.devnull, "rb") as feed:  # noqa: PTH123
        with _starting:
            process = subprocess.Popen(
                list(command),
                stdin=feed,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=folder,
                env=_without_keys(os.environ if environ is None else environ),
                start_new_session=True,
            )
            guard = _Guard(process, seconds, on_stop)
            _running.add(guard)
        complaints: deque[str] = deque(maxlen=_COMPLAINTS)
        assert process.stdout is not None and process.stderr is not None
        listener = threading.Thread(target=_listen, args=(process.stderr, complaints), daemon=True)
        listener.start()
        with guard:
            written = 0
            while chunk := process.stdout.read1(_CHUNK):  # type: ignore[attr-defined]
                written += len(chunk)
                if written > most_bytes:
                    guard.stop(f"it wrote more than {most_bytes:,} bytes")
                    break
                sink.write(chunk)
            status = process.wait()
            listener.join(timeout=5)
        process.stdout.close()
    return Finished(status, tuple(complaints), guard.reason)


def _without_keys(environ: Mapping[str, str]) -> dict[str, str]:
    """What another program may know of the environment: no private keys of datasets."""
    return {name: value for name, value in environ.items() if not name.startswith(PRIVATE)}


def end_all() -> None:
    """End every program that runs, for a process that is about to end itself: none starts after."""
    _starting.acquire(timeout=_START_SECONDS)  # and never released
    for guard in list(_running):
        guard.stop("it was interrupted")


class _Guard:
    """Ends a process when its time is up, or when told to, or when we are interrupted."""

    def __init__(
        self, process: subprocess.Popen[bytes], seconds: float, on_stop: Callable[[], None] | None
    ) -> None:
        self.reason: str | None = None
        self._process = process
        self._on_stop = on_stop
        self._timer = threading.Timer(
            seconds, self.stop, [f"it took more than {seconds:g} seconds"]
        )
        self._timer.daemon = True

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(self, kind: object, *_: object) -> None:
        self._timer.cancel()
        _running.discard(self)
        if kind is not None:
            self.stop("it was interrupted")

    def stop(self, reason: str) -> None:
        """End the process and those that it started."""
        if self.reason is not None:
            return
        self.reason = reason
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self._process.pid, number)
            except ProcessLookupError:
                break
            time.sleep(0.2)
        if self._on_stop is not None:
            self._on_stop()


def _listen(stream: IO[bytes], lines: deque[str]) -> None:
    # Read in pieces: a program may complain without end and without a line break.
    rest = b""
    with stream:
        while chunk := stream.read1(_CHUNK):  # type: ignore[attr-defined]
            *whole, rest = (rest + chunk).split(b"\n")
            rest = rest[:_LONGEST_LINE]
            lines.extend(_text(line) for line in whole if line.strip())
    if rest.strip():
        lines.append(_text(rest))


def _text(line: bytes) -> str:
    return line[:_LONGEST_LINE].decode("utf-8", "replace").strip()
