"""`kill -9` before every change of a file while a branch is deleted: the next one completes it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from odfbuild.inspect.verify.integrity import verify_integrity
from tests.apply.killer import Killer
from tests.apply.tiny import QUERY, Tiny

pytestmark = pytest.mark.long

KILLED = -9
OLD = 1_000_000.0


@pytest.fixture(scope="module")
def killer() -> Iterator[Killer]:
    with Killer("odfbuild.cli.branch", "odfbuild.apply.branches", "odfbuild.cli.gc") as started:
        yield started


def run(killer: Killer, tiny: Tiny, *arguments: str) -> None:
    code, _ = killer.run(tiny.root, *arguments)
    assert code == 0, (tiny.root / "run.log").read_text()


def files(tiny: Tiny) -> dict[str, bytes]:
    """Chains, data and private keys."""
    return {
        str(each.relative_to(tiny.root)): each.read_bytes()
        for name in ("chains", ".odfbuild-keys")
        for each in (tiny.root / name).rglob("*")
        if each.is_file()
    }


def test_a_deletion_killed_at_any_step_loses_nothing_of_the_heads_and_is_completed(
    tmp_path: Path, killer: Killer
) -> None:
    before = Tiny.fresh(tmp_path / "before")
    run(killer, before, "apply", "-y")
    heads = files(before)
    before.derive("derived", QUERY.replace("10", "100"))
    before.derive("extra", QUERY)
    run(killer, before, "apply", "-y", "-b", "pr-1", "--allow", "rebuild:derived")
    arguments = ["branch", "delete", "pr-1", "-y"]
    undisturbed = Tiny(shutil.copytree(before.root, tmp_path / "undisturbed"))
    code, steps = killer.run(undisturbed.root, *arguments)
    assert code == 0, (undisturbed.root / "run.log").read_text()
    assert files(undisturbed) == heads
    for kill_at in range(steps):
        tiny = Tiny(shutil.copytree(before.root, tmp_path / str(kill_at)))
        assert killer.run(tiny.root, *arguments, kill_at=kill_at) == (KILLED, kill_at)
        assert heads.items() <= files(tiny).items()
        assert verify_integrity(tiny.workspace()) == ()
        code, _ = killer.run(tiny.root, *arguments)
        told = (tiny.root / "run.log").read_text()
        assert code == 0 or "E1102" in told, told
        if files(tiny) != heads:  # what was left behind without a reference
            for each in (tiny.root / "chains").rglob("*"):
                os.utime(each, (OLD, OLD))
            run(killer, tiny, "gc", "-y", "--grace", "0")
        assert files(tiny) == heads, f"killed at step {kill_at}"
        shutil.rmtree(tiny.root)
