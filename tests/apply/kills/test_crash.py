"""A killed process with a running JVM loses and doubles nothing, and leaves no process behind.

`test_every_kill` kills at every step, without a JVM.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.apply.tiny import Tiny

pytestmark = pytest.mark.spark

# Arguments: method, "before" or "after", dataset, then those of the program.
_KILLER = """
import os, signal, sys
from odfbuild.store.dataset import DatasetStore
method, when, dataset = sys.argv[1:4]
real = getattr(DatasetStore, method)
def killing(self, *args, **kwargs):
    if self.name != dataset:
        return real(self, *args, **kwargs)
    if when == "after":
        real(self, *args, **kwargs)
    os.kill(os.getpid(), signal.SIGKILL)
setattr(DatasetStore, method, killing)
from odfbuild.cli.main import run
sys.exit(run(sys.argv[4:]))
"""


Near = Callable[[Path], Tiny]


def undisturbed(near: Near, folder: Path, *, later: bool) -> tuple[Tiny, Tiny]:
    """The project before the run that is killed, and as it is after one that nothing disturbs."""
    before, after = Tiny.fresh(folder / "before"), near(folder / "after")
    after.apply()
    if later:
        shutil.rmtree(before.root)
        shutil.copytree(after.root, before.root)
        for tiny in (before, after):
            tiny.arrive(2)
        after.apply()
    return before, after


def _java_of(folder: Path) -> list[str]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes()
            where = str((entry / "cwd").resolve())
        except OSError:
            continue
        if b"java" in command.split(b"\0")[0] and where.startswith(str(folder)):
            found.append(entry.name)
    return found


@pytest.mark.parametrize(
    ("method", "when", "dataset", "later"),
    [("swap_head", "before", "derived", False), ("put_objects", "after", "root", True)],
    ids=["creation", "append"],
)
def test_a_killed_apply_is_completed_by_the_next(
    near: Near,
    tmp_path: Path,
    method: str,
    when: str,
    dataset: str,
    later: bool,
) -> None:
    tiny, expected = undisturbed(near, tmp_path, later=later)
    process = tiny.start(method, when, dataset, "apply", "-y", script=_KILLER)
    _, err = process.communicate(timeout=200)
    assert process.returncode == -9, err
    tiny = replace(expected, root=tiny.root)
    tiny.apply()
    assert tiny.state() == expected.state()
    assert tiny.run("verify").returncode == 0
    # One that was told to end may be writing its class archive.
    deadline = time.monotonic() + 120
    while (left := _java_of(tiny.root)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left == []
