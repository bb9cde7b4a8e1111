"""`kill -9` before every change of a file, with chains in the storage and while they move there."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from odfbuild import Project
from odfbuild.inspect.verify.integrity import verify_integrity
from odfbuild.store.workspace import Workspace
from tests.apply.killer import Killer
from tests.apply.tiny import Tiny

pytestmark = pytest.mark.long

KILLED = -9
STORAGE = "store"


class Stored(Tiny):
    """The project; `workspace` is that of its odfbuild.yaml."""

    def workspace(self) -> Workspace:
        """The chains, read anew."""
        return Project(self.root).workspace()


@pytest.fixture(scope="module")
def killer() -> Iterator[Killer]:
    with Killer("odfbuild.cli.chains", "odfbuild.apply.move_chains") as started:
        yield started


def applied(killer: Killer, root: Path) -> Stored:
    """Two datasets, with chains in Git."""
    tiny = Stored.fresh(root)
    with (root / "odfbuild.yaml").open("a") as config:
        config.write(f"  storage: {STORAGE}\n")
    assert killer.run(root, "apply", "-y")[0] == 0
    return Stored(tiny.root)


def append(killer: Killer, root: Path) -> tuple[Stored, list[str]]:
    """Another file came, and chains are in the storage."""
    tiny = applied(killer, root)
    assert killer.run(root, "chains", "move", "--to", "storage")[0] == 0
    tiny.arrive(2)
    return tiny, ["apply", "-y"]


def to_storage(killer: Killer, root: Path) -> tuple[Stored, list[str]]:
    """Chains are in Git."""
    return applied(killer, root), ["chains", "move", "--to", "storage"]


def to_git(killer: Killer, root: Path) -> tuple[Stored, list[str]]:
    """Chains are in the storage."""
    tiny = applied(killer, root)
    assert killer.run(root, "chains", "move", "--to", "storage")[0] == 0
    return tiny, ["chains", "move", "--to", "git"]


@pytest.mark.parametrize("prepare", [append, to_storage, to_git], ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    "every",
    [
        9,
        # Each step takes about a second, of three runs: two minutes and a half for all.
        pytest.param(1, marks=pytest.mark.slow),
    ],
)
def test_whatever_is_killed_leaves_chains_that_can_be_read_and_is_completed(
    tmp_path: Path,
    killer: Killer,
    prepare: Callable[[Killer, Path], tuple[Stored, list[str]]],
    every: int,
) -> None:
    before, arguments = prepare(killer, tmp_path / "before")
    undisturbed = Stored(shutil.copytree(before.root, tmp_path / "undisturbed"))
    code, steps = killer.run(undisturbed.root, *arguments, also=STORAGE)
    assert code == 0, (undisturbed.root / "run.log").read_text()
    expected = undisturbed.state()
    for kill_at in range(every // 2, steps, every):
        tiny = Stored(shutil.copytree(before.root, tmp_path / str(kill_at)))
        killed = killer.run(tiny.root, *arguments, also=STORAGE, kill_at=kill_at)
        assert killed == (KILLED, kill_at)
        tiny.state()
        assert killer.run(tiny.root, *arguments)[0] == 0, (tiny.root / "run.log").read_text()
        assert tiny.state() == expected, f"killed at step {kill_at}"
        assert files(tiny) == files(undisturbed), f"killed at step {kill_at}"
        assert verify_integrity(tiny.workspace()) == ()
        shutil.rmtree(tiny.root / ".odfbuild")
        assert tiny.state() == expected
        shutil.rmtree(tiny.root)


def files(tiny: Tiny) -> list[str]:
    """What Git would carry of the chains, and how many blocks; times differ from run to run."""
    kinds = [
        each.parent.name if each.name.startswith("f1620") else each.name
        for each in (tiny.root / "chains").rglob("*")
        if each.is_file() and not each.name.startswith(".pending-") and "data" not in each.parts
    ]
    return sorted(kinds)
