"""`kill -9` inside steps of stream and changelog datasets that Spark computes, then a rerun.

`test_every_kill` kills at every change of a file, without a JVM. Here are the places that only an
engine has: while it computes, and between its result in scratch and the dataset. One JVM serves all
runs, so that a kill costs a second instead of ten.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from odfbuild.apply.collect import collect
from odfbuild.inspect.verify.integrity import verify_integrity
from odfbuild.store.engine_folders import abandoned_engine_folders, engine_folder
from tests.apply.killer import Killer
from tests.apply.tiny import Tiny

pytestmark = pytest.mark.spark

KILLED = -9
DAILY = (
    "SELECT window.start AS event_time, COUNT(*) AS n, SUM(value) AS total FROM source "
    "GROUP BY window(event_time, '1 day')"
)
LATEST = "SELECT max(event_time) AS event_time, id % 2 AS odd, SUM(value) AS total FROM source"
APPLY = ("apply", "-y", "--jobs", "1")
SCRATCH = ".odfbuild/scratch"


@pytest.fixture(scope="module")
def killer() -> Iterator[Killer]:
    with Killer(spark=True) as started:
        yield started


@dataclass(frozen=True)
class World:
    """A project whose derivatives have a history and something to do, and how that ends."""

    before: Tiny
    after: Tiny
    steps: int
    """Changes of files, scratch included, of the run that leads from one to the other."""


@pytest.fixture(scope="module")
def world(killer: Killer, tmp_path_factory: pytest.TempPathFactory) -> World:
    before = Tiny.fresh(tmp_path_factory.mktemp("kills") / "before")
    before.derive("derived", DAILY)
    before.derive("latest", f"{LATEST} GROUP BY id % 2")
    assert killer.run(before.root, *APPLY)[0] == 0
    before.arrive(2)
    (before.root / "data" / "3.csv").write_text("event_time,id,value\n2024-03-01 00:00:00,5,5\n")
    after = copy(before, before.root.with_name("after"))
    code, steps = killer.run(after.root, *APPLY, also=SCRATCH)
    assert code == 0, (after.root / "run.log").read_text()
    assert [record["n"] for record in after.records("derived")] == [1, 1, 1, 1]
    assert [record["op"] for record in after.records("latest")][2:] == [2, 3, 2, 3]
    return World(before, after, steps)


def copy(tiny: Tiny, to: Path) -> Tiny:
    shutil.copytree(tiny.root, to)
    return Tiny(to)


def check(killer: Killer, world: World, tiny: Tiny, where: str) -> None:
    """The next run completes what the killed one left: same records, same chains, no orphans."""
    assert killer.run(tiny.root, *APPLY)[0] == 0, (tiny.root / "run.log").read_text()
    assert tiny.state() == world.after.state(), where
    found = collect(tiny.workspace(), None, before=time.time() + 60, dry_run=False)
    assert (found.damaged, found.held) == ((), ())
    assert tiny.state() == world.after.state(), where
    assert files_of(tiny) == files_of(world.after), where
    assert verify_integrity(tiny.workspace()) == ()
    assert list((tiny.root / SCRATCH).iterdir()) == []


def files_of(tiny: Tiny) -> dict[str, int]:
    folders = ("blocks", "data", "checkpoints")
    return {kind: len(list((tiny.root / "chains").glob(f"*/{kind}/*"))) for kind in folders}


@pytest.mark.parametrize("seconds", [0.05, 0.4])
@pytest.mark.parametrize("dataset", ["derived", "latest"])
def test_a_run_killed_while_spark_computes_is_completed_by_the_next(
    killer: Killer, world: World, tmp_path: Path, dataset: str, seconds: float
) -> None:
    tiny = copy(world.before, tmp_path / "p")
    code, _ = killer.run(tiny.root, *APPLY, within=(dataset, seconds))
    # A fast machine may be done with the step before; then nothing was killed within it.
    assert code in (KILLED, 0)
    check(killer, world, tiny, f"{dataset} after {seconds} s")


@pytest.mark.slow  # two runs for each of some eighty changes of files
def test_a_run_killed_at_any_change_of_a_file_is_completed_by_the_next(
    killer: Killer, world: World, tmp_path: Path
) -> None:
    for kill_at in range(world.steps):
        tiny = copy(world.before, tmp_path / str(kill_at))
        code, steps = killer.run(tiny.root, *APPLY, also=SCRATCH, kill_at=kill_at)
        assert (code, steps) == (KILLED, kill_at)
        check(killer, world, tiny, f"step {kill_at}")
        shutil.rmtree(tiny.root)


def test_a_run_killed_in_a_commit_of_several_files_is_completed_by_the_next(
    killer: Killer, tmp_path: Path
) -> None:
    before = Tiny.fresh(tmp_path / "before")
    (before.root / "datasets/derived.yaml").unlink()
    for number in range(2, 6):
        text = f"event_time,id,value\n2024-03-0{number} 00:00:00,{number},5\n"
        (before.root / "data" / f"{number}.csv").write_text(text)
    after = copy(before, tmp_path / "after")
    code, steps = killer.run(after.root, *APPLY)
    assert code == 0, (after.root / "run.log").read_text()
    world = World(before, after, steps)
    # The four of the group move their objects, stage and move their blocks, and then the head.
    for kill_at in range(steps - 14, steps, 4):
        tiny = copy(before, tmp_path / str(kill_at))
        assert killer.run(tiny.root, *APPLY, kill_at=kill_at) == (KILLED, kill_at)
        check(killer, world, tiny, f"step {kill_at} of {steps}")
        shutil.rmtree(tiny.root)


def test_a_run_killed_among_roots_that_were_read_together_is_completed_by_the_next(
    killer: Killer, tmp_path: Path
) -> None:
    before = Tiny.fresh(tmp_path / "before")
    (before.root / "datasets/derived.yaml").unlink()
    definition = (before.root / "datasets/root.yaml").read_text()
    for name in ("second", "third"):
        text = definition.replace("name: root", f"name: {name}")
        (before.root / f"datasets/{name}.yaml").write_text(text)
    after = copy(before, tmp_path / "after")
    code, steps = killer.run(after.root, *APPLY)
    assert code == 0, (after.root / "run.log").read_text()
    world = World(before, after, steps)
    for kill_at in range(2, steps, steps // 4):
        tiny = copy(before, tmp_path / str(kill_at))
        assert killer.run(tiny.root, *APPLY, kill_at=kill_at) == (KILLED, kill_at)
        check(killer, world, tiny, f"step {kill_at} of {steps}")
        shutil.rmtree(tiny.root)


def test_what_a_killed_engine_had_for_itself_is_collected(tmp_path: Path) -> None:
    """Its folder lies outside of the project; those of running and of other ones are left alone."""
    script = (
        "import os\nfrom odfbuild.store.engine_folders import engine_folder\n"
        "import sys\nfrom pathlib import Path\n"
        "folder, _ = engine_folder(Path(sys.argv[1]))\n(folder / 'local').mkdir()\n"
        "print(folder, flush=True)\nos.kill(os.getpid(), 9)\n"
    )
    tiny = Tiny.fresh(tmp_path / "p")
    scratch = tiny.workspace().cache / "scratch"
    here = {**os.environ, "TMPDIR": str(tmp_path)}
    folders = []
    for owner in (scratch, tmp_path / "another" / "scratch"):
        command = [sys.executable, "-c", script, str(owner)]
        done = subprocess.run(command, env=here, capture_output=True, text=True, check=False)
        assert done.returncode == KILLED
        folders.append(Path(done.stdout.strip()))
    killed, of_another_project = folders
    assert killed.is_dir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tempfile.tempdir", str(tmp_path))
        running, lock = engine_folder(scratch)
        assert list(abandoned_engine_folders(scratch)) == [killed]
        kept = collect(tiny.workspace(), None, before=time.time() - 60, dry_run=False)
        assert kept.garbage == ()
        found = collect(tiny.workspace(), None, before=time.time() + 60, dry_run=False)
        assert [each.path for each in found.garbage] == [killed]
        assert running.is_dir()
        assert of_another_project.is_dir()
        assert not killed.exists()
        os.close(lock)
