"""30 increments with corrections and retractions into each format, read by others after each."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.exchange.tables.tables import FORMATS, Format, Lake, rows_of

INCREMENTS = 30


@pytest.mark.parametrize("format", FORMATS, ids=lambda each: each.name)
def test_after_each_increment_readers_see_the_current_state_and_only_touched_files_are_new(
    format: Format, tmp_path: Path
) -> None:
    lake = Lake(tmp_path, format.settings)
    for number in range(INCREMENTS):
        touched = lake.grow()
        before = format.data_files(lake.folder)
        published = lake.publish()
        new = format.data_files(lake.folder) - before
        assert (published.anew is not None) is (number == 0)
        assert published.partitions == len(touched)
        assert len(new) <= len(touched)
        for reader in format.readers.values():
            assert rows_of(reader(lake.folder)) == lake.expected()
        assert not lake.publish().written
        assert lake.opened().read_state().records in (None, len(lake.expected()))


@pytest.mark.parametrize("format", FORMATS, ids=lambda each: each.name)
def test_a_table_that_was_behind_for_long_catches_up_at_once(
    format: Format, tmp_path: Path
) -> None:
    lake = Lake(tmp_path, format.settings)
    lake.grow()
    lake.publish()
    for _ in range(10):
        lake.grow()
    assert lake.publish().anew is None
    for reader in format.readers.values():
        assert rows_of(reader(lake.folder)) == lake.expected()


@pytest.mark.parametrize("format", FORMATS, ids=lambda each: each.name)
def test_without_partition_columns_all_records_are_one_partition(
    format: Format, tmp_path: Path
) -> None:
    lake = Lake(tmp_path, format.settings, partition_by="[]")
    for _ in range(3):
        lake.grow()
        assert lake.publish().partitions == 1
        for reader in format.readers.values():
            assert rows_of(reader(lake.folder)) == lake.expected()


@pytest.mark.parametrize("format", FORMATS, ids=lambda each: each.name)
def test_what_is_published_anew_is_the_same_as_by_increments(
    format: Format, tmp_path: Path
) -> None:
    lake = Lake(tmp_path, format.settings)
    for _ in range(5):
        lake.grow()
        lake.publish()
    assert lake.publish(anew="asked for").written
    for reader in format.readers.values():
        assert rows_of(reader(lake.folder)) == lake.expected()


@pytest.mark.parametrize("format", FORMATS, ids=lambda each: each.name)
def test_a_partition_whose_last_record_is_retracted_goes_away(
    format: Format, tmp_path: Path
) -> None:
    lake = Lake(tmp_path, format.settings)
    lake.append(("a", 1, 0.5), ("b", 2, 0.5))
    lake.publish()
    lake.take_back("b")
    lake.publish()
    for reader in format.readers.values():
        assert rows_of(reader(lake.folder)) == lake.expected()
    assert len(lake.expected()) == 1
    lake.take_back("a")
    lake.publish()
    assert lake.opened().read_state().records in (None, 0)
