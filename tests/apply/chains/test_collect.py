"""Garbage: what no history refers to goes once it is old; what may be in use never does."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from odfbuild.apply.collect import collect
from odfbuild.apply.reset import carry_out, plan_reset
from odfbuild.inspect.verify.integrity import verify_integrity
from odfbuild.store.dataset import MARKER
from odfbuild.store.files import PENDING
from odfbuild.store.side_cars import by_key_folder
from tests.apply.bench import Bench

OLD = 1_000_000.0


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    made = Bench(tmp_path)
    made.root("root")
    made.derive("derived", "root")
    made.add("root", [1, 2, 3], "2020-01-01T00:00:00Z")
    made.step("derived")
    return made


def age(bench: Bench, when: float = OLD) -> None:
    """Make every file look as if it had been written long ago."""
    for path in bench.folder.rglob("*"):
        os.utime(path, (when, when))


def files(bench: Bench) -> set[Path]:
    return {path for path in bench.workspace.state.rglob("*") if path.is_file()}


def now() -> float:
    return time.time() - 3600


def test_nothing_of_a_history_is_garbage(bench: Bench) -> None:
    age(bench)
    before = files(bench)
    assert collect(bench.workspace, None, before=now(), dry_run=False).garbage == ()
    assert files(bench) == before


def test_what_a_reset_left_behind_goes_after_the_grace_period_only(bench: Bench) -> None:
    carry_out(bench.workspace, [plan_reset(bench.workspace, "derived")])
    assert collect(bench.workspace, None, before=now(), dry_run=False).garbage == ()
    age(bench)
    before = files(bench)
    shown = collect(bench.workspace, None, before=now(), dry_run=True)
    assert files(bench) == before
    removed = collect(bench.workspace, None, before=now(), dry_run=False)
    assert shown == removed
    assert sorted(each.kind for each in removed.garbage) == ["block", "data"]
    assert before - files(bench) == {each.path for each in removed.garbage}
    assert verify_integrity(bench.workspace, logical=True) == ()
    bench.step("derived")
    assert bench.now("derived").records == 3


@pytest.mark.parametrize("to", ["definition", "block"])
def test_the_grace_period_of_what_a_reset_lets_go_of_begins_with_the_reset(
    bench: Bench, to: str
) -> None:
    age(bench)
    head = bench.now("derived").head
    store = bench.workspace.dataset("derived")
    block = store.seed(head) if to == "block" else None
    carry_out(bench.workspace, [plan_reset(bench.workspace, "derived", block)])
    assert collect(bench.workspace, None, before=now(), dry_run=False).garbage == ()
    carry_out(bench.workspace, [plan_reset(bench.workspace, "derived", head)])
    assert bench.now("derived").head == head
    assert verify_integrity(bench.workspace, logical=True) == ()


def test_an_old_object_that_a_commit_uses_again_looks_young(bench: Bench) -> None:
    head = bench.now("derived").head
    store = bench.workspace.dataset("derived")
    data = store.read_raw(head)
    age(bench)
    carry_out(bench.workspace, [plan_reset(bench.workspace, "derived")])
    age(bench)
    store.put_block(data)
    found = collect(bench.workspace, None, before=now(), dry_run=True).garbage
    assert store.block_path(head) not in {each.path for each in found}
    assert found


def test_leavings_of_killed_runs_go(bench: Bench) -> None:
    staged = bench.workspace.state / "root" / "blocks" / f"{PENDING}1234"
    staged.write_bytes(b"half a block")
    unfinished = bench.workspace.state / "newborn"
    (unfinished / "blocks").mkdir(parents=True)
    (unfinished / MARKER).write_text("")
    scratch = bench.workspace.cache / "scratch" / "apply-x"
    scratch.mkdir(parents=True)
    (scratch / "part").write_bytes(b"123")
    base = bench.workspace.cache / "side-cars"
    kept, left, former = base / "root" / "merged", base / "old" / "merged", base / "root" / "keys-1"
    for side_cars in (kept, left, former):
        side_cars.mkdir(parents=True)
        (side_cars / "manifest.bin").write_bytes(b"123")
    age(bench)
    found = collect(bench.workspace, None, before=now(), dry_run=False).garbage
    assert {(each.kind, each.path) for each in found} == {
        ("staging", staged),
        ("unfinished dataset", unfinished),
        ("scratch", scratch),
        ("side-cars", left),
        ("side-cars", former),
    }
    assert kept.exists()
    assert not staged.exists()
    assert not unfinished.exists()
    assert not scratch.exists()


def test_records_by_key_go_when_nobody_looked_them_up(bench: Bench) -> None:
    folders = [
        by_key_folder(bench.workspace.cache / "side-cars" / name, key)
        for name, key in (("root", "id"), ("root", "value"), ("old", "id"))
    ]
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / "segment.arrow").write_bytes(b"123")
    age(bench)
    (folders[0] / "manifest.bin").write_bytes(b"in use")
    collect(bench.workspace, None, before=now(), dry_run=False)
    assert [folder.exists() for folder in folders] == [True, False, False]


def test_a_damaged_dataset_is_left_alone_and_named(bench: Bench) -> None:
    store = bench.workspace.dataset("derived")
    path = store.block_path(bench.now("derived").head)
    path.chmod(0o644)
    path.write_bytes(b"damage")
    age(bench)
    before = files(bench)
    found = collect(bench.workspace, None, before=now(), dry_run=False)
    assert [error.code for error in found.damaged] == ["E0801"]
    assert files(bench) == before


def test_objects_that_records_may_link_are_left_alone(bench: Bench) -> None:
    from odfbuild.odf.model import SetInfo

    bench.append("root", SetInfo(description="holds ObjectLink values"))
    linked = bench.workspace.state / "root" / "data" / f"f1620{'ab' * 32}"
    linked.write_bytes(b"an attachment")
    age(bench)
    assert collect(bench.workspace, ["root"], before=now(), dry_run=False).garbage == ()
    assert linked.exists()
