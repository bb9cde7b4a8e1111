"""Two processes at the same datasets: who holds them, how long to wait, and no lock that sticks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

from tests.apply.in_process import Program
from tests.apply.tiny import Tiny

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
    assert odfbuild.ok("lock", "list").out == "Nobody works on any dataset.\n"
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
        said = odfbuild("apply", "-y")
        assert said.code == 9
        assert (
            f"error[E0702]: another process is at work on 'root' (process {process.pid}" in said.err
        )
        assert Tiny(odfbuild.root).workspace().aliases() == []
    with held(odfbuild.root, "derived"):
        assert odfbuild("apply", "-y").code == 4
    assert Tiny(odfbuild.root).workspace().aliases() == ["root"]


def test_what_is_held_is_waited_for(odfbuild: Program) -> None:
    with held(odfbuild.root, "root") as process:
        assert process.stdin is not None
        Timer(0.4, process.stdin.close).start()
        odfbuild.ok("apply", "-y", "--lock-timeout", "120")
    assert Tiny(odfbuild.root).ids("derived") == [1, 2, 3]


def test_terraform_28710_a_lock_does_not_outlive_its_process(odfbuild: Program) -> None:
    with held(odfbuild.root, "root") as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert odfbuild.ok("lock", "list", "--json").data == []
        odfbuild.apply()


def test_a_holder_is_asked_to_stop(odfbuild: Program) -> None:
    odfbuild.apply()
    assert odfbuild.ok("lock", "break", "root").out == "Nobody works on 'root'.\n"
    with held(odfbuild.root, "root", "derived") as process:
        said = odfbuild.ok("lock", "break", "Root", "--yes")
        assert said.out == "'root' is free.\n"
        assert said.err.startswith(f"process {process.pid}, since 20")
        assert said.err.endswith(" UTC (odfbuild test) works on 'root'.\n")
        assert process.wait(timeout=120) == -signal.SIGINT
    assert odfbuild.ok("lock", "list", "--json").data == []
    odfbuild.apply()


def test_a_holder_that_does_not_listen_is_ended(odfbuild: Program) -> None:
    odfbuild.apply()
    with held(odfbuild.root, "root") as process:
        process.send_signal(signal.SIGSTOP)
        said = odfbuild("lock", "break", "root", "--yes", "--wait", "0.2")
        assert said.code == 9
        assert "error[E0347]: the lock of 'root' was not broken: process" in said.err
        assert "has not let go of it in 0.2 seconds" in said.err
        assert "--now" in said.err
        process.send_signal(signal.SIGCONT)
        odfbuild.ok("lock", "break", "root", "--yes", "--now")
        process.wait(timeout=120)


def test_nobody_is_stopped_without_being_asked_about(odfbuild: Program) -> None:
    odfbuild.apply()
    with held(odfbuild.root, "root") as process:
        assert odfbuild("lock", "break", "root").code == 64
        assert process.poll() is None
        assert odfbuild("lock", "break", "rot").code == 1


def test_dvc_5795_the_lock_of_a_machine_that_is_gone_can_be_taken(odfbuild: Program) -> None:
    odfbuild.apply()
    with held(odfbuild.root, "root", host="far.away") as process:
        (holder,) = odfbuild.ok("lock", "list", "--json").data
        assert (holder["host"], holder["datasets"]) == ("far.away", ["root"])
        said = odfbuild("lock", "break", "root", "--yes")
        assert said.code == 9
        assert f"process {process.pid} on far.away, since" in said.err
        assert "run `odfbuild lock break root` on far.away" in said.err
        odfbuild.ok("lock", "break", "root", "--yes", "--forget")
        assert process.poll() is None
        assert odfbuild.ok("lock", "list", "--json").data == []
        Tiny(odfbuild.root).arrive(2)
        odfbuild.apply()
