"""`gc --storage` removes what no block refers to, of no branch and no clone that is known here."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from odfbuild import Project
from tests.apply.in_process import Program
from tests.apply.tiny import QUERY, Tiny
from tests.cli.clones import begin, clone, commit, git, share

DAY = 86_400


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    return begin(tmp_path / "p")


@pytest.fixture
def shared(tiny: Tiny, odfbuild: Program) -> Tiny:
    """A project with two objects in its storage."""
    share(tiny)
    odfbuild.apply()
    commit(tiny)
    return tiny


def stored(tiny: Tiny) -> set[str]:
    folder = tiny.root.parent / "storage"
    return {f"{each.parent.name}/{each.name}" for each in folder.rglob("f1620*")}


def leave(tiny: Tiny, kind: str, days: int) -> Path:
    """An object that a killed run left some days ago."""
    file = tiny.root.parent / "storage" / kind / f"f1620{days:064x}"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(b"left")
    os.utime(file, (time.time() - days * DAY,) * 2)
    return file


def test_what_a_killed_run_left_goes_once_it_is_old(shared: Tiny, odfbuild: Program) -> None:
    used = stored(shared)
    old, young = leave(shared, "data", 15), leave(shared, "checkpoints", 13)
    said = odfbuild.ok("gc", "--storage", "-n").out
    assert (
        "  data: 1 object\nWould remove 1 object of ../storage, 4 bytes; 2 objects in use.\n"
        in said
    )
    assert "did not push is not known here" in said
    assert old.exists()
    found = json.loads(odfbuild.ok("gc", "--storage", "--json", "-y").out)
    assert [each["name"] for each in found["garbage"]] == [f"data/{old.name}"]
    assert (found["removed"], found["used"], found["size"]) == (True, 2, 4)
    assert not old.exists()
    assert young.exists()
    assert odfbuild.ok("gc", "--storage", "--grace", "0", "-y").out.startswith("  checkpoints: 1")
    assert stored(shared) == used


def test_nothing_goes_without_consent(shared: Tiny, odfbuild: Program) -> None:
    old = leave(shared, "data", 15)
    said = odfbuild("gc", "--storage")
    assert said.code == 1
    assert old.exists()


def test_what_only_another_branch_has_is_kept(shared: Tiny, odfbuild: Program) -> None:
    git(shared.root, "switch", "-q", "-c", "feature")
    shared.derive("late", QUERY)
    odfbuild.apply()
    commit(shared)
    used = stored(shared)
    assert len(used) == 3
    git(shared.root, "switch", "-q", "main")
    assert not (shared.root / "chains" / "late" / "refs").exists()
    assert "; 3 objects in use." in odfbuild.ok("gc", "--storage", "--grace", "0", "-y").out
    # Another clone has it as a branch of its remote.
    _, program = clone(odfbuild, shared.root)
    assert "; 3 objects in use." in program.ok("gc", "--storage", "--grace", "0", "-y").out
    assert stored(shared) == used
    # Once nobody has that branch, nobody needs what it had.
    git(shared.root, "branch", "-q", "-D", "feature")
    odfbuild.ok("gc", "--grace", "0", "-y")
    said = odfbuild.ok("gc", "--storage", "--grace", "0", "-y").out
    assert said.startswith("  data: 1 object\nRemoved 1 object of ../storage")
    assert len(stored(shared)) == 2


def test_blocks_in_the_storage_tell_what_is_used(shared: Tiny, odfbuild: Program) -> None:
    odfbuild.ok("chains", "move", "--to", "storage")
    commit(shared)
    leave(shared, "data", 15)
    project = Project(shared.root)
    assert project.collect_storage(dry_run=True).used == 2
    assert len(project.collect_storage().garbage) == 1
    assert "Verified 2 datasets" in odfbuild.ok("verify", "--integrity").out


def test_nothing_goes_where_a_block_cannot_be_read(shared: Tiny, odfbuild: Program) -> None:
    old = leave(shared, "data", 15)
    (shared.root / "chains" / "root" / "blocks" / f"f1620{7:064x}").write_bytes(b"no block")
    said = odfbuild("gc", "--storage", "-y")
    assert said.err.startswith("error[E1690]: a block cannot be read")
    assert old.exists()


def test_a_project_needs_a_storage_for_that(odfbuild: Program) -> None:
    assert odfbuild("gc", "--storage").err.startswith("error[E0373]")
    assert odfbuild("gc", "--storage", "root").code == 64
