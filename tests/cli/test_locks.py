"""Two processes at the same datasets: who holds them, how long to wait, and no lock that sticks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from odfbuild.store import claims
from tests.apply.in_process import Program
from tests.apply.tiny import Tiny
from tests.cli.wrong.spoil import PUSHED, PUSHED_TO

_HOLD = """
import os, sys
from pathlib import Path
from odfbuild.store import lock_holders as holders
from odfbuild.store.workspace import Workspace
root, host = Path(sys.argv[1]), os.environ.get("HOLDER_HOST")
holders.HEARTBEAT_SECONDS = 0.1
if host:
    holders.this_host = lambda: host
holders.introduce("odfbuild test")
with Workspace(root / "chains", root / ".odfbuild-keys", root / ".odfbuild").claim(sys.argv[2:]):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def held(root: Path, *names: str, host: str = "") -> Iterator[subprocess.Popen[str]]:
    """Another process that works on these datasets."""
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(root), *names],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "HOLDER_HOST": host},
        text=True,
    )
    assert process.stdin is not None and process.stdout is not None
    assert process.stdout.readline() == "held\n"
    try:
        yield process
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()


def test_who_works_on_what_is_listed(odfbuild: Program) -> None:
    assert odfbuild.ok("lock", "list").out == "No dataset is locked.\n"
    with held(odfbuild.root, "derived", "elsewhere") as process:
        (holder,) = odfbuild.ok("lock", "list", "--json").data
        assert (holder["pid"], holder["datasets"]) == (process.pid, ["derived"])
        assert holder["since"].endswith(" UTC")
        assert (holder["host"], holder["command"]) == (os.uname().nodename, "odfbuild test")
        assert holder["silent_seconds"] < 60
        head, line = odfbuild.ok("lock", "list").out.splitlines()
        assert head.split() == ["PROCESS", "HOST", "COMMAND", "SINCE", "HEARTBEAT", "DATASETS"]
        shown = f"{process.pid} {holder['host']} odfbuild test {holder['since']} "
        assert " ".join(line.split()).startswith(shown)
        assert line.endswith("  derived")
    assert odfbuild.ok("lock", "list", "--json").data == []


def test_a_dataset_that_is_held_is_left_alone_with_its_own_exit_code(odfbuild: Program) -> None:
    with held(odfbuild.root, "root") as process:
        said = odfbuild("apply", "-y", "--lock-timeout", "0")
        assert said.code == 9
        assert (
            f"error[E0702]: another process holds the lock of 'root' (process {process.pid}"
            in said.err
        )
        assert Tiny(odfbuild.root).workspace().aliases() == []
    with held(odfbuild.root, "derived"):
        assert odfbuild("apply", "-y", "--lock-timeout", "0").code == 4
    assert Tiny(odfbuild.root).workspace().aliases() == ["root"]


_ROW = '{"event_time": "2024-01-01 00:00:00", "id": %d, "value": 1}\n'

CLAIMING = {
    "apply": ("apply", "-y"),
    "ingest": ("ingest", "pushed", "new.json"),
    "reset": ("reset", "root", "-y"),
    "gc": ("gc", "-y", "--grace", "0"),
    "watermark": ("watermark", "set", "root", "2030-01-01T00:00:00Z"),
    "engine": ("engine", "deprecate"),
}
"""A command of each verb that claims datasets."""


