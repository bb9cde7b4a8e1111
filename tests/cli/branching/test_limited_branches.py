"""`--sample` and `--since`: part of the inputs, marked in file and chain, the same every time."""

from __future__ import annotations

import json
from itertools import takewhile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfbuild.engine.contract import InputSlices, SliceFile
from odfbuild.engine.part_of_inputs import part_of
from odfbuild.engine.step_limits import limit_of_step
from odfbuild.odf.model import ExecuteTransform
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.store.branches import Limit
from odfbuild.store.dataset import DatasetStore
from tests.apply.tiny import QUERY
from tests.cli.branches import BY_100, Bench, applied, bench, plan_of

__all__ = ["applied", "bench"]

_MANY = "event_time,id,value\n" + "".join(
    f"2024-03-{1 + number % 28:02} 00:00:00,{number},{number}\n" for number in range(100, 1100)
)
SINCE = "2024-03-15T00:00:00Z"


def many(bench: Bench) -> None:
    """A thousand records more on the head, and a changed query of `derived`."""
    (bench.root / "data" / "3.csv").write_text(_MANY)
    bench("apply", "-y", "-q")
    bench.derive("derived", BY_100)


def test_a_sample_is_part_of_the_inputs_and_the_same_every_time(bench: Bench) -> None:
    many(bench)
    for name in ("one", "two"):
        said = bench("apply", "-y", "-b", name, "--sample", "10%", "--allow", "rebuild:derived+")
        assert "part of the inputs (--sample 10%): it cannot be promoted" in said
    found = bench.values("derived", "one")
    assert 60 < len(found) < 140
    assert found == bench.values("derived", "two")
    assert set(found) <= {value * 10 for value in bench.values("derived")}
    # What was made from a sample is not sampled again.
    assert len(bench.values("leaf", "one")) == len(found)
    assert len(bench.values("derived")) == 1003


def test_datasets_with_the_same_key_have_the_same_records_in_a_sample(bench: Bench) -> None:
    many(bench)
    bench.derive("made", BY_100)
    bench("apply", "-y", "-b", "pr-1", "--sample", "20%", "--allow", "rebuild:derived+")
    bench("apply", "-y", "-b", "pr-1", "--sample", "20%", "--allow", "rebuild:made+")
    assert bench.values("made", "pr-1") == bench.values("derived", "pr-1")


def test_since_takes_records_by_event_time(bench: Bench) -> None:
    many(bench)
    bench("apply", "-y", "-b", "pr-1", "--since", SINCE, "--allow", "rebuild:derived+")
    expected = [value * 100 for value in range(100, 1100) if value % 28 >= 14]
    assert sorted(bench.values("derived", "pr-1")) == expected
    assert sorted(bench.values("leaf", "pr-1")) == [value * 10 for value in expected]


def test_a_limit_stands_in_the_plan_the_file_of_the_branch_and_the_chain(bench: Bench) -> None:
    many(bench)
    options = ("-b", "pr-1", "--sample", "10%", "--since", SINCE)
    assert plan_of(bench, *options)["branch"]["limit"] == {"sample": "10%", "since": SINCE}
    bench("plan", *options, "-o", "plan.json", "--allow", "rebuild:derived+")
    bench("apply", "-y", "plan.json")
    limit = Limit(sample="10%", since=SINCE)
    space = bench.space()
    for name, each in space.branches()["pr-1"].items():
        assert each.limit == limit
        store = space.dataset(name)
        # The file can be edited; the chain says so all the same.
        (store.path / "info" / "branches" / "pr-1").unlink()
        assert _limits(store, each.head, each.base) == {limit}
        head = store.main_head()
        assert head is not None
        assert _limits(store, head) == set()


def _limits(store: DatasetStore, head: Multihash, base: Multihash | None = None) -> set[Limit]:
    """What limited the steps of `(base, head]`."""
    steps = [block.event for _, block in takewhile(lambda each: each[0] != base, store.walk(head))]
    found = [limit_of_step(store, each) for each in steps if isinstance(each, ExecuteTransform)]
    return {each.limit for each in found if each is not None}


