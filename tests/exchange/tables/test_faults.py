"""What publishing refuses, with a reason and a way out; the table is as it was then."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from odfbuild.errors import Errors, InSettings, TableError
from odfbuild.exchange.tables.behind import pin_of
from odfbuild.exchange.tables.contract import TableMoved
from tests.exchange.tables.tables import FORMATS, Format, Lake, rows_of

PARQUET = FORMATS[0]


def refused(lake: Lake) -> TableError:
    with pytest.raises(TableError) as raised:
        lake.publish()
    return raised.value


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(tmp_path, PARQUET.settings)
    made.grow()
    made.publish()
    made.grow()
    return made


def test_a_column_that_is_not_there_is_named_with_its_place(tmp_path: Path) -> None:
    lake = Lake(tmp_path, PARQUET.settings, partition_by="[ks]")
    lake.grow()
    error = refused(lake)
    assert error.code == "E1304"
    assert "did you mean 'k'" in error.help
    assert error.location == InSettings.of("tables", 0, "partitionBy", 0)
    assert not lake.folder.exists()


def test_a_column_of_numbers_with_fractions_cannot_tell_partitions_apart(tmp_path: Path) -> None:
    lake = Lake(tmp_path, PARQUET.settings, partition_by="[v]")
    lake.grow()
    assert refused(lake).code == "E1305"


def test_a_table_without_columns_beside_those_of_its_partitions_is_refused(tmp_path: Path) -> None:
    lake = Lake(tmp_path, PARQUET.settings, partition_by="[k, id, event_time, v]")
    lake.grow()
    with pytest.raises(Errors) as raised:
        lake.publish()
    assert {each.code for each in raised.value.apart()} == {"E1305", "E1306"}


def test_a_folder_with_other_files_is_not_taken(tmp_path: Path) -> None:
    lake = Lake(tmp_path, PARQUET.settings)
    lake.grow()
    lake.folder.mkdir(parents=True)
    (lake.folder / "theirs.parquet").write_bytes(b"PAR1")
    error = refused(lake)
    assert error.code == "E1307"
    assert "theirs.parquet" in error.message
    assert "--allow rewrite:d" in error.help
    assert [each.name for each in lake.folder.iterdir()] == ["theirs.parquet"]
    lake.publish(anew="it is allowed")
    assert rows_of(PARQUET.readers["pandas"](lake.folder)) == lake.expected()


def test_a_file_that_somebody_put_into_the_present_state_is_recognised(lake: Lake) -> None:
    (lake.folder / "current" / "theirs.parquet").write_bytes(b"PAR1")
    error = refused(lake)
    assert error.code == "E1307"
    assert "current/theirs.parquet" in error.message
    lake.publish(anew="it is allowed")
    assert rows_of(PARQUET.readers["pandas"](lake.folder)) == lake.expected()


@pytest.mark.parametrize("removed", [0, 1], ids=["beside it", "instead of another file"])
def test_a_copy_of_a_file_of_the_present_state_is_recognised(lake: Lake, removed: int) -> None:
    state = (lake.folder / "current").resolve()
    first, *others = sorted(state.iterdir())
    (state / f"copy-{first.name[-40:]}").write_bytes(first.read_bytes())
    for each in others[:removed]:
        each.unlink()
    error = refused(lake)
    assert error.code == "E1307"
    assert f"current/copy-{first.name[-40:]}" in error.message


def test_files_are_called_by_their_partition_in_every_state(lake: Lake) -> None:
    lake.publish()
    state = (lake.folder / "current").resolve()
    for each in state.iterdir():
        (key,) = pq.read_table(each, columns=["k"])["k"].unique().to_pylist()
        assert each.name.startswith(f"{key}-")
        assert each.samefile(lake.folder / "data" / each.name[-40:])


def test_of_two_publications_at_once_one_is_told_that_the_other_was_first(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    from odfbuild.exchange.tables import parquet

    move = parquet._Link.move

    def late(self: parquet._Link, expected: str, state: parquet._State) -> bool:
        monkeypatch.setattr(parquet._Link, "move", move)
        lake.publish()
        return move(self, expected, state)

    monkeypatch.setattr(parquet._Link, "move", late)
    error = refused(lake)
    assert (error.code, error.exit_code) == ("E1308", 5)
    assert rows_of(PARQUET.readers["pandas"](lake.folder)) == lake.expected()
    assert not lake.publish().written


def test_a_state_that_was_expected_and_is_no_longer_there_is_not_replaced(lake: Lake) -> None:
    opened = lake.opened()
    old = opened.read_state()
    lake.publish()
    stored = lake.chain.records().stored
    pin = pin_of(lake.table, stored.state, stored.committed.store)
    with pytest.raises(TableMoved):
        opened.commit(old, pin, None, [])
    with pytest.raises(TableMoved):
        opened.commit(None, pin, None, [])
    assert rows_of(PARQUET.readers["pandas"](lake.folder)) == lake.expected()


def test_a_description_that_cannot_be_read_is_told_and_written_anew(lake: Lake) -> None:
    (state,) = (lake.folder / "states").glob("*.json")
    state.write_text('{"version": 7}')
    error = refused(lake)
    assert error.code == "E1307"
    assert "version 7" in error.message
    lake.publish(anew="it is allowed")
    assert rows_of(PARQUET.readers["pandas"](lake.folder)) == lake.expected()


def test_a_data_file_that_is_lost_is_told_by_name(lake: Lake) -> None:
    for file in (lake.folder / "data").iterdir():
        file.unlink()
    lake.append(*((key, 1, 0.5) for key in "abcdefgh"))
    error = refused(lake)
    assert (error.code, error.exit_code) == ("E1309", 3)
    assert "table rebuild d" in error.help
    opened = lake.opened()
    assert len(list(opened.missing(opened.read_state()))) > 0
    lake.publish(anew="it is damaged")
    assert rows_of(PARQUET.readers["pandas"](lake.folder)) == lake.expected()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_told(lake: Lake) -> None:
    (lake.folder / "states").chmod(0o500)
    try:
        assert refused(lake).code == "E1310"
    finally:
        (lake.folder / "states").chmod(0o700)


def test_a_place_that_is_a_file_is_told(tmp_path: Path) -> None:
    lake = Lake(tmp_path, PARQUET.settings)
    lake.grow()
    (tmp_path / "lake").write_text("x")
    assert refused(lake).code == "E1310"


def test_a_rewritten_history_writes_all_of_the_table_anew(lake: Lake) -> None:
    store = lake.chain.store
    old = store.head()
    lake.grow()
    lake.publish()
    store.swap_head(store.head(), old)
    lake.chain.next = lake.chain.records().pin.last + 1
    lake.append(("z", 1, 0.5))
    assert "rewritten" in lake.publish().anew


def test_another_layout_writes_all_of_the_table_anew_and_says_which_part_changed(
    lake: Lake,
) -> None:
    config = lake.root / "odfbuild.yaml"
    config.write_text(config.read_text().replace("[k]", "[id]"))
    assert lake.publish().anew == "its `partitionBy` changed"
    assert rows_of(PARQUET.readers["duckdb"](lake.folder)) == lake.expected()


@pytest.mark.parametrize("format", FORMATS, ids=lambda each: each.name)
def test_garbage_goes_after_its_time_and_the_present_state_stays(
    format: Format, tmp_path: Path
) -> None:
    lake = Lake(tmp_path, format.settings)
    for _ in range(4):
        lake.grow()
        lake.publish()
    opened = lake.opened()
    assert opened.collect(timedelta(days=1)).files == ()
    told = opened.collect(timedelta(0), dry_run=True)
    assert told.files
    assert opened.collect(timedelta(0)).files == told.files
    assert opened.collect(timedelta(0)).files == ()
    for reader in format.readers.values():
        assert rows_of(reader(lake.folder)) == lake.expected()
    lake.grow()
    assert lake.publish().anew is None


@pytest.mark.parametrize("name", ["delta", "iceberg"])
def test_a_lost_data_file_of_an_open_format_is_told_and_written_anew(
    name: str, tmp_path: Path
) -> None:
    format = next(each for each in FORMATS if each.name == name)
    lake = Lake(tmp_path, format.settings)
    lake.append(*((key, 1, 0.5) for key in "abc"))
    lake.publish()
    for file in format.data_files(lake.folder):
        Path(file.removeprefix("file://")).unlink()
    lake.append(*((key, 2, 0.5) for key in "abc"))
    error = refused(lake)
    assert (error.code, error.exit_code) == ("E1309", 3)
    assert lake.publish(anew="it is damaged").written
    for reader in format.readers.values():
        assert rows_of(reader(lake.folder)) == lake.expected()
