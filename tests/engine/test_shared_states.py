"""What an input amounts to is found once for all queries of a session, and only for these."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from odfbuild.engine.contract import InputSlices
from odfbuild.engine.spark.engine import SparkEngine
from odfbuild.engine.spark.internals.catalyst import Catalyst
from odfbuild.engine.spark.queries import present, shared_states
from odfbuild.engine.spark.queries.shared_states import SharedStates, state_plan
from odfbuild.records.equal_rows import numbered
from odfbuild.store.merged_copies import NO_COPIES, MergedCopies
from tests.engine.inputs import rows, slices


@pytest.fixture
def taken_back(tmp_path: Path) -> InputSlices:
    """Five records, of which two are taken back."""
    (tmp_path / "slices").mkdir()
    gone = rows(1, 2, op=1)
    gone = gone.set_column(0, gone.schema.field("offset"), pa.array([5, 6], pa.int64()))
    made = slices(tmp_path / "slices", rows(0, 5), gone)
    return replace(made, copies=MergedCopies(tmp_path, side_cars=tmp_path / "side-cars"))


@pytest.fixture
def kept(tmp_path: Path) -> SharedStates:
    (tmp_path / "kept").mkdir()
    return SharedStates(tmp_path / "kept")


@pytest.mark.spark
def test_requests_share_the_state_of_the_same_slices(
    spark_engine: SparkEngine, taken_back: InputSlices, kept: SharedStates
) -> None:
    found = []
    for last in (6, 6, 5):
        with spark_engine.request("states") as spark:
            plan = kept.plan(spark, replace(taken_back, last=last))
            rows = Catalyst(spark).frame(plan).orderBy("offset").collect()
            found.append([row.population for row in rows])
    assert found == [[0, 3, 4], [0, 3, 4], [0, 2, 3, 4]]
    assert len([*kept.folder.iterdir()]) == 2


@pytest.mark.spark
def test_states_that_nobody_asked_for_lately_go_unless_a_request_uses_them(
    spark_engine: SparkEngine,
    taken_back: InputSlices,
    kept: SharedStates,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shared_states, "_KEPT_STATES", 1)
    with spark_engine.request("states") as spark:
        for last in (4, 5, 6):
            kept.plan(spark, replace(taken_back, last=last))
        assert len([*kept.folder.iterdir()]) == 3
    del spark
    with spark_engine.request("states") as spark:
        kept.plan(spark, taken_back)
        assert len([*kept.folder.iterdir()]) == 1


@pytest.mark.spark
def test_proofs_and_copies_of_one_request_leave_nothing_in_the_session(
    spark_engine: SparkEngine, taken_back: InputSlices, tmp_path: Path
) -> None:
    with spark_engine.request("states") as spark:
        shared = shared_states.shared_states(spark)
        assert shared is not None
        before = {*shared.folder.iterdir()}
        proof = replace(taken_back, copies=NO_COPIES)
        plan = state_plan(spark, proof, tmp_path)
        assert Catalyst(spark).frame(plan).count() == 3
        assert {*shared.folder.iterdir()} == before


def test_an_input_that_is_too_large_or_laid_out_otherwise_is_left_to_spark(
    taken_back: InputSlices, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "state.parquet"
    files = taken_back.all_files()
    assert not present.write_state(
        replace(taken_back, schema=taken_back.schema.append(pa.field("more", pa.int64()))),
        files,
        target,
    )
    monkeypatch.setattr(present, "_MOST_BYTES", 10)
    assert not present.write_state(taken_back, files, target)
    assert not target.exists()


def test_a_retraction_takes_the_oldest_of_equal_records_away(tmp_path: Path) -> None:
    table = pa.concat_tables([rows(0, 1), rows(0, 1), rows(0, 1), rows(0, 1, op=1)])
    table = table.set_column(0, table.schema.field("offset"), pa.array([0, 1, 2, 3], pa.int64()))
    stays = present.staying(table, slices(tmp_path, table))
    assert stays["offset"].to_pylist() == [1, 2]


def test_nulls_zeros_and_nans_are_equal_as_in_a_group_by() -> None:
    nan, other = pa.array([0x7FF8000000000000, 0x7FF8000000000001], pa.int64()).view(pa.float64())
    table = pa.table(
        {
            "x": pa.chunked_array([pa.array([0.0, -0.0, None, None, nan.as_py()]), [other]]),
            "city": ["a", "a", None, None, None, None],
        }
    )
    found = numbered(table).tolist()
    assert found[0] == found[1]
    assert found[2] == found[3]
    assert found[4] == found[5]
    assert len({*found}) == 3
