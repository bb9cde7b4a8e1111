"""Records in segments are those that were put in, found by their places."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odfbuild.records import segments as module
from odfbuild.records.key_hash import Hashes
from odfbuild.records.segments import Segments
from odfbuild.store.disposable import prepare_cache_folder
from odfbuild.store.side_cars import SideCar, SideCarFolder

LAST = 2**64 - 1


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches, ranges and pieces of a few records."""
    monkeypatch.setattr(module, "_BATCH_ROWS", 3)
    monkeypatch.setattr(module, "_TOGETHER", 2)
    monkeypatch.setattr(module, "PIECE_BYTES", 200)


def place(table: pa.Table) -> Hashes:
    return table["place"].to_numpy().astype(np.uint64)


def segments(
    folder: Path,
    codec: str | None = "zstd",
    wanted: Callable[[pa.Table], pa.Table] | None = None,
) -> Segments:
    prepare_cache_folder(folder)
    return Segments(SideCarFolder(folder, b"test"), place, codec, wanted)


def table(places: list[int], first: int = 0) -> pa.Table:
    numbers = range(first, first + len(places))
    return pa.table(
        {
            "number": pa.array(numbers, pa.int64()),
            "place": pa.array(places, pa.uint64()),
            "text": pa.array([None if n % 3 else "x" * (n % 5) for n in numbers], pa.string()),
        }
    )


def grown(made: Segments, files: list[SideCar], *tables: pa.Table) -> list[SideCar]:
    return made.grown(files, tables, lambda t: [t.num_rows], lambda notes: [*chain(*notes)])


def found(made: Segments, files: list[SideCar], ranges: list[tuple[int, int]]) -> list[Any]:
    lowest, highest = (np.array(side, np.uint64) for side in zip(*ranges, strict=True))
    rows = [
        row for f in files for t in made.open(f).between(lowest, highest) for row in t.to_pylist()
    ]
    return sorted(rows, key=lambda row: row["number"])


PLACES = st.lists(st.sampled_from([0, 1, 2, 3, 50, 51, 1000, LAST - 1, LAST]), max_size=30)
RANGES = st.lists(
    st.tuples(st.integers(0, 60) | st.just(LAST), st.integers(0, 60) | st.just(LAST)).map(sorted),
    min_size=1,
    max_size=5,
)


@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(growths=st.lists(st.lists(PLACES, max_size=3), max_size=6), ranges=RANGES)
@pytest.mark.parametrize("codec", ["zstd", None])
def test_what_is_found_is_what_was_put_in(
    tmp_path: Path, codec: str | None, growths: list[list[list[int]]], ranges: list[tuple[int, int]]
) -> None:
    made = segments(tmp_path / ".odfbuild", codec)
    files: list[SideCar] = []
    everything: list[Any] = []
    for growth in growths:
        tables = []
        for places in growth:
            tables.append(table(places, len(everything)))
            everything += tables[-1].to_pylist()
        files = grown(made, files, *tables)
        assert sum(each.records for each in files) == len(everything)
    expected = [row for row in everything if any(a <= row["place"] <= b for a, b in ranges)]
    assert found(made, files, ranges) == expected
    noted = [count for each in files for count in each.notes[1]]
    assert sum(noted) == len(everything)


def test_there_are_few_segments_and_each_record_was_written_a_few_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = segments(tmp_path / ".odfbuild")
    written: list[int] = []
    describe: Callable[..., SideCar] = SideCarFolder.describe

    def counted(self: SideCarFolder, name: str, records: int, notes: Any = None) -> SideCar:
        written.append(records)
        return describe(self, name, records, notes)

    monkeypatch.setattr(SideCarFolder, "describe", counted)
    chance = random.Random(1)
    files: list[SideCar] = []
    for number in range(128):
        files = grown(made, files, table([chance.randrange(1000)], number))
        assert len(files) <= 1 + math.log2(128)
    assert sum(written) <= 128 * (2 + math.log2(128))


def test_few_batches_are_read_for_few_places(tmp_path: Path) -> None:
    made = segments(tmp_path / ".odfbuild")
    [file] = grown(made, [], *(table([*range(n, n + 10)], n) for n in range(0, 300, 10)))
    segment = made.open(file)
    read: list[int] = []
    batches = segment._source
    segment._source = _Counting(batches, read)
    wanted = np.array([7, 150, 299], np.uint64)
    rows = [row["number"] for t in segment.between(wanted, wanted) for row in t.to_pylist()]
    assert rows == [7, 150, 299]
    assert len(read) <= 6


class _Counting:
    def __init__(self, source: Any, read: list[int]) -> None:
        self._source, self._read = source, read

    def get_batch(self, number: int) -> Any:
        self._read.append(number)
        return self._source.get_batch(number)


def test_records_of_one_place_are_merged_batch_by_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = segments(tmp_path / ".odfbuild")
    files = grown(made, [], *(table([5] * 20, n) for n in range(0, 400, 20)))
    largest: list[int] = []
    in_order = Segments._in_order

    def watched(self: Segments, records: pa.Table) -> pa.Table:
        largest.append(records.num_rows)
        return in_order(self, records)

    monkeypatch.setattr(Segments, "_in_order", watched)
    files = grown(made, files, *(table([4, 5, 6] * 100, 400 + n) for n in range(0, 900, 300)))
    assert max(largest) <= 400
    assert len(files) == 1 and files[0].records == 1300
    assert len(found(made, files, [(5, 5)])) == 700


@settings(
    max_examples=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(growths=st.lists(st.lists(PLACES, max_size=3), max_size=6))
def test_a_segment_has_wanted_records_only(tmp_path: Path, growths: list[list[list[int]]]) -> None:
    made = segments(tmp_path / ".odfbuild", wanted=newest)
    files: list[SideCar] = []
    everything: list[Any] = []
    for growth in growths:
        tables = []
        for places in growth:
            tables.append(table(places, len(everything)))
            everything += tables[-1].to_pylist()
        files = grown(made, files, *tables)
    last: dict[int, int] = {}
    for file in files:
        rows = found(made, [file], [(0, LAST)])
        assert len(rows) == file.records == len({row["place"] for row in rows})
        last |= {row["place"]: row["number"] for row in rows}
    assert last == {row["place"]: row["number"] for row in everything}


def newest(records: pa.Table) -> pa.Table:
    """The record with the largest number at each place."""
    numbers = records.group_by("place").aggregate([("number", "max")])["number_max"]
    return records.filter(pc.is_in(records["number"], value_set=numbers.combine_chunks()))
