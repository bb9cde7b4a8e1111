"""`kill -9` before every single change of a file by `apply -b`, then a rerun."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from odfbuild.store.workspace import Workspace
from tests.apply.killer import Killer
from tests.apply.tiny import QUERY, Tiny

pytestmark = pytest.mark.long

KILLED = -9
IN_BRANCH = ("apply", "-y", "-b", "pr-1")


class Branched(Tiny):
    """The project; `workspace` is that of the branch."""

    def workspace(self) -> Workspace:
        """The chains as they are in the branch."""
        return Workspace(
            self.root / "chains",
            self.root / ".odfbuild-keys",
            self.root / ".odfbuild",
            branch="pr-1",
        )


@pytest.fixture(scope="module")
def killer() -> Iterator[Killer]:
    with Killer() as started:
        yield started


def new_query(killer: Killer, root: Path) -> Tiny:
    """A changed query and a new dataset that reads it."""
    tiny = Tiny.fresh(root)
    assert killer.run(tiny.root, "apply", "-y")[0] == 0
    tiny.derive("derived", QUERY.replace("10", "100"))
    tiny.derive("new", QUERY, "derived")
    return tiny


@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_an_apply_in_a_branch_killed_at_any_step_is_completed_by_the_next(
    tmp_path: Path, killer: Killer, every: int
) -> None:
    before = new_query(killer, tmp_path / "before")
    heads = before.workspace().heads()
    readers = before.state()
    arguments = (*IN_BRANCH, "--allow", "rebuild:derived")
    undisturbed = Branched(Path(shutil.copytree(before.root, tmp_path / "undisturbed")))
    code, steps = killer.run(undisturbed.root, *arguments)
    assert code == 0, (undisturbed.root / "run.log").read_text()
    expected = undisturbed.state()
    assert set(undisturbed.workspace().branches()["pr-1"]) == {"derived", "new"}
    for kill_at in range(0, steps, every):
        tiny = Branched(Path(shutil.copytree(before.root, tmp_path / str(kill_at))))
        assert killer.run(tiny.root, *arguments, kill_at=kill_at) == (KILLED, kill_at)
        # Readers of the head never see any of it; those of the branch see whole chains only.
        assert Tiny(tiny.root).workspace().heads() == heads
        assert Tiny(tiny.root).state() == readers
        tiny.state()
        tiny.workspace().branches()
        again = IN_BRANCH if "derived" in tiny.workspace().branches().get("pr-1", {}) else arguments
        assert killer.run(tiny.root, *again)[0] == 0, (tiny.root / "run.log").read_text()
        assert tiny.state() == expected, f"killed at step {kill_at}"
        assert Tiny(tiny.root).workspace().heads() == heads
        branches = tiny.workspace().branches()["pr-1"]
        assert {name: each.base is None for name, each in branches.items()} == {
            "derived": False,
            "new": True,
        }
        assert list((tiny.root / "chains" / "new" / "refs").glob(".pending-*")) == []
        keys = [each for each in (tiny.root / ".odfbuild-keys").iterdir() if each.name[0] != "."]
        assert len(keys) == 3
        shutil.rmtree(tiny.root)
