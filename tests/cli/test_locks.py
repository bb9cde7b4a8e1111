"""Two processes at the same datasets: who holds them, how long to wait, and no lock that sticks."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

import pytest

from tests.apply.in_process import Program, share
from tests.apply.plain_engine import PlainEngine
from tests.apply.tiny import Tiny

_HOLD = """
import sys
from pathlib import Path
from odfbuild.store.workspace import Workspace
root = Path(sys.argv[1])
with Workspace(root / "chains", root / ".odfbuild-keys", root / ".odfbuild").claim(sys.argv[2:]):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def odfbuild(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Program:
    """The program in a project of a root and a derivative, with an engine without a JVM."""
    share(PlainEngine(), monkeypatch)  # type: ignore[arg-type]
    return Program(Tiny.fresh(tmp_path / "p").root, monkeypatch, capsys)


@contextmanager
def held(root: Path, *names: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that works on these datasets."""
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(root), *names],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
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
        assert f"{process.pid}  {holder['since']}  derived" in odfbuild.ok("lock", "list").out
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
        odfbuild.ok("apply", "-y", "--lock-timeout", "20")
    assert Tiny(odfbuild.root).ids("derived") == [1, 2, 3]


def test_terraform_28710_a_lock_does_not_outlive_its_process(odfbuild: Program) -> None:
    with held(odfbuild.root, "root") as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert odfbuild.ok("lock", "list", "--json").data == []
        odfbuild.apply()
