"""Two states of a chain, compared; what both have is not read for it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("duckdb", reason="the quick tests do without DuckDB")

from odfbuild.inspect.data_diff.model import Change, DataDiff, Key
from odfbuild.inspect.data_diff.states import diff_states
from odfbuild.odf.chain.projection import Projection
from tests.records.chains import A, Chain, F, R, T, workspace

NAMES = ("then", "now")
ID = [Key(columns=("id",), origin="given")]


@pytest.fixture
def made(tmp_path: Path) -> Chain:
    space = workspace(tmp_path)
    return Chain(space, "a.b", pa.field("id", pa.int64()), pa.field("v", pa.string()))


def state(made: Chain) -> Projection:
    found = workspace(made.space.state.parent).projection("a.b")
    assert found is not None
    return found


def diff(made: Chain, old: Projection | None, keys: list[Key] = ID) -> DataDiff:
    found = diff_states(made.space, "a.b", old, state(made), NAMES, keys)
    assert found is not None
    return found


def test_retractions_and_corrections_are_records_removed_and_changed(made: Chain) -> None:
    made.add([(1, 1, "a"), (2, 2, "b"), (3, 3, "c")])
    old = state(made)
    made.add([(1, 1, "a"), (2, 2, "b"), (2, 2, "B"), (4, 4, "d")], [R, F, T, A])
    found = diff(made, old)
    assert (found.added, found.removed, found.changed) == (1, 1, 1)
    assert (found.old_records, found.new_records, found.common) == (3, 3, 2)
    assert found.unread == 1
    assert [(s.change, dict(s.key)) for s in found.samples] == [
        (Change.CHANGED, {"id": 2}),
        (Change.REMOVED, {"id": 1}),
        (Change.ADDED, {"id": 4}),
    ]


def test_a_correction_that_was_taken_back_is_no_difference(made: Chain) -> None:
    made.add([(1, 1, "a")])
    old = state(made)
    made.add([(1, 1, "a"), (1, 1, "A")], [F, T])
    made.add([(1, 1, "A"), (1, 1, "a")], [F, T])
    assert not diff(made, old).differs


def test_members_that_a_structure_gained_change_no_earlier_record(tmp_path: Path) -> None:
    one, two = pa.field("a", pa.int64()), pa.field("b", pa.string())
    key = pa.field("id", pa.int64())
    made = Chain(workspace(tmp_path), "a.b", key, pa.field("v", pa.struct([one])))
    made.add([(1, 1, {"a": 1}), (2, 2, {"a": 2}), (3, 3, None)])
    old = state(made)
    made.grow(key, pa.field("v", pa.struct([two, one])))
    made.add([(2, 2, {"a": 2, "b": None}), (2, 2, {"a": 2, "b": "x"})], [F, T])
    found = diff(made, old)
    assert (found.added, found.removed, found.changed, found.common) == (0, 0, 1, 3)
    assert [dict(each.key) for each in found.samples] == [{"id": 2}]
    assert found.schema


def test_slices_that_both_states_have_are_not_needed(made: Chain) -> None:
    made.add([(1, 1, "a")])
    old = state(made)
    first = next((made.store.path / "data").iterdir())
    made.add([(2, 2, "b")])
    whole = diff(made, old)
    # Its records are read for the distributions, but not to find what differs.
    rewritten = pq.read_table(first)
    column = rewritten.schema.get_field_index("v")
    pq.write_table(rewritten.set_column(column, rewritten.field(column), [["b"]]), first)
    again = diff(made, old)
    assert (again.added, again.removed, again.changed) == (1, 0, 0)
    assert whole.added == 1 and whole.unread == 1


def test_equal_states_are_compared_without_reading_any_record(made: Chain) -> None:
    made.add([(1, 1, "a")])
    for each in (made.store.path / "data").iterdir():
        each.unlink()
    now = state(made)
    assert diff_states(made.space, "a.b", now, now, NAMES, ID) is None


def test_before_its_first_record_a_dataset_has_none(made: Chain) -> None:
    made.add([(1, 1, "a"), (2, 2, "b")])
    found = diff(made, None)
    assert (found.added, found.removed, found.old_records) == (2, 0, 0)
    back = diff_states(made.space, "a.b", state(made), None, NAMES, ID)
    assert back is not None
    assert (back.added, back.removed) == (0, 2)
