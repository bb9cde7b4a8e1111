"""Engines at work: where one listens, how it calls our files, and how it ends.

A `Program` is an engine for one step: one that runs already, one that is started here, or a
container (`container`).
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from odfbuild.engine.process.accused import Accused
from odfbuild.engine.process.wire import SOCKET_VARIABLE
from odfbuild.sql.translate.named import RemoteEngine
from odfbuild.values import Value

_KILL_SECONDS = 5.0
_CHILD = "child"
"""A file that names a program that was started here, as `owner` does."""
_SECRET = "ODFBUILD_"
SHORT = Path("/tmp")
"""Where sockets lie: their paths have at most 107 characters."""


class Program(Protocol):
    """An engine that is being asked."""

    @property
    def target(self) -> str | None:
        """The address for gRPC; `None` while it is not known."""
        ...

    def inside(self, file: Path) -> str:
        """What the engine calls a file of this machine."""
        ...

    def exit_code(self) -> int | None:
        """How it ended; `None` while it runs, or where that cannot be known."""
        ...

    def end(self) -> None:
        """End it, at once; harmless when done twice."""
        ...


class Address(Value):
    """An engine that somebody else runs, over the same files."""

    target: str

    @classmethod
    def of(cls, address: str, root: Path) -> Address:
        """By the text in the settings; a relative path of a socket is one of the project."""
        kind, _, path = address.partition(":")
        if kind != "unix":
            return cls(address)
        return cls(f"unix:{root / path.removeprefix('//')}")

    def inside(self, file: Path) -> str:
        """See `Program`."""
        return str(file)

    def exit_code(self) -> int | None:
        """See `Program`."""
        return None

    def end(self) -> None:
        """It is not ours."""


@dataclass(slots=True, eq=False)
class Command:
    """A program that is started here, and listens on a socket of ours."""

    process: subprocess.Popen[bytes]
    folder: Path

    @property
    def target(self) -> str | None:
        """See `Program`."""
        socket = self.folder / "engine"
        return f"unix:{socket}" if socket.exists() else None

    def inside(self, file: Path) -> str:
        """See `Program`."""
        return str(file)

    def exit_code(self) -> int | None:
        """See `Program`."""
        return self.process.poll()

    def end(self) -> None:
        """See `Program`."""
        end_child(self.process)
        shutil.rmtree(self.folder, ignore_errors=True)


def start_command(engine: RemoteEngine, root: Path, log: Path, accused: Accused) -> Command:
    """Start the program of an engine in the folder of the project."""
    sweep_folders()
    folder = socket_folder()
    environ = {**without_secrets(os.environ), SOCKET_VARIABLE: str(folder / "engine")}
    try:
        process = start_child(engine.command, root, log, environ)
        (folder / _CHILD).write_text(_name_of(process.pid))
        return Command(process, folder)
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise accused.error(
            f"cannot be started: {engine.command[0]}: {error.strerror}",
            "E1433",
            "correct its `command`, or install the program",
        ) from None


def start_child(
    command: Sequence[str], folder: Path, log: Path, environ: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start a program whose output goes to `log`, in a group of its own: Ctrl-C is for us."""
    with log.open("ab") as sink:
        return subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            cwd=folder,
            env=None if environ is None else dict(environ),
            process_group=0,
        )


def end_child(process: subprocess.Popen[bytes]) -> None:
    """Ask a program to end, and end it and its group when it does not."""
    for tell in (process.terminate, lambda: os.killpg(process.pid, signal.SIGKILL)):
        try:
            tell()
            process.wait(_KILL_SECONDS)
        except (ProcessLookupError, PermissionError):
            return
        except subprocess.TimeoutExpired:
            continue


def without_secrets(environ: Mapping[str, str]) -> dict[str, str]:
    """What a program of this machine may know of our environment: nothing that is ours."""
    return {name: value for name, value in environ.items() if not name.startswith(_SECRET)}


# --- Folders that outlive nobody ---


def socket_folder() -> Path:
    """A folder with a short path that only we can enter; its name tells whose it is."""
    return Path(tempfile.mkdtemp(prefix=f"odf-engine-{owner()}-", dir=SHORT))


def owner() -> str:
    """This process, in a way that no later one with the same number is."""
    return _name_of(os.getpid())


def _name_of(pid: int) -> str:
    return f"{pid}.{_started(pid)}"


def is_gone(text: str) -> bool:
    """Whether the process that `owner` named has ended."""
    pid, _, started = text.partition(".")
    return pid.isdigit() and _started(int(pid)) != started


def _started(pid: int) -> str:
    """When a process began, in ticks since the machine did; empty for one that is not there."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        return stat.rpartition(")")[2].split()[19]
    except OSError:
        pass
    done = subprocess.run(
        ["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return "".join(filter(str.isalnum, done.stdout))


def sweep_folders() -> None:
    """End and remove what coordinators left that were killed."""
    for folder in SHORT.glob("odf-engine-*"):
        if not is_gone(folder.name.removeprefix("odf-engine-").rpartition("-")[0]):
            continue
        with suppress(OSError, ValueError):
            child = (folder / _CHILD).read_text()
            if folder.stat().st_uid == os.geteuid() and not is_gone(child):
                os.killpg(int(child.partition(".")[0]), signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)
