"""A process that forks servers and clients and kills each at a step of its own choice.

A step is a message of a dialogue, a transfer of an object, or a change of a file below the project.
Run as `python -m tests.exchange.repositories.killable`: reads a JSON line for each fork, and
answers with one.
So all imports are done once, and a server answers after some milliseconds.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_CHANGES = {"os.rename", "os.remove", "os.mkdir"}


class Killable:
    """The other side."""

    def __enter__(self) -> Killable:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.exchange.repositories.killable"],
            cwd=Path(__file__).parents[3],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def server_peak(self) -> int:
        """KiB of memory that the server that runs has needed at most."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(
            next(each for each in status.splitlines() if each.startswith("VmHWM")).split()[1]
        )

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def _ask(self, **job: Any) -> Any:
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    @contextlib.contextmanager
    def server(self, root: Path, kill_at: int | None = None) -> Iterator[str]:
        """The address of a server for the project in `root`; anybody may push to it."""
        found = self._ask(job="serve", root=str(root), kill_at=kill_at)
        self.pid = found["pid"]
        try:
            yield found["address"]
        finally:
            self._ask(job="end", pid=found["pid"])

    def client(self, job: str, url: str, root: Path, kill_at: int | None = None) -> str:
        """Push the only dataset of a workspace, or pull into it: `killed`, `done` or an error."""
        return self._ask(job=job, url=url, root=str(root), kill_at=kill_at)


TOKEN = "token-of-everybody-who-tests"


def main() -> None:
    for name in (
        "uvicorn",
        "httpx",
        "websockets.sync.client",
        "odfbuild.exchange.repositories.serve.app",
    ):
        importlib.import_module(name)
    for name in ("server", "site"):
        importlib.import_module(f"odfbuild.exchange.repositories.serve.{name}")
    for name in ("pull", "push", "smart.client"):
        importlib.import_module(f"odfbuild.exchange.repositories.{name}")
    importlib.import_module("tests.store.chains")
    for line in sys.stdin:
        job = json.loads(line)
        if job["job"] == "end":
            with contextlib.suppress(ProcessLookupError):
                os.kill(job["pid"], signal.SIGKILL)
            os.waitpid(job["pid"], 0)
            print("null", flush=True)
            continue
        ours, theirs = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(ours)
            _child(job, theirs)
        os.close(theirs)
        with os.fdopen(ours) as said:
            if job["job"] == "serve":
                print(json.dumps({"pid": pid, "address": said.readline().strip()}), flush=True)
            else:
                outcome = said.read()
                os.waitpid(pid, 0)
                print(json.dumps(outcome or "killed"), flush=True)


def _child(job: dict[str, Any], out: int) -> None:
    try:
        root, url = Path(job["root"]), job.get("url", "")
        if job["kill_at"] is not None:
            _count(str(root), job["kill_at"])
        said = {"serve": _serve, "push": _push, "pull": _pull}[job["job"]](root, url, out)
    except BaseException as error:
        said = f"{type(error).__name__} {getattr(error, 'code', '')} {error}"
    os.write(out, said.encode())
    os._exit(0)


def _count(root: str, kill_at: int) -> None:
    """Kill this process before step number `kill_at`."""
    from odfbuild.exchange.repositories.serve.smart import _Channel
    from odfbuild.exchange.repositories.smart.connection import Dialogue
    from odfbuild.exchange.repositories.smart.objects import Transfers

    left = kill_at

    def step() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def hook(event: str, given: tuple[Any, ...]) -> None:
        changes = event in _CHANGES or (event == "open" and given[2] & _WRITES)
        if changes and isinstance(given[0], str | os.PathLike) and root in str(given[0]):
            step()

    def counted(kind: type, name: str) -> None:
        function = getattr(kind, name)

        def wrapper(*given: Any, **named: Any) -> Any:
            step()
            return function(*given, **named)

        setattr(kind, name, wrapper)

    for kind in (_Channel, Dialogue):
        counted(kind, "send")
        counted(kind, "receive")
    for name in ("download", "upload"):
        counted(Transfers, name)
    sys.addaudithook(hook)


def _serve(root: Path, url: str, out: int) -> str:
    os.environ["ODFBUILD_SERVE_TOKEN"] = TOKEN
    from odfbuild.exchange.repositories.serve.server import Listening, serve
    from odfbuild.project.config import load_config

    where = Listening("127.0.0.1", 0)
    serve(load_config(root), where, lambda at: _tell(out, at), lambda line: None)
    return ""


def _tell(out: int, address: str) -> None:
    os.write(out, f"{address}\n".encode())


def _push(root: Path, url: str, out: int) -> str:
    from odfbuild.exchange.repositories.push import Push, push
    from odfbuild.exchange.repositories.smart.client import SmartDataset
    from tests.store.chains import workspace

    space = workspace(root)
    [name] = space.aliases()
    wanted = Push(name=name, address=url, open=lambda: SmartDataset(url, TOKEN))
    return _outcome(push(space, [wanted]))


def _pull(root: Path, url: str, out: int) -> str:
    from odfbuild.exchange.repositories.pull import Pull, pull
    from odfbuild.exchange.repositories.smart.client import SmartDataset
    from tests.store.chains import workspace

    wanted = Pull(name="pulled", address=url, reference=url, open=lambda: SmartDataset(url, TOKEN))
    return _outcome(pull(workspace(root), [wanted]))


def _outcome(transfers: Any) -> str:
    [made] = transfers
    if "ODFBUILD_TEST_PEAK" in os.environ and made.error is None:
        return str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    return "done" if made.error is None else f"{made.error.code} {made.error.message}"


if __name__ == "__main__":
    main()
