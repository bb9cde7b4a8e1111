"""`kill -9` of `pull` and `push` before every change of a file, then again: the same result."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from odfbuild.inspect.verify.integrity import verify_integrity
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.workspace import Workspace
from tests.apply.killer import Killer
from tests.apply.tiny import Tiny
from tests.exchange.repositories.chains import NOW, files, grow, info, published, workspace

pytestmark = pytest.mark.long

KILLED = -9
MODULES = (
    *("odfbuild.cli.pull", "odfbuild.cli.push", "odfbuild.apply.transfers"),
    *("odfbuild.exchange.repositories.signing", "odfbuild.report.transfers"),
)
"""What each run would import again."""
REPOSITORY = "published"
PULL = ("pull", f"{REPOSITORY}/prices")


@pytest.fixture(scope="module")
def killer() -> Iterator[Killer]:
    with Killer(*MODULES) as started:
        yield started


class Scene:
    """A project in `root`, and in a folder of it a repository that is somebody else's."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.there = DatasetStore(root / REPOSITORY / "prices", "prices")

    @property
    def here(self) -> DatasetStore:
        return workspace(self.root).dataset("prices")

    @property
    def sides(self) -> tuple[DatasetStore, DatasetStore]:
        return self.here, self.there

    def copied(self, folder: Path) -> Scene:
        return Scene(Path(shutil.copytree(self.root, folder)))

    def publish(self) -> None:
        """What is here is there, too."""
        shutil.copytree(self.here.path, self.there.path)

    def give_away(self) -> None:
        """What is here is there, and no longer here."""
        self.publish()
        shutil.rmtree(self.root / "chains")


def scene(folder: Path) -> Scene:
    """A dataset with two slices, in a project that publishes nothing yet."""
    root = Tiny.fresh(folder).root
    published(root)
    return Scene(root)


def pull_new(made: Scene) -> tuple[str, ...]:
    made.give_away()
    return (*PULL[:1], f"./{PULL[1]}")


def pull_update(made: Scene) -> tuple[str, ...]:
    made.publish()
    for first in (6, 9):
        grow(made.there, first)
    return ("pull", "prices", "--from", f"./{REPOSITORY}")


def pull_reset(made: Scene) -> tuple[str, ...]:
    command = pull_update(made)
    grow(made.here, 6)
    made.here.append(made.here.head(), (info("mine"),), NOW)
    return (*command, "--allow", "reset:prices")


def push_new(made: Scene) -> tuple[str, ...]:
    return ("push", "prices", "--to", f"./{REPOSITORY}")


def push_update(made: Scene) -> tuple[str, ...]:
    made.publish()
    for first in (6, 9):
        grow(made.here, first)
    return push_new(made)


def push_reset(made: Scene) -> tuple[str, ...]:
    command = push_update(made)
    grow(made.there, 6)
    made.there.append(made.there.head(), (info("theirs"),), NOW)
    return (*command, "--allow", "reset:prices")


PREPARED: list[Callable[[Scene], tuple[str, ...]]] = [
    pull_new,
    pull_update,
    pull_reset,
    push_update,
    push_reset,
]


@pytest.mark.parametrize("prepare", PREPARED, ids=lambda prepare: prepare.__name__)
# Each in turn begins at another step: together they come to all kinds.
@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_a_transfer_that_is_killed_at_any_step_is_completed_by_the_same_command(
    tmp_path: Path, killer: Killer, prepare: Callable[[Scene], tuple[str, ...]], every: int
) -> None:
    before = scene(tmp_path / "before")
    command = prepare(before)
    whole = before.copied(tmp_path / "whole")
    code, steps = killer.run(whole.root, *command, also=REPOSITORY)
    assert code == 0, (whole.root / "run.log").read_text()
    heads = {str(side.head()) for each in (before, whole) for side in each.sides} | {"None"}
    assert whole.here.head() == whole.there.head()
    assert steps > 5
    for kill_at in range(PREPARED.index(prepare) % every, steps, every):
        again = before.copied(tmp_path / f"killed at {kill_at}")
        assert killer.run(again.root, *command, kill_at=kill_at, also=REPOSITORY)[0] == KILLED
        for side in again.sides:
            assert str(side.head()) in heads
        assert intact(again), f"killed at step {kill_at}"
        complete = objects(again)
        assert killer.run(again.root, *command)[0] == 0, (again.root / "run.log").read_text()
        assert again.here.head() == again.there.head() == whole.here.head()
        for side, expected in zip(again.sides, whole.sides, strict=True):
            assert without_staged(files(side)) == files(expected)
        assert complete.items() <= objects(again).items(), "a complete object was fetched again"
        assert intact(again)
        shutil.rmtree(again.root)


def intact(made: Scene) -> bool:
    """Whether both sides are whole, as far as they have a head."""
    chains = made.there.path.parent
    sides = (workspace(made.root), workspace_at(chains))
    return all(verify_integrity(space) == () for space in sides)


def workspace_at(chains: Path) -> Workspace:
    """The datasets in a folder, as if it were that of a project's chains."""
    return Workspace(chains, chains.parent / ".odfbuild-keys", chains.parent / ".odfbuild")


def objects(made: Scene) -> dict[str, tuple[int, int]]:
    """Complete objects of both sides, and which files they are."""
    return {
        str(file): (file.stat().st_ino, file.stat().st_size)
        for side in made.sides
        for kind in ("data", "checkpoints")
        for file in (side.path / kind).glob("f1620*")
    }


def without_staged(found: dict[str, bytes]) -> dict[str, bytes]:
    """Without the files that a killed process was writing; `gc` removes them."""
    return {name: data for name, data in found.items() if ".pending-" not in name}
