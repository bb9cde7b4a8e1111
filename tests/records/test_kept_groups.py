"""Totals of groups are those that were kept last, for exactly the slices that they are of."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odfbuild.records import kept_groups, segments
from odfbuild.records.kept_groups import KeptGroups

TEXTS = st.sampled_from([None, "", "a", "b", "c", "d"])
NUMBERS = st.sampled_from([None, 0.0, 1.5, float("nan")])
Group = tuple[str | None, float | None]
STEPS = st.lists(
    st.tuples(st.lists(st.tuples(TEXTS, NUMBERS), unique_by=repr, min_size=1), st.booleans()),
    min_size=1,
    max_size=6,
)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches and ranges of a few records."""
    monkeypatch.setattr(segments, "_BATCH_ROWS", 2)
    monkeypatch.setattr(segments, "_TOGETHER", 2)


def table(groups: list[Group], total: int) -> pa.Table:
    return pa.table(
        {
            "text": pa.array([text for text, _ in groups], pa.string()),
            "number": pa.array([number for _, number in groups], pa.float64()),
            "total": pa.array([total] * len(groups), pa.int64()),
        }
    )


def held(folder: Path, slices: list[str], groups: list[Group]) -> dict[str, int] | None:
    kept = KeptGroups(folder, "query", ["text", "number"], frozenset(slices))
    if not kept.are_held:
        return None
    rows = kept.like([table(groups, 0)]).to_pylist()
    found = {repr((row["text"], row["number"])): row["total"] for row in rows}
    assert len(found) == len(rows)
    return found


@pytest.mark.parametrize("collide", [False, True])
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=15
)
@given(steps=STEPS)
def test_the_totals_of_a_group_are_those_of_the_last_step_that_changed_it(
    monkeypatch: pytest.MonkeyPatch, collide: bool, steps: list[tuple[list[Group], bool]]
) -> None:
    with monkeypatch.context() as patched, tempfile.TemporaryDirectory() as place:
        if collide:  # keys decide, not their hashes
            patched.setattr(kept_groups, "hash_rows", lambda t: np.zeros(len(t), np.uint64))
        folder, slices, totals = Path(place) / "kept", ["first"], dict[str, int]()
        every = [group for groups, _ in steps for group in groups]
        for number, (groups, again) in enumerate(steps):
            for _ in range(1 + again):  # a step that is done again begins behind the same slices
                kept = KeptGroups(folder, "query", ["text", "number"], frozenset(slices))
                assert kept.are_held is (number > 0)
                names = [f"slice {number}"] if number else [*slices, "slice 0"]
                kept.keep([table(groups, number)], names, instead=number == 0)
            totals |= {repr(group): number for group in groups}
            slices.append(f"slice {number}")
            assert held(folder, slices, every) == totals
        assert held(folder, [*slices, "another"], every) is None
        assert held(folder, slices[:-2], every) is None


def test_without_keys_there_is_one_group(tmp_path: Path) -> None:
    for number in range(3):
        kept = KeptGroups(tmp_path / "kept", "query", [], {f"slice {n}" for n in range(number)})
        kept.keep([table([("a", 1.5)], number)], [f"slice {number}"], instead=number == 0)
    kept = KeptGroups(tmp_path / "kept", "query", [], {"slice 0", "slice 1", "slice 2"})
    assert kept.like([table([("b", None)], 0)])["total"].to_pylist() == [2]


def test_totals_of_another_query_are_not_looked_at(tmp_path: Path) -> None:
    kept = KeptGroups(tmp_path / "kept", "query", [], {"slice"})
    kept.keep([table([("a", 1.5)], 1)], ["slice"], instead=True)
    assert KeptGroups(tmp_path / "kept", "query", [], {"slice"}).are_held
    assert not KeptGroups(tmp_path / "kept", "another query", [], {"slice"}).are_held
