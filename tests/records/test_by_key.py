"""Records that are kept by key are those of the slices, whatever becomes of what is kept."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfbuild.records import by_key as module
from odfbuild.records import segments as segments_module
from odfbuild.records.by_key import RecordsByKey
from odfbuild.records.key_hash import Hashes, hash_rows
from odfbuild.records.segments import Segments
from odfbuild.store.files import folder_lock
from odfbuild.store.side_cars import SideCarFolder


def place(table: pa.Table) -> Hashes:
    return hash_rows(table.select(["key"]))


def kept(folder: Path, slices: Sequence[Path], *, cuts: bool = False) -> RecordsByKey:
    return RecordsByKey(folder / ".odfbuild" / "d", {"key": place}, slices, cuts=cuts)


def add(folder: Path, slices: list[Path], rows: int, *more: str) -> None:
    """A slice with so many records, whose numbers go on."""
    first = sum(pq.read_metadata(each).num_rows for each in slices)
    numbers = range(first, first + rows)
    columns: dict[str, Any] = {"number": [*numbers], "key": [n % 7 for n in numbers]}
    columns |= {name: [f"{n}" for n in numbers] for name in more}
    slices.append(folder / f"slice-{first}-{rows}.parquet")
    pq.write_table(pa.table(columns), slices[-1])


def numbers_of(found: RecordsByKey, key: int) -> list[int]:
    """The numbers with a key that are kept."""
    places = place(pa.table({"key": pa.array([key], pa.int64())}))
    return sorted(
        n for table in found.find("key", places, places) for n in table["number"].to_pylist()
    )


def size_of(file: Path) -> int:
    return file.stat().st_size


def numbers(found: RecordsByKey, slices: Sequence[Path]) -> list[int]:
    """The numbers with the key 3: those that are kept, and those of slices that are not held."""
    places = place(pa.table({"key": pa.array([3], pa.int64())}))
    tables = list(found.find("key", places, places))
    tables += [pq.read_table(each) for each in slices if each.name not in found.held]
    both = [row for table in tables for row in table.to_pylist()]
    return sorted(row["number"] for row in both if row["key"] == 3)


def expected(slices: Sequence[Path]) -> list[int]:
    return [n for n in range(sum(pq.read_metadata(f).num_rows for f in slices)) if n % 7 == 3]


def files_in(folder: Path) -> list[Path]:
    return sorted((folder / ".odfbuild" / "d").glob("by-*/*.arrow"))


def test_records_are_found_however_the_slices_came(tmp_path: Path) -> None:
    chance = random.Random(1)
    slices: list[Path] = []
    for turn in range(30):
        for _ in range(chance.randint(0, 3)):
            add(tmp_path, slices, chance.randint(1, 40), *(["text"] if turn > 15 else []))
        found = kept(tmp_path, slices)
        assert numbers(found, slices) == expected(slices)
        if chance.random() < 0.5:
            found.keep()
            again = kept(tmp_path, slices)
            assert again.held == {each.name for each in slices}
            assert numbers(again, slices) == expected(slices)
    # Those of one layout are merged, and none is lost.
    assert 2 <= len(files_in(tmp_path)) <= 12


def test_what_is_kept_of_other_slices_is_not_looked_at(tmp_path: Path) -> None:
    slices: list[Path] = []
    for _ in range(4):
        add(tmp_path, slices, 20)
    kept(tmp_path, slices).keep()
    assert len(files_in(tmp_path)) == 1
    # An earlier state of the chain: what lies behind it is cut off by the caller, or not held.
    assert not kept(tmp_path, slices[:2]).held
    assert kept(tmp_path, slices[:2], cuts=True).held == {each.name for each in slices}
    # Another history, which shares the beginning.
    other = slices[:2]
    add(tmp_path, other, 30)
    for cuts in (False, True):
        found = kept(tmp_path, other, cuts=cuts)
        assert not found.held
        assert numbers(found, other) == expected(other)
    assert not kept(tmp_path, slices[1:], cuts=True).held
    kept(tmp_path, other).keep()
    assert numbers(kept(tmp_path, other), other) == expected(other)


HARMS = ["delete", "cut", "flip", "manifest", "another machine", "older release", "replaced"]


@pytest.mark.parametrize("harm", HARMS)
def test_what_is_damaged_foreign_or_old_is_made_again(
    tmp_path: Path, harm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    slices: list[Path] = []
    add(tmp_path, slices, 50)
    add(tmp_path, slices, 50)
    kept(tmp_path, slices).keep()
    [file] = files_in(tmp_path)
    data = bytearray(file.read_bytes())
    if harm == "delete":
        shutil.rmtree(file.parent)
    elif harm == "cut":
        file.write_bytes(data[:-9])
    elif harm == "flip":
        data[len(data) // 2] ^= 1
        file.write_bytes(data)
    elif harm == "manifest":
        (file.parent / "manifest.bin").write_bytes(b"odfbuild")
    elif harm == "another machine":
        there = tmp_path / "there"
        monkeypatch.setenv("XDG_STATE_HOME", str(there))
        shutil.move(file.parent.parent, tmp_path / "moved")
        kept(tmp_path, slices).keep()
        shutil.rmtree(file.parent.parent)
        shutil.move(tmp_path / "moved", file.parent.parent)
    elif harm == "older release":
        monkeypatch.setattr(module, "_FORM", b"records by key 2\n")
    else:
        file.write_bytes(pq.read_table(slices[0]).schema.serialize().to_pybytes())
    found = kept(tmp_path, slices)
    assert not found.held
    assert numbers(found, slices) == expected(slices)
    found.keep()
    again = kept(tmp_path, slices)
    assert again.held
    assert numbers(again, slices) == expected(slices)


class Killed(BaseException):
    """As if the process had ended here."""


STEPS: dict[str, Any] = {
    "prepare_cache_folder": module,
    "_write": Segments,
    "pieces": segments_module,
    "describe": SideCarFolder,
    "save": SideCarFolder,
    "write_disposable": "odfbuild.store.side_cars",
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("after", [False, True])
def test_a_kill_while_records_are_kept_is_harmless(
    tmp_path: Path, step: str, *, after: bool
) -> None:
    slices: list[Path] = []
    add(tmp_path, slices, 50)
    kept(tmp_path, slices).keep()
    add(tmp_path, slices, 40)
    add(tmp_path, slices, 40)
    place_of = STEPS[step]
    if isinstance(place_of, str):
        from odfbuild.store import side_cars as place_of
    real: Callable[..., Any] = getattr(place_of, step)

    def killed(*args: Any, **options: Any) -> Any:
        if after:
            real(*args, **options)
        raise Killed

    with pytest.MonkeyPatch.context() as fault:
        fault.setattr(place_of, step, killed)
        with pytest.raises(Killed):
            kept(tmp_path, slices).keep()
    found = kept(tmp_path, slices)
    assert found.held
    assert numbers(found, slices) == expected(slices)
    add(tmp_path, slices, 100)
    kept(tmp_path, slices).keep()
    assert numbers(kept(tmp_path, slices), slices) == expected(slices)
    assert len(files_in(tmp_path)) == 1, "what the kill left is gone"


def test_what_is_much_larger_than_the_slices_is_packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LITTLE", 0)
    slices = [tmp_path / f"slice-{n}.parquet" for n in range(3)]
    sizes = []
    for at, each in enumerate(slices):
        numbers = np.arange(at * 50_000, (at + 1) * 50_000)
        columns = {"number": numbers, "key": numbers % 5000, "flag": numbers % 2}
        pq.write_table(pa.table(columns), each)
    for times in (1000, 0.5):
        monkeypatch.setattr(module, "_LARGEST", times)
        for at in range(3):
            kept(tmp_path, slices[: at + 1]).keep()
        assert numbers_of(kept(tmp_path, slices), 3) == [*range(3, 150_000, 5000)]
        files = files_in(tmp_path)
        sizes.append(sum(map(size_of, files)))
        shutil.rmtree(files[0].parent)
    assert sizes[1] < 0.8 * sizes[0]
    assert sizes[0] < 1.5 * sum(map(size_of, slices))


def test_only_one_at_a_time_keeps_records_and_the_others_go_on(tmp_path: Path) -> None:
    slices: list[Path] = []
    add(tmp_path, slices, 50)
    kept(tmp_path, slices).keep()
    add(tmp_path, slices, 60)
    with folder_lock(files_in(tmp_path)[0].parent):
        kept(tmp_path, slices).keep()
        found = kept(tmp_path, slices)
        assert len(found.held) == 1
    # What is open stays readable when somebody replaces it.
    kept(tmp_path, slices).keep()
    assert numbers(found, slices) == expected(slices)
    assert numbers(kept(tmp_path, slices), slices) == expected(slices)


def test_records_of_several_keys_are_found_where_all_of_them_are_kept(tmp_path: Path) -> None:
    slices: list[Path] = []
    add(tmp_path, slices, 50)
    side_cars = tmp_path / ".odfbuild" / "d"
    kept(tmp_path, slices).keep()

    def by_number(table: pa.Table) -> Hashes:
        return table["number"].to_numpy().astype(np.uint64)

    keys = {"key": place, "number": by_number}
    both = RecordsByKey(side_cars, keys, slices, cuts=False)
    assert not both.held and not list(
        both.find("key", place(pq.read_table(slices[0])), np.empty(0, np.uint64))
    )
    both.keep()
    both = RecordsByKey(side_cars, keys, slices, cuts=False)
    lowest, highest = np.array([10], np.uint64), np.array([12], np.uint64)
    [found] = both.find("number", lowest, highest)
    assert found["number"].to_pylist() == [10, 11, 12]
    assert len(files_in(tmp_path)) == 2
