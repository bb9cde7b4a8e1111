"""30 increments with corrections and retractions into each format, read by others after each."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.exchange.tables.tables import FORMATS, Format, Lake, rows_of
from tests.records.chains import A, R

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


@pytest.mark.parametrize("format", FORMATS, ids=lambda each: each.name)
def test_a_retraction_that_comes_before_its_record_takes_it_away(
    format: Format, tmp_path: Path
) -> None:
    """As a current state counts: a source of changes may retract what is not there."""
    lake = Lake(tmp_path, format.settings)
    first, early, other = (1, "a", 1, 0.5), (2, "a", 2, 0.5), (3, "b", 3, 0.5)
    steps = ([(A, first)], [(R, early), (A, other)], [(A, early)], [(A, other)], [(R, other)])
    anew = []
    for step in steps:
        lake.chain.add([row for _, row in step], [op for op, _ in step])
        anew.append(lake.publish().anew is not None)
        shown = [tuple(row.values()) for row in lake.chain.records().last(9).to_pylist()]
        expected = sorted(
            ((round(time.timestamp() * 1000), *rest) for time, *rest in shown), key=repr
        )
        for reader in format.readers.values():
            assert rows_of(reader(lake.folder)) == expected
    assert anew == [True, True, True, False, False]


@pytest.mark.parametrize("format", FORMATS, ids=lambda each: each.name)
def test_readers_find_partitions_whatever_their_values_begin_with(
    format: Format, tmp_path: Path
) -> None:
    """Files whose names begin with a dot or an underscore are hidden for readers of folders."""
    lake = Lake(tmp_path, format.settings)
    for _ in range(2):
        lake.append(("_a", 1, 0.5), (".b", 2, 0.5), ("..", 3, 0.5), (" c", 4, 0.5), ("d", 5, 0.5))
        lake.publish()
        for reader in format.readers.values():
            assert rows_of(reader(lake.folder)) == lake.expected()
