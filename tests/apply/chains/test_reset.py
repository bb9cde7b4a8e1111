"""A dataset taken back: what goes, what stays, who is told, and that it can be taken back, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from odfbuild.apply.reset import carry_out, plan_reset, with_readers
from odfbuild.errors import PlanError, StaleHeadError
from odfbuild.inspect.verify.integrity import verify_integrity
from tests.apply.bench import Bench
from tests.apply.in_process import Program, share
from tests.apply.plain_engine import PlainEngine
from tests.apply.tiny import Tiny


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """root → derived → last and root → other, two steps each."""
    made = Bench(tmp_path)
    made.root("root")
    made.derive("derived", "root")
    made.derive("last", "derived")
    made.derive("other", "root", query="SELECT value")
    for ids in ([1, 2, 3], [4, 5]):
        made.add("root", ids, f"202{len(ids)}-01-01T00:00:00Z" if len(ids) == 3 else None)
        for name in ("derived", "last", "other"):
            made.step(name)
    return made


def kinds(bench: Bench, name: str) -> list[str]:
    store = bench.workspace.dataset(name)
    return [type(b.event).__name__ for _, b in store.walk(bench.now(name).head)][::-1]


def test_a_reset_to_the_definition_drops_all_records_and_names_the_readers(bench: Bench) -> None:
    reset = plan_reset(bench.workspace, "derived")
    assert (reset.records, reset.blocks, reset.readers) == (5, 2, ("last",))
    carry_out(bench.workspace, [reset])
    assert kinds(bench, "derived") == ["Seed", "SetTransform", "SetDataSchema"]
    assert bench.now("derived").records == 0
    assert bench.now("derived").dataset_id == bench.now("derived").dataset_id
    assert verify_integrity(bench.workspace, ["derived"]) == ()


def test_a_reset_with_the_schema_leaves_only_what_the_definition_says(bench: Bench) -> None:
    root = plan_reset(bench.workspace, "root", schema=True)
    carry_out(bench.workspace, with_readers(bench.workspace, root, schema=True))
    assert kinds(bench, "derived") == ["Seed", "SetTransform"]
    assert bench.now("root").schema is None
    assert verify_integrity(bench.workspace) == ()


def test_what_was_reset_is_computed_again_alike(bench: Bench) -> None:
    before = bench.values("derived").to_pylist()
    carry_out(bench.workspace, [plan_reset(bench.workspace, "derived")])
    bench.step("derived")
    assert bench.values("derived").to_pylist() == before


def test_a_reset_can_be_taken_back(bench: Bench) -> None:
    head = bench.now("derived").head
    carry_out(bench.workspace, [plan_reset(bench.workspace, "derived")])
    carry_out(bench.workspace, [plan_reset(bench.workspace, "derived", head)])
    assert bench.now("derived").head == head
    assert verify_integrity(bench.workspace, logical=True) == ()


def test_a_reset_to_a_block_names_only_those_who_read_beyond_it(bench: Bench) -> None:
    store = bench.workspace.dataset("root")
    newest = store.read_block(bench.now("root").head)
    assert newest.prev_block_hash is not None
    reset = plan_reset(bench.workspace, "root", newest.prev_block_hash)
    assert (reset.records, reset.blocks) == (2, 1)
    assert sorted(reset.readers) == ["derived", "other"]
    bench.add("root", [9])
    newest = store.read_block(bench.now("root").head)
    assert newest.prev_block_hash is not None
    assert plan_reset(bench.workspace, "root", newest.prev_block_hash).readers == ()


def test_readers_are_taken_back_before_what_they_read(bench: Bench) -> None:
    order = [
        each.name for each in with_readers(bench.workspace, plan_reset(bench.workspace, "root"))
    ]
    assert set(order) == {"root", "derived", "last", "other"}
    assert order.index("last") < order.index("derived") < order.index("root")
    assert order.index("other") < order.index("root")


def test_a_reset_of_what_has_no_records_is_not_needed(bench: Bench) -> None:
    carry_out(bench.workspace, [plan_reset(bench.workspace, "derived")])
    assert not plan_reset(bench.workspace, "derived").is_needed


def test_a_dataset_that_moved_since_is_left_alone(bench: Bench) -> None:
    reset = plan_reset(bench.workspace, "root")
    bench.add("root", [9])
    head = bench.now("root").head
    with pytest.raises(StaleHeadError) as caught:
        carry_out(bench.workspace, [reset])
    assert caught.value.code == "E0701"
    assert bench.now("root").head == head


def test_a_block_of_another_dataset_is_refused(bench: Bench) -> None:
    other = bench.workspace.dataset("other")
    block = bench.now("other").head
    data = other.read_raw(block)
    for hash, _ in other.walk(block):
        bench.workspace.dataset("derived").put_block(other.read_raw(hash))
    assert data
    with pytest.raises(PlanError) as caught:
        plan_reset(bench.workspace, "derived", block)
    assert caught.value.code == "E0333"


def test_a_wrong_type_of_a_column_is_corrected_by_a_reset_that_the_refusal_names(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    share(PlainEngine(), monkeypatch)
    program = Program(tiny.root, monkeypatch, capsys)
    program.apply()
    file = tiny.root / "datasets/root.yaml"
    file.write_text(file.read_text().replace("value BIGINT", "value STRING"))
    refused = program("plan")
    assert refused.code == 1
    assert "odfbuild reset root --schema" in refused.out
    program.ok("reset", "root", "--readers", "-y")
    assert "odfbuild reset root --schema" in program("plan").out
    program.ok("reset", "root", "--readers", "--schema", "-y")
    assert "E0314" not in program.ok("plan").out
    program.apply()
    assert tiny.ids("root") == tiny.ids("derived") == [1, 2, 3]
