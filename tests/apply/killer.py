"""A process that forks runs of odfbuild and kills each at a step of its own choice.

A step is anything that changes a file below `chains/` or the keys: the audit events of Python tell
of it just before it happens. Run as `python -m tests.apply.killer`; reads one JSON line a run,
answers with one. With `--spark` it starts one JVM that all forks ask, each over connections of its
own: a killed fork leaves it running, as no killed process leaves its own.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from types import TracebackType
from typing import Any

from odfbuild.engine.contract import TransformTask
from tests.apply.tiny import Tiny

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.truncate"}


class Killer:
    """The other side: starts the process once, all its imports done, and asks it for runs."""

    def __init__(self, *modules: str, spark: bool = False) -> None:
        """`modules` are imported at the start, beside those of an apply."""
        self._arguments = [*modules, *(["--spark"] if spark else [])]

    def __enter__(self) -> Killer:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.apply.killer", *self._arguments],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.communicate()

    def run(
        self,
        root: Path,
        *arguments: str,
        kill_at: int | None = None,
        also: str | None = None,
        within: tuple[str, float] | None = None,
        after: float | None = None,
    ) -> tuple[int, int]:
        """Run in `root`; die at step `kill_at` (from 0). Exit code, and steps that were done.

        Changes below the folder `also` are steps, too. `within` names a dataset and how many
        seconds after the engine was asked for its step the run dies, `after` how many seconds
        after it began.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = {"root": str(root), "arguments": arguments, "kill_at": kill_at, "also": also}
        request |= {"within": within, "after": after}
        print(json.dumps(request), file=self._process.stdin, flush=True)
        answer = json.loads(self._process.stdout.readline())
        return answer["code"], answer["steps"]


class _Borrowed:
    """The engine of the process that forked this one; `within` says when a step of it kills."""

    def __init__(self, engine: Any, within: tuple[str, float] | None) -> None:
        self._engine = engine
        self._within = within
        # Only the parent of the JVM can ask whether it still runs.
        engine._session.exit_code = lambda seconds: None
        client = engine._session.spark.sparkContext._gateway._gateway_client
        # Connections of the other process stay open, unused: two cannot share one.
        self._kept = [*client.deque], client.thread_connection
        client.deque.clear()
        client.thread_connection = threading.local()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def run(self, request: Any) -> Any:
        """Carry out a request, and perhaps not live to see the end of a step."""
        is_step = isinstance(request, TransformTask)
        if is_step and self._within is not None and self._within[0] == request.dataset:
            _die_after(self._within[1])
        return self._engine.run(request)

    def stop(self) -> None:
        """Leave it running for the next fork."""


def _die_after(seconds: float) -> None:
    killing = threading.Timer(seconds, os.kill, [os.getpid(), signal.SIGKILL])
    killing.daemon = True
    killing.start()


def _run(
    root: str,
    arguments: list[str],
    kill_at: int | None,
    also: str | None,
    within: tuple[str, float] | None,
    steps: int,
    shared: Any = None,
) -> int:
    """In the fork: run, counting steps into the pipe `steps`."""
    from odfbuild.cli.main import run
    from odfbuild.engine.spark import start as module
    from tests.apply.plain_engine import PlainEngine

    os.chdir(root)
    os.environ |= {"NO_COLOR": "1"}
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    log = os.open(f"{root}/run.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 2)
    used: Any = PlainEngine() if shared is None else _Borrowed(shared, within)
    module.start_engine = lambda *_: used
    folders = ["chains", ".odfbuild-keys", *([also] if also else [])]
    watched = tuple(f"{root}/{folder}" for folder in folders)
    numbers = itertools.count()
    one_at_a_time = threading.Lock()  # what a thread has counted is told before another one kills

    def hear(event: str, given: tuple[Any, ...]) -> None:
        if event not in _CHANGES and not (event == "open" and given[2] & _WRITES):
            return
        # A file that was made ready elsewhere comes in by rename: the target counts, too.
        paths = given[:2] if event == "os.rename" else given[:1]
        if not any(str(path).startswith(watched) for path in paths):
            return
        with one_at_a_time:
            if next(numbers) == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
            os.write(steps, b".")

    sys.addaudithook(hear)
    return run(arguments)


def import_what_a_run_imports() -> None:
    """Learn from a run in a fork which modules to have here, so that no fork imports them again."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with tempfile.TemporaryDirectory() as folder:
                _run(
                    str(Tiny.fresh(Path(folder) / "p").root),
                    ["apply", "-y"],
                    None,
                    None,
                    None,
                    writing,
                )
        finally:
            os.write(writing, " ".join(sys.modules).encode())
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        for name in pipe.read().split():
            with contextlib.suppress(ImportError):
                importlib.import_module(name.lstrip("."))
    os.waitpid(child, 0)


def _serve() -> None:
    import_what_a_run_imports()
    for module in sys.argv[1:]:
        if module != "--spark":
            importlib.import_module(module)
    shared: Any = None
    if "--spark" in sys.argv:
        from odfbuild.engine.spark.start import start_engine

        shared = start_engine()
    for line in sys.stdin:
        request = json.loads(line)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            code = 70
            if request["after"] is not None:
                _die_after(request["after"])
            try:
                code = _run(
                    request["root"],
                    request["arguments"],
                    request["kill_at"],
                    request["also"],
                    request["within"],
                    writing,
                    shared,
                )
            finally:
                os._exit(code)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            steps = len(pipe.read())
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(json.dumps({"code": status, "steps": steps}), flush=True)
    if shared is not None:
        shared.stop()


if __name__ == "__main__":
    _serve()
