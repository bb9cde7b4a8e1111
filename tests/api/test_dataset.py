"""`Project()["name"]`: the records of a dataset in Python, without Spark."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pandas
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from odfbuild import Dataset, PlanError, Project, RecordsError
from tests.apply.in_process import share
from tests.apply.plain_engine import PlainEngine
from tests.apply.tiny import Tiny
from tests.records.chains import A, Chain, F, R, T


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tiny:
    share(PlainEngine(), monkeypatch)
    tiny = Tiny.fresh(tmp_path / "p")
    Project(tiny.root).apply()
    return tiny


@pytest.fixture
def people(tiny: Tiny) -> Dataset:
    """Ann moves, Bob goes."""
    project = Project(tiny.root)
    fields = pa.field("who", pa.string()), pa.field("n", pa.int64())
    chain = Chain(project.workspace(), "people", *fields)
    chain.add([(1, "Ann", 1), (2, "Bob", 2), (3, "Cyd", 3)])
    chain.add([(1, "Ann", 1), (1, "Ann", 4), (2, "Bob", 2)], [F, T, R])
    return project["people"]


def test_a_dataset_shows_its_columns_and_records_as_they_are_now(people: Dataset) -> None:
    assert people.columns == ["event_time", "who", "n"]
    assert people.count() == 2
    assert people.select("who", "n").to_arrow().to_pylist() == [
        {"who": "Cyd", "n": 3},
        {"who": "Ann", "n": 4},
    ]
    assert people.select("n").head(1)["n"].to_pylist() == [3]
    assert people.select("n").tail(1)["n"].to_pylist() == [4]


def test_the_history_has_all_records_with_the_system_columns(people: Dataset) -> None:
    assert people.history.columns == ["offset", "op", "system_time", *people.columns]
    assert people.history.select("op").to_arrow()["op"].to_pylist() == [A, A, A, F, T, R]
    assert people.history.count() == 6


def test_filters_limits_and_columns_narrow_what_every_way_out_gives(people: Dataset) -> None:
    some = people.history.filter(pc.field("n") < 4).filter(pc.field("op") == A).limit(2)
    some = some.select("who")
    assert some.count() == 2
    assert some.to_arrow()["who"].to_pylist() == ["Ann", "Bob"]
    assert some.tail(1)["who"].to_pylist() == ["Bob"]
    assert [b.num_rows for b in some.batches()] == [2]
    assert list(some.to_pandas()["who"]) == ["Ann", "Bob"]
    assert some.to_polars()["who"].to_list() == ["Ann", "Bob"]
    assert some.to_duckdb().fetchall() == [("Ann",), ("Bob",)]


def test_libraries_that_take_arrow_streams_take_a_dataset(people: Dataset) -> None:
    assert polars.DataFrame(people)["n"].to_list() == [3, 4]
    assert pa.table(people)["n"].to_pylist() == [3, 4]
    reader = pa.RecordBatchReader.from_stream(people)
    assert reader.read_all()["who"].to_pylist() == ["Cyd", "Ann"]


def test_duckdb_gets_a_view_in_a_connection_of_ones_own(people: Dataset) -> None:
    with duckdb.connect() as connection:
        found = people.select("n").to_duckdb(connection)
        assert found.filter("n > 3").fetchall() == [(4,)]
        assert connection.sql("SELECT count(*) FROM people").fetchall() == [(2,)]


def test_every_result_carries_its_pin_and_prints_itself_as_a_citation(people: Dataset) -> None:
    pin = people.pin
    assert (pin.dataset, pin.first, pin.last, pin.view) == ("people", 0, 5, "current")
    assert str(pin) == (
        f"people ({pin.dataset_id}), block #{pin.sequence_number} {pin.block}, "
        f"committed {pin.system_time}, records 0 to 5, current state"
    )
    assert str(pin.dataset_id).startswith("did:odf:")
    key = b"odfbuild.pin"
    for found in (people.schema, people.head(1).schema, people.tail(1).schema):
        assert found.metadata[key].decode() == str(pin)
    assert next(people.batches()).schema.metadata[key].decode() == str(pin)
    assert people.to_pandas().attrs == {"odfbuild.pin": str(pin)}
    assert repr(people) == (
        f"{pin}\n  event_time: timestamp[ms, tz=UTC]\n  who: string\n  n: int64"
    )


def test_a_dataset_is_read_at_a_time_a_block_a_pin_or_a_revision(tiny: Tiny) -> None:
    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=x", "-c", "user.email=x@example.org")
        subprocess.run(["git", *identity, *arguments], cwd=tiny.root, check=True)

    git("init", "-q")
    git("commit", "-qm", "Begin", "--allow-empty")
    git("tag", "v0")
    git("add", "chains")
    git("commit", "-qm", "Commit chains")
    git("tag", "v1")
    project = Project(tiny.root)
    before = project["root"]
    tiny.arrive(2)
    project.apply()
    now = project["root"]
    assert (before.count(), now.count()) == (3, 4)
    block = str(before.pin.block)
    for moment in (before.pin, block, block[-8:], str(before.pin.system_time), "v1"):
        then = now.at(moment)
        assert (then.count(), then.pin) == (3, before.pin)
    assert now.at(datetime.now(UTC)).pin == now.pin
    assert now.history.at("v1").columns[0] == "offset"
    for early in ("2001-01-01", "v0"):
        with pytest.raises(RecordsError) as raised:
            now.at(early)
        assert raised.value.code == "E1205"
    with pytest.raises(PlanError) as wrong:
        now.at("nonsense")
    assert wrong.value.code == "E0661"


def test_changes_since_a_pin_are_the_records_that_came_after_it(
    tiny: Tiny, people: Dataset
) -> None:
    project = Project(tiny.root)
    before = project["root"]
    assert before.changes(before.pin).count() == 0
    tiny.arrive(2)
    project.apply()
    news = project["root"].changes(since=before.pin)
    assert news.select("op", "id").to_arrow().to_pylist() == [{"op": 0, "id": 4}]
    assert (news.pin.first, news.pin.last, news.count()) == (3, 3, 1)
    assert "records 3 to 3, history" in str(news.pin)
    assert project["root"].changes(str(before.pin.block)).count() == 1
    with pytest.raises(RecordsError) as raised:
        people.changes(before.pin)
    assert raised.value.code == "E1204"


def test_a_name_that_is_not_there_is_told_with_the_closest(tiny: Tiny) -> None:
    with pytest.raises(PlanError) as raised:
        Project(tiny.root)["derivd"]
    assert (raised.value.code, raised.value.help) == ("E0301", "did you mean 'derived'?")


def test_a_wrong_column_or_filter_is_told_before_anything_is_read(people: Dataset) -> None:
    with pytest.raises(RecordsError) as raised:
        people.select("whom")
    assert (raised.value.code, raised.value.help) == ("E1201", "did you mean 'who'?")
    with pytest.raises(RecordsError) as raised:
        people.filter(pc.field("n") > "x")
    assert raised.value.code == "E1202"
    with pytest.raises(ValueError, match="0 or more"):
        people.limit(-1)


def test_head_loads_neither_spark_nor_pandas(tiny: Tiny) -> None:
    code = (
        "import sys; from odfbuild import Project; print(Project()['root'].head(2).num_rows);"
        "print([m for m in ('pyspark', 'pandas', 'polars', 'duckdb', 'sqlglot', 'networkx')"
        " if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tiny.root, capture_output=True, text=True, check=True
    )
    assert done.stdout == "2\n[]\n"


def test_data_frames_keep_their_values(people: Dataset) -> None:
    frame = people.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame["event_time"].iloc[0] == pandas.Timestamp(3, unit="ms", tz="UTC")
    assert people.to_polars().rows()[0] == (datetime(1970, 1, 1, 0, 0, 0, 3000, UTC), "Cyd", 3)
