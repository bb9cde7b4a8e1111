"""A user whose commands share resident engines, apart from those of who runs the tests."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from odfbuild.store.disposable import user_cache
from tests.apply.tiny import Tiny

ROOT = Path(__file__).parents[4]
_PLAIN = '''
import importlib.util, os, sys, time

class Finder:
    """Gives this file for the module that starts Spark."""

    def find_spec(self, name, path=None, target=None):
        if name == "odfbuild.engine.spark.start":
            return importlib.util.spec_from_file_location(name, __file__)

if __name__ == "sitecustomize":
    if "PYTHON_TEST_END" in os.environ and "resident.server" in " ".join(sys.orig_argv):
        print("told to end", flush=True)
        os._exit(1)
    sys.meta_path.insert(0, Finder())
else:
    from tests.apply.plain_engine import PlainEngine

    class Plain(PlainEngine):
        jvm = None
        limit = None
        cancelled = False

        def for_caller(self, caller, step_seconds):
            made = Plain()
            made.limit = step_seconds
            return made

        def cancel(self):
            self._tell("cancelled")
            self.cancelled = True

        def ingest(self, task):
            self._tell("ingest")
            return super().ingest(task)

        def ingest_together(self, tasks):
            self._tell("together")

        def transform(self, task):
            self._tell("transform")
            end = time.monotonic() + float(os.environ.get("PYTHON_TEST_SECONDS", 0))
            while time.monotonic() < end and not self.cancelled:
                time.sleep(0.05)
            return super().transform(task)

        def _tell(self, what):
            with open(os.environ["PYTHON_TEST_LOG"], "a") as log:
                log.write(f"{os.getpid()} {what} {self.limit}\\n")

    def start_engine(*_):
        return Plain()
'''


@dataclass(frozen=True)
class User:
    """Has a home in `folder`; `plain` engines need no JVM, and say in a log what they do."""

    folder: Path
    plain: bool = True

    @property
    def env(self) -> dict[str, str]:
        """Variables of the commands."""
        path = [str(ROOT)]
        if self.plain:
            code = self.folder / "code" / "sitecustomize.py"
            code.parent.mkdir(parents=True, exist_ok=True)
            code.write_text(_PLAIN)
            path.insert(0, str(code.parent))
        return {
            "HOME": str(self.folder),
            "XDG_STATE_HOME": str(self.folder / "state"),
            "XDG_CACHE_HOME": str(user_cache().parent),
            "PYTHONPATH": os.pathsep.join(path),
            "PYTHON_TEST_LOG": str(self.folder / "log"),
        }

    def run(self, tiny: Tiny, *arguments: str, **more: str) -> str:
        """Run a command that must succeed; what it prints."""
        done = tiny.run(*arguments, env={**self.env, **more})
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def start(self, tiny: Tiny, **more: str) -> int:
        """`engine start`; the id of the process that serves."""
        pid: int = json.loads(self.run(tiny, "engine", "start", "--json", **more))["pid"]
        return pid

    def engines(self, tiny: Tiny) -> list[dict[str, Any]]:
        """`engine status`."""
        found: list[dict[str, Any]] = json.loads(self.run(tiny, "engine", "status", "--json"))
        return found

    def said(self) -> list[list[str]]:
        """Process, work, and limit in seconds, of all that plain engines did."""
        log = self.folder / "log"
        return [line.split() for line in log.read_text().splitlines()] if log.is_file() else []

    def workers(self) -> set[int]:
        """The processes in which plain engines did steps."""
        return {int(pid) for pid, what, _ in self.said() if what == "transform"}

    def processes(self) -> dict[int, str]:
        """All processes of this user, zombies apart, and their commands."""
        found = {}
        home = f"HOME={self.folder}\0".encode()
        for each in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if home in (each / "environ").read_bytes():
                    found[int(each.name)] = (each / "cmdline").read_text().replace("\0", " ")
        return found

    def end(self) -> None:
        """Kill what is left."""
        for pid in self.processes():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)


def within(seconds: float, is_so: Callable[[], object]) -> bool:
    """Whether something becomes so in that time."""
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def settings(tiny: Tiny, **engine: object) -> None:
    """Write `engine:` into odfbuild.yaml."""
    file = tiny.root / "odfbuild.yaml"
    text = file.read_text().split("  engine:")[0]
    file.write_text(f"{text}  engine: {json.dumps(engine)}\n")
