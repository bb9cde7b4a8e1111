"""The program itself: in a pipe, as a fork that has all imports, and on a terminal as installed."""

from __future__ import annotations

import atexit
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable, Container, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Timer

from odfbuild.cli.main import main
from tests.forks import FORKS

BINARY = Path(sys.executable).with_name("odfbuild")
ANSI = re.compile(r"\x1b\[[\d;?]*[a-zA-Z]")
ENVIRONMENT = {
    name: value
    for name, value in os.environ.items()
    if name not in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "CI")
    and not name.startswith(("ODFBUILD_", "GITHUB_", "GIT_"))
} | {
    "TERM": "xterm-256color",
    "COLUMNS": "80",
    "TERMINAL_WIDTH": "80",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
}
NO_JVM = {"ODFBUILD_JAVA_HOME": "/nonexistent"}
NO_QUESTIONS = {"CI": "1"}


@dataclass(frozen=True)
class Said:
    """What the program said, on whichever stream, and how it ended."""

    code: int
    text: str

    @property
    def plain(self) -> str:
        """The text without colours."""
        return ANSI.sub("", self.text)


def in_pipe(folder: Path, arguments: Sequence[str], env: Mapping[str, str] | None = None) -> Said:
    """Run the program in `folder` with its output in a pipe."""
    variables = {**ENVIRONMENT, **(env or {})}
    if "PYTHONPATH" not in (env or {}):
        return forked(folder, arguments, variables)
    done = subprocess.run(  # It imports something else.
        [BINARY, *arguments],
        cwd=folder,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=200,
        check=False,
    )
    return Said(done.returncode, done.stdout.decode())


def forked(folder: Path, arguments: Sequence[str], variables: Mapping[str, str]) -> Said:
    """The same with these variables alone.

    Imports take four fifths of the time of most commands, and are the same for all.
    """
    ours, theirs = FORKS.Pipe(duplex=False)
    process = FORKS.Process(target=_run, args=(folder, arguments, variables, theirs))
    process.start()
    theirs.close()
    stop = Timer(400, process.kill)
    stop.start()
    with ours:
        text = b"".join(iter(lambda: os.read(ours.fileno(), 65_536), b""))
    process.join()
    stop.cancel()
    assert process.exitcode is not None
    return Said(process.exitcode, text.decode())


def _run(
    folder: Path, arguments: Sequence[str], variables: Mapping[str, str], output: Connection
) -> None:
    """In the fork: be the program."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    for stream in (1, 2):
        os.dup2(output.fileno(), stream)
    output.close()
    sys.argv = [str(BINARY), *arguments]
    try:
        main()
    finally:
        atexit._run_exitfuncs()


def on_terminal(
    folder: Path, arguments: Sequence[str], env: Mapping[str, str] | None = None
) -> Said:
    """Run the program in `folder` on a terminal; it must not ask anything."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [BINARY, *arguments],
        cwd=folder,
        env={**ENVIRONMENT, **(env or {})},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    stop = Timer(200, process.kill)
    stop.start()
    text = b"".join(iter(lambda: read_terminal(ours), b""))
    stop.cancel()
    os.close(ours)
    return Said(process.wait(timeout=200), text.decode().replace("\r\n", "\n"))


def read_terminal(descriptor: int) -> bytes:
    """What has been written to a terminal; nothing when the other end is closed."""
    try:
        return os.read(descriptor, 65_536)
    except OSError:
        return b""


Way = Callable[[Path, Sequence[str], Mapping[str, str] | None], Said]
WAYS: Mapping[str, Way] = {"pipe": in_pipe, "terminal": on_terminal}


def at_once(
    commands: Sequence[tuple[Path, Sequence[str], Mapping[str, str]]],
    shown: Container[int] | None = None,
) -> dict[str, dict[int, Said]]:
    """What commands say in a pipe, and after that on a terminal; as many at once as cores.

    By number of the command. On a terminal are all of them, or those with the numbers `shown`.
    """

    def each(number: int) -> dict[str, Said]:
        ways = [name for name in WAYS if name == "pipe" or shown is None or number in shown]
        return {name: WAYS[name](*commands[number]) for name in ways}

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        said = list(pool.map(each, range(len(commands))))
    return {name: {n: both[name] for n, both in enumerate(said) if name in both} for name in WAYS}
