"""`kill -9` before every single change of a file, then a rerun: the same records and chain."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from odfbuild.verify.integrity import verify_integrity
from tests.apply.killer import Killer
from tests.apply.tiny import QUERY, Tiny

pytestmark = pytest.mark.long

KILLED = -9


@pytest.fixture(scope="module")
def killer() -> Iterator[Killer]:
    with Killer() as started:
        yield started


def copy(tiny: Tiny, to: Path) -> Tiny:
    shutil.copytree(tiny.root, to)
    return Tiny(to)


def creation(killer: Killer, root: Path) -> Tiny:
    """Nothing is there yet: root and derivative come into being."""
    return Tiny.fresh(root)


def append(killer: Killer, root: Path) -> Tiny:
    """Another file came."""
    tiny = creation(killer, root)
    assert killer.run(tiny.root, "apply", "-y")[0] == 0
    tiny.arrive(2)
    return tiny


def new_query(killer: Killer, root: Path) -> Tiny:
    """Another file and another query: two blocks of the derivative in one transaction."""
    tiny = append(killer, root)
    tiny.derive("derived", QUERY.replace("10", "100"))
    return tiny


@pytest.mark.parametrize("prepare", [creation, append, new_query], ids=lambda f: f.__name__)
def test_a_run_killed_at_any_step_is_completed_by_the_next(
    tmp_path: Path, killer: Killer, prepare: Callable[[Killer, Path], Tiny]
) -> None:
    before = prepare(killer, tmp_path / "before")
    undisturbed = copy(before, tmp_path / "undisturbed")
    code, steps = killer.run(undisturbed.root, "apply", "-y")
    assert code == 0
    expected = undisturbed.state()
    kinds = {name: now[0] for name, now in expected.items()}
    assert all("Seed" in of and of[-1] in ("AddData", "ExecuteTransform") for of in kinds.values())
    assert steps >= 2 * len(["object", "block", "new block", "head", "new head"])
    for kill_at in range(steps):
        tiny = copy(before, tmp_path / str(kill_at))
        assert killer.run(tiny.root, "apply", "-y", kill_at=kill_at) == (KILLED, kill_at)
        _still_readable(tiny)
        assert killer.run(tiny.root, "apply", "-y")[0] == 0, (tiny.root / "run.log").read_text()
        assert tiny.state() == expected, f"killed at step {kill_at}"
        assert verify_integrity(tiny.workspace()) == ()
        shutil.rmtree(tiny.root)


def _still_readable(tiny: Tiny) -> None:
    """Whoever reads between the two runs sees whole chains only."""
    tiny.state()
