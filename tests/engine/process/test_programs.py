"""Engines that odfbuild starts itself: how they begin, break and end."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from odfbuild.engine.process import relay
from odfbuild.engine.process.programs import is_gone, owner, socket_folder, sweep_folders
from tests.engine.process.project import Remote, remote

__all__ = ["remote"]

ROOT = Path(__file__).parents[3]


def command(mode: str, **more: Any) -> dict[str, Any]:
    """An engine as a command in the settings of a machine."""
    python = ["env", f"PYTHONPATH={ROOT}", sys.executable, "-m", "tests.engine.process.fake_engine"]
    return {"command": [*python, mode], "version": "1.0", **more}


def started(remote: Remote) -> list[Path]:
    """Programs that still run in the folder of the project."""
    found = []
    for folder in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):
            found += [folder.parent] if folder.resolve() == remote.tiny.root else []
    return [each for each in found if each.name != str(os.getpid())]


def test_a_command_is_started_once_and_ended_with_the_run(remote: Remote) -> None:
    remote.engines(machine=True, mine=command("honest"))
    remote.program.apply()
    assert remote.values() == [10, 20, 30]
    assert remote.versions() == ["mine@1.0"]
    assert started(remote) == []


def test_c9_an_engine_that_ends_before_it_listens_is_told_at_once_with_its_last_lines(
    remote: Remote,
) -> None:
    remote.engines(machine=True, mine=command("crash"))
    began = time.monotonic()
    found = remote.program("apply", "-y")
    assert time.monotonic() - began < 20  # the time within which it has to listen is a minute
    text = found.out + found.err
    assert "error[E1433]: engine 'mine' ended before it listened, with exit code 7" in text
    assert "it printed: cannot find my configuration" in text
    assert remote.was_not_touched()


def test_a_command_that_is_not_there_is_told(remote: Remote) -> None:
    remote.engines(machine=True, mine={"command": ["/nonexistent"], "version": "1"})
    found = remote.program("apply", "-y")
    assert "error[E1433]: engine 'mine' cannot be started: /nonexistent" in found.out + found.err


def test_c11_an_engine_that_never_listens_is_told_after_its_start_timeout(remote: Remote) -> None:
    remote.engines(machine=True, mine=command("silent", startTimeout=1))
    found = remote.program("apply", "-y")
    text = found.out + found.err
    assert "error[E1434]: engine 'mine' does not listen within 1 seconds" in text
    assert started(remote) == []


def test_an_engine_that_dies_in_the_middle_of_a_step_is_told_with_its_last_lines(
    remote: Remote,
) -> None:
    remote.engines(machine=True, mine=command("die"))
    found = remote.program("apply", "-y")
    text = found.out + found.err
    assert "error[E1435]: engine 'mine' broke off in the middle of the step" in text
    assert "exit code 3" in text and "it printed: a bad thing happened" in text
    assert remote.was_not_touched()


def test_c10_a_program_that_hangs_is_ended(remote: Remote) -> None:
    remote.engines(machine=True, mine=command("hang", timeout=1.5))
    found = remote.program("apply", "-y")
    assert "error[E1436]" in found.out + found.err
    assert started(remote) == []
    assert remote.was_not_touched()


def test_c26_sockets_have_short_paths_wherever_the_project_lies(
    remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = remote.tiny.root / ("a" * 100) / ("b" * 100)
    deep.mkdir(parents=True)
    folder = socket_folder()
    try:
        assert len(str(folder / "run" / "engine")) < 100
        assert folder.stat().st_mode & 0o777 == 0o700
    finally:
        folder.rmdir()


def test_c14_what_a_killed_coordinator_left_is_removed(remote: Remote) -> None:
    ended = subprocess.Popen(["true"])
    mine = owner()
    assert not is_gone(mine)
    ended.wait()
    left = Path(f"/tmp/odf-engine-{ended.pid}.1-test")
    left.mkdir(exist_ok=True)
    kept = socket_folder()
    sweep_folders()
    assert (left.exists(), kept.exists()) == (False, True)
    kept.rmdir()


def test_c12_without_a_container_runtime_an_image_cannot_be_an_engine(
    remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ODFBUILD_CONTAINER_RUNTIME", "/nonexistent/podman")
    remote.engines(mine={"image": f"localhost/x@sha256:{'0' * 64}"})
    found = remote.program("apply", "-y")
    assert "error[E1431]: no container runtime is here: /nonexistent/podman" in (
        found.out + found.err
    )
    assert remote.was_not_touched()


def test_c33_a_plan_starts_no_program(remote: Remote) -> None:
    trap = remote.tiny.root / "started"
    remote.engines(machine=True, mine={"command": ["touch", str(trap)], "version": "1"})
    said = remote.program.ok("plan")
    assert "keeps what it needs of earlier records in its checkpoint" in said.out
    assert not trap.exists()


@pytest.mark.parametrize("kill", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_is_ended_during_a_step_leaves_nothing_and_the_next_one_does_it(
    remote: Remote, kill: int
) -> None:
    remote.engines(machine=True, mine=command("hang", timeout=50))
    process = remote.tiny.start("apply", "-y", env={"PYTHONPATH": str(ROOT)}, script=PLAIN)
    try:
        deadline = time.monotonic() + 60
        while not asked(remote) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert asked(remote)
        for _ in range(2 if kill == signal.SIGINT else 1):
            os.kill(process.pid, kill)
            time.sleep(0.3)
        process.communicate(timeout=60)
    finally:
        process.kill()
    if kill == signal.SIGINT:
        assert started(remote) == []
    assert remote.tiny.workspace().projection("derived") is None
    remote.engines(machine=True, mine=command("honest"))
    remote.program.apply()
    assert remote.values() == [10, 20, 30]
    assert started(remote) == []  # the next run also ended what the killed one left


def asked(remote: Remote) -> bool:
    """Whether the engine is at work on records."""
    logs = remote.tiny.root.glob(".odfbuild/engines/*.log")
    return any("at work" in each.read_text() for each in logs)


PLAIN = """
import sys
from odfbuild.engine.spark import start as module
from odfbuild.cli.main import main
from tests.engine.process.project import OnlySpark
module.start_engine = lambda *_: OnlySpark()
main()
"""


@pytest.mark.parametrize("open", [True, False], ids=["listening", "waiting for a port"])
def test_a_relay_ends_when_its_folder_is_gone(tmp_path: Path, open: bool) -> None:
    """As that of a killed run is, which the next one removes."""
    folder = tmp_path / "of"
    folder.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        if not open:
            server.close()
        command = [sys.executable, "-I", "-S", relay.__file__, str(folder / "relay"), str(port)]
        with subprocess.Popen(command) as process:
            while open and not (folder / "relay").exists():
                time.sleep(0.01)
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.5)
            shutil.rmtree(folder)
            assert process.wait(60) == 0
