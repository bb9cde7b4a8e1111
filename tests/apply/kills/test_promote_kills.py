"""`kill -9` before every change of a file in a promotion, and two who promote or apply at once."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from odfbuild.inspect.verify.integrity import verify_integrity
from odfbuild.store.moving_heads import consistent_heads, read_manifest
from tests.apply.killer import Killer
from tests.apply.tiny import QUERY, Tiny

pytestmark = pytest.mark.long

KILLED = -9
REBUILD = ("--allow", "rebuild:derived+")
MORE = "event_time,id,value\n2024-03-01 00:00:00,5,5\n"


@pytest.fixture(scope="module")
def killer() -> Iterator[Killer]:
    with Killer("odfbuild.cli.promote", "odfbuild.apply.promote") as started:
        yield started


def run(killer: Killer, tiny: Tiny, *arguments: str) -> None:
    code, _ = killer.run(tiny.root, *arguments)
    assert code == 0, (tiny.root / "run.log").read_text()


def branch(killer: Killer, root: Path, *more: str) -> Tiny:
    """A branch with a changed query, a new file and a new dataset."""
    tiny = Tiny.fresh(root)
    run(killer, tiny, "apply", "-y")
    tiny.derive("derived", QUERY.replace("10", "100"))
    tiny.derive("extra", "SELECT event_time, id, value FROM source", "derived")
    tiny.describe("root", "Changed too")
    tiny.arrive(2)
    run(killer, tiny, "apply", "-y", "-b", "pr-1", *more)
    return tiny


def unmoved(killer: Killer, root: Path) -> Tiny:
    """No head moved: nothing is computed."""
    return branch(killer, root)


def moved(killer: Killer, root: Path) -> Tiny:
    """The head read the same file and another one: all is replayed."""
    tiny = branch(killer, root)
    tiny.derive("derived", QUERY)
    (tiny.root / "datasets" / "extra.yaml").unlink()
    (tiny.root / "data" / "3.csv").write_text(MORE)
    run(killer, tiny, "apply", "-y")
    return tiny


def rebuilt(killer: Killer, root: Path) -> Tiny:
    """The history was computed again, and the head got another file meanwhile."""
    tiny = branch(killer, root, "--allow", "rebuild:derived")
    tiny.derive("derived", QUERY)
    (tiny.root / "datasets" / "extra.yaml").unlink()
    run(killer, tiny, "apply", "-y")
    return tiny


PREPARED: list[Callable[[Killer, Path], Tiny]] = [unmoved, moved, rebuilt]


@pytest.mark.parametrize("prepare", PREPARED, ids=lambda f: f.__name__)
# Each in turn begins at another step: together they come to all kinds.
@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_a_promotion_killed_at_any_step_is_completed_by_the_next(
    tmp_path: Path, killer: Killer, prepare: Callable[[Killer, Path], Tiny], every: int
) -> None:
    before = prepare(killer, tmp_path / "before")
    old = before.workspace().heads()
    undisturbed = Tiny(shutil.copytree(before.root, tmp_path / "undisturbed"))
    arguments = ["promote", "pr-1", "-y"]
    if prepare is rebuilt:
        arguments += ["--allow", "rebuild:derived"]
    code, steps = killer.run(undisturbed.root, *arguments)
    assert code == 0, (undisturbed.root / "run.log").read_text()
    expected = undisturbed.state()
    assert "extra" in expected
    seen = set()
    for kill_at in range(PREPARED.index(prepare) % every, steps, every):
        tiny = Tiny(shutil.copytree(before.root, tmp_path / str(kill_at)))
        assert killer.run(tiny.root, *arguments, kill_at=kill_at) == (KILLED, kill_at)
        seen.add(all_or_nothing(tiny, old))
        whole(tiny)
        code, _ = killer.run(tiny.root, *arguments)
        told = (tiny.root / "run.log").read_text()
        assert code == 0 or "E1102" in told, told
        assert tiny.state() == expected, f"killed at step {kill_at}"
        whole(tiny)
        assert read_manifest(tiny.root / "chains") is None
        assert list((tiny.root / "chains").rglob("refs/pr-1")) == []
        shutil.rmtree(tiny.root)
    assert seen == {"old", "new"}


def all_or_nothing(tiny: Tiny, old: dict[str, bytes]) -> str:
    """Who asks for a consistent set gets all the old heads or all the new ones."""
    heads = consistent_heads(tiny.workspace())
    if heads == old:
        return "old"
    assert "extra" in heads
    assert all(heads[name] != head for name, head in old.items() if name != "root")
    return "new"


def whole(tiny: Tiny) -> None:
    assert verify_integrity(tiny.workspace()) == ()