def test_a_limited_branch_is_not_promoted_even_if_its_file_was_edited(bench: Bench) -> None:
    many(bench)
    bench("apply", "-y", "-b", "pr-1", "--sample", "10%", "--allow", "rebuild:derived+")
    before = bench.heads()
    assert "error[E1120]" in bench("promote", "pr-1", "-y", code=1)
    for name in ("derived", "leaf"):
        file = bench.root / "chains" / name / "info" / "branches" / "pr-1"
        known = json.loads(file.read_text())
        del known["limit"]
        file.write_text(json.dumps(known))
    said = bench("promote", "pr-1", "-y", "--allow", "rebuild:derived+", code=1)
    assert "error[E1120]" in said
    assert bench.heads() == before


def test_verify_does_limited_steps_again_under_their_limits(bench: Bench) -> None:
    many(bench)
    bench.derive("new", QUERY, "derived")
    for branch, limit in (("a", ("--sample", "10%")), ("b", ("--since", SINCE))):
        bench("apply", "-y", "-b", branch, *limit, "--allow", "rebuild:derived+")
        said = bench("verify", "-b", branch)
        assert "4" in said
    bench("verify")


def test_a_branch_has_one_limit_or_none(bench: Bench) -> None:
    bench.derive("derived", BY_100)
    bench("apply", "-y", "-b", "part", "--sample", "50%")
    for options in ((), ("--sample", "10%"), ("--since", SINCE)):
        said = bench("apply", "-y", "-b", "part", *options, code=1)
        assert "error[E1108]" in said
        assert "give --sample 50%" in said
    bench("apply", "-y", "-b", "part", "--sample", "50%")
    bench("apply", "-y", "-b", "whole")
    said = bench("plan", "-b", "whole", "--sample", "50%", code=1)
    assert "error[E1108]" in said


@pytest.mark.parametrize(
    "options",
    [
        ("--sample", "10%"),
        ("-b", "a", "--sample", "10"),
        ("-b", "a", "--sample", "0%"),
        ("-b", "a", "--sample", "100%"),
        ("-b", "a", "--sample", "x%"),
        ("-b", "a", "--since", "yesterday"),
    ],
)
def test_e1109_for_a_limit_outside_of_a_branch_and_for_a_wrong_one(
    bench: Bench, options: tuple[str, ...]
) -> None:
    for command in ("plan", "apply"):
        assert "error[E1109]" in bench(command, *options, code=1)


def test_a_correction_that_loses_one_half_becomes_a_record_of_its_own(tmp_path: Path) -> None:
    times = pa.array([0, 10, 0, 10], pa.timestamp("ms", "UTC"))
    table = pa.table(
        {
            "offset": pa.array([0, 1, 2, 3]),
            "op": pa.array([0, 0, 2, 3], pa.int32()),
            "system_time": times,
            "event_time": times,
            "id": pa.array([1, 2, 1, 1]),
        }
    )
    pq.write_table(table, tmp_path / "a")
    slices = InputSlices(
        alias="a",
        schema=table.schema,
        vocab=Vocabulary(),
        slices=(SliceFile(tmp_path / "a", None),),
        first=0,
        last=3,
        earlier=lambda: (SliceFile(tmp_path / "a", None),),
    )
    limit = Limit(since="1970-01-01T00:00:00.005Z")
    part = part_of(slices, limit, (), tmp_path / "part")
    assert pq.read_table(part.files[0])["op"].to_pylist() == [0, 0]
    assert part.earlier()[0].path == part.files[0]
    nothing = part_of(slices, Limit(since="2000-01-01T00:00:00Z"), (), tmp_path / "none")
    assert (nothing.files, nothing.first, nothing.last) == ((), None, None)