@pytest.mark.parametrize("verb", CLAIMING)
def test_every_verb_that_claims_a_dataset_waits_for_it_and_says_so(
    odfbuild: Program, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (odfbuild.root / "datasets" / "pushed.yaml").write_text(PUSHED_TO + PUSHED)
    odfbuild.apply()
    Tiny(odfbuild.root).arrive(2)
    (odfbuild.root / "new.json").write_text(_ROW % 1)
    if verb == "engine":
        monkeypatch.setattr("odfbuild.engine.release.engine_version", lambda: "99.0")
    names = ("root", "derived", "pushed")
    with held(odfbuild.root, *names) as process:
        let_go_when_awaited(process, monkeypatch)
        said = odfbuild(*CLAIMING[verb])
    assert "E0702" not in said.err
    assert "Waiting up to 600 s for '" in said.err
    assert f"process {process.pid}, since " in said.err


def let_go_when_awaited(process: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """End the process of `held` when a command has told that it waits for it."""

    def waiting(tell: Callable[[Any], None], **more: Any) -> claims.Waiting:
        def told(found: Any) -> None:
            tell(found)
            assert process.stdin is not None
            process.stdin.close()

        return made(tell=told, **more)

    made = claims.Waiting
    monkeypatch.setattr(claims, "Waiting", waiting)


@pytest.mark.parametrize("verb", CLAIMING)
def test_waiting_has_one_spelling(odfbuild: Program, verb: str) -> None:
    odfbuild.apply()
    with held(odfbuild.root, "root", "derived"):
        said = odfbuild(*CLAIMING[verb], "--lock-timeout", "0")
    assert "no such option" not in said.err
    assert "Waiting" not in said.err


_REQUESTS = """
import os, sys
from odfbuild.cli.main import run
from odfbuild.engine.spark import start as module
from tests.apply.plain_engine import PlainEngine
module.start_engine = lambda *_: PlainEngine()
children = []
for file in sys.argv[2:]:
    child = os.fork()  # each a process of its own, without the time to start thirty of them
    if not child:
        os._exit(run(["-C", sys.argv[1], "ingest", "pushed", file]))
    children.append(child)
sys.exit(max(os.waitpid(child, 0)[1] for child in children))
"""


def test_of_thirty_requests_at_once_all_are_committed(odfbuild: Program) -> None:
    (odfbuild.root / "datasets" / "pushed.yaml").write_text(PUSHED_TO + PUSHED)
    odfbuild.apply()
    files = [odfbuild.root / f"{number}.json" for number in range(30)]
    for number, file in enumerate(files):
        file.write_text(_ROW % (100 + number))
    command = [sys.executable, "-c", _REQUESTS, str(odfbuild.root), *map(str, files)]
    here = Path(__file__).parents[2]
    done = subprocess.run(
        command, cwd=here, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert sorted(Tiny(odfbuild.root).ids("pushed")) == [100 + n for n in range(30)]
    odfbuild.ok("verify", "--integrity", "pushed")


def test_terraform_28710_a_lock_does_not_outlive_its_process(odfbuild: Program) -> None:
    with held(odfbuild.root, "root") as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert odfbuild.ok("lock", "list", "--json").data == []
        odfbuild.apply()


def test_a_holder_is_asked_to_stop(odfbuild: Program) -> None:
    odfbuild.apply()
    assert odfbuild.ok("lock", "break", "root").out == "'root' is not locked.\n"
    with held(odfbuild.root, "root", "derived") as process:
        said = odfbuild.ok("lock", "break", "Root", "--auto-approve")
        assert said.out == "The lock of 'root' is released.\n"
        assert said.err.startswith(f"process {process.pid}, since 20")
        assert said.err.endswith(" UTC (odfbuild test) holds the lock of 'root'.\n")
        assert process.wait(timeout=120) == -signal.SIGINT
    assert odfbuild.ok("lock", "list", "--json").data == []
    odfbuild.apply()


def test_a_holder_that_does_not_listen_is_ended(odfbuild: Program) -> None:
    odfbuild.apply()
    with held(odfbuild.root, "root") as process:
        process.send_signal(signal.SIGSTOP)
        said = odfbuild("lock", "break", "root", "--auto-approve", "--lock-timeout", "0.2")
        assert said.code == 9
        assert "error[E0347]: the lock of 'root' was not broken: process" in said.err
        assert "did not release it within 0.2 seconds" in said.err
        assert "--now" in said.err
        process.send_signal(signal.SIGCONT)
        odfbuild.ok("lock", "break", "root", "--auto-approve", "--now")
        process.wait(timeout=120)


def test_nobody_is_stopped_without_being_asked_about(odfbuild: Program) -> None:
    odfbuild.apply()
    with held(odfbuild.root, "root") as process:
        assert "error[E0334]" in odfbuild("lock", "break", "root").err
        assert process.poll() is None
        assert odfbuild("lock", "break", "rot").code == 1


def test_dvc_5795_the_lock_of_a_machine_that_is_gone_can_be_taken(odfbuild: Program) -> None:
    odfbuild.apply()
    with held(odfbuild.root, "root", host="far.away") as process:
        (holder,) = odfbuild.ok("lock", "list", "--json").data
        assert (holder["host"], holder["datasets"]) == ("far.away", ["root"])
        said = odfbuild("lock", "break", "root", "--auto-approve")
        assert said.code == 9
        assert f"process {process.pid} on far.away, since" in said.err
        assert "run `odfbuild lock break root` on far.away" in said.err
        odfbuild.ok("lock", "break", "root", "--auto-approve", "--forget")
        assert process.poll() is None
        assert odfbuild.ok("lock", "list", "--json").data == []
        Tiny(odfbuild.root).arrive(2)
        odfbuild.apply()
