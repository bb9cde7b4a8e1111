"""The index of keys that a dataset has seen: finds them all, and costs nothing but time."""

from __future__ import annotations

import math
import random
import shutil
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odfbuild.errors import IntegrityError
from odfbuild.records import key_index as module
from odfbuild.records import segments as segments_module
from odfbuild.records.key_hash import comparable_type, hash_rows
from odfbuild.records.key_index import KeyIndex, key_index
from odfbuild.records.segments import Segments
from odfbuild.records.uuids import from_text, to_text
from odfbuild.store.committed import Committed
from odfbuild.store.side_cars import SideCar
from odfbuild.store.workspace import Workspace
from tests.store.chains import ARROW_SCHEMA, add_slice, create, info, workspace

ALL = pa.table({"value": [i * i for i in range(-2, 3_000)]})


@pytest.fixture
def space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A workspace in which segments are made in several pieces, of small batches."""
    monkeypatch.setattr(segments_module, "PIECE_BYTES", 600)
    monkeypatch.setattr(segments_module, "_BATCH_ROWS", 8)
    return workspace(tmp_path)


def committed(space: Workspace) -> Committed:
    return space.committed("a", space.projection("a"))


def index(space: Workspace) -> KeyIndex:
    found = key_index(committed(space), ARROW_SCHEMA, ["value"])
    assert found is not None
    return found


def seen(space: Workspace) -> list[int]:
    """All that the index finds, from whatever it is made of."""
    return sorted(index(space).find(ALL)["value"].to_pylist())


def squares(count: int) -> list[int]:
    return [i * i for i in range(count)]


def segments(space: Workspace) -> list[Path]:
    return sorted((space.cache / "side-cars" / "a").glob("by-*/*.arrow"))


def grow(space: Workspace, *counts: int) -> int:
    """Commit slices of that many records; returns the number of records in the dataset."""
    store = space.dataset("a")
    state = space.projection("a")
    first = 0 if state is None or state.last_offset is None else state.last_offset + 1
    for count in counts:
        add_slice(store, store.path.parent / "staged", first, count)
        first += count
    return first


def test_every_key_is_found_however_the_slices_came(space: Workspace) -> None:
    create(space, "a", info("x"))
    assert seen(space) == []
    chance = random.Random(1)
    for _ in range(25):
        total = grow(space, *[chance.randint(1, 90) for _ in range(chance.randint(1, 3))])
        assert seen(space) == squares(total)
        found = index(space).find(pa.table({"value": [-1, 2, 3, (total - 1) ** 2]}))["value"]
        assert (found.to_pylist(), found.num_chunks) == ([(total - 1) ** 2], 1)
    assert len(segments(space)) <= 2 + math.log2(total)


def test_segments_are_made_once_and_read_only_where_keys_can_be(
    space: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(space, "a")
    for count in (100, 40, 9):
        total = grow(space, count)
        assert seen(space) == squares(total)
    before = {file: file.stat().st_mtime_ns for file in segments(space)}
    assert len(before) == 3
    # Old slices may be gone: what is covered is not read any more.
    slices = committed(space).slices()
    for each in slices:
        each.file.unlink()
    opened: list[SideCar] = []
    real = Segments.open
    monkeypatch.setattr(
        Segments, "open", lambda self, file: opened.append(file) or real(self, file)
    )
    found = index(space).find(pa.table({"value": [106 * 106, 120 * 120 + 1]}))
    assert (found["value"].to_pylist(), len(opened)) == ([106 * 106], 1)
    assert {file: file.stat().st_mtime_ns for file in segments(space)} == before
    shutil.rmtree(space.cache / "side-cars")
    with pytest.raises(IntegrityError, match="is missing"):
        key_index(committed(space), ARROW_SCHEMA, ["value"])


def test_damage_of_any_kind_changes_nothing(space: Workspace) -> None:
    create(space, "a")
    total = grow(space, 40, 100, 7)
    chance = random.Random(2)
    for turn in range(60):
        assert seen(space) == squares(total)
        folder = segments(space)[0].parent
        file = chance.choice(sorted(f for f in folder.iterdir() if f.stat().st_size))
        data = bytearray(file.read_bytes())
        match turn % 4:
            case 0:
                data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            case 1:
                del data[chance.randrange(len(data)) :]
            case 2:
                data += b"more"
            case 3:
                data[:] = bytes(len(data))
        file.write_bytes(data)
    segments(space)[0].unlink(missing_ok=True)
    assert seen(space) == squares(total)


def test_side_cars_of_another_time_or_chain_are_not_believed(space: Workspace) -> None:
    create(space, "a")
    grow(space, 50)
    assert seen(space) == squares(50)
    kept = space.cache / "side-cars" / "a"
    shutil.copytree(kept, space.cache / "early")
    grow(space, 30)
    assert seen(space) == squares(80)
    # An older copy comes back: the new slice is added to it.
    shutil.rmtree(kept)
    (space.cache / "early").rename(kept)
    assert seen(space) == squares(80)
    # The chain begins anew, with fewer records.
    shutil.rmtree(space.dataset("a").path)
    again = workspace(space.state.parent)
    create(again, "a")
    assert seen(again) == []
    grow(again, 9)
    assert seen(again) == squares(9)


def test_no_index_where_none_can_be_kept(space: Workspace) -> None:
    create(space, "a")
    grow(space, 3)
    space.cache.mkdir(exist_ok=True)
    (space.cache / "side-cars").write_text("in the way")
    assert key_index(committed(space), ARROW_SCHEMA, ["value"]) is None
    nested = pa.schema([("k", pa.list_(pa.int64()))])
    assert key_index(committed(space), nested, ["k"]) is None


@settings(max_examples=60, deadline=None, derandomize=True)
@given(values=st.lists(st.none() | st.uuids()), cut=st.integers(0, 5))
def test_uuids_are_found_by_the_text_that_queries_see(values: list[UUID | None], cut: int) -> None:
    packed = pa.array([each and each.bytes for each in values], pa.binary(16))
    texts = [None if each is None else str(each) for each in values[cut:]]
    assert to_text(packed.slice(cut)).to_pylist() == texts
    column = pa.ExtensionArray.from_storage(pa.uuid(), packed).slice(cut)
    assert to_text(column).to_pylist() == texts
    assert from_text(pa.array(texts, pa.string()), pa.uuid()).to_pylist() == values[cut:]
    kind = comparable_type(pa.uuid())
    kept = pa.schema([("k", kind)])
    in_file = module.comparable(pa.table({"k": column}), kept)
    in_batch = module.comparable(pa.table({"k": pa.array(texts, pa.string())}), kept)
    assert in_file == in_batch
    assert hash_rows(in_file).tolist() == hash_rows(in_batch).tolist()


# --- Hashes ---

TIME = datetime(2024, 2, 29, 12, 0, 0, 1000, tzinfo=UTC)
SAME = {
    "signed and unsigned": (pa.array([1, 7], pa.uint32()), pa.array([1, 7], pa.int64())),
    "large unsigned": (
        pa.array([2**64 - 1], pa.uint64()),
        pa.array([Decimal(2**64 - 1)], pa.decimal128(20, 0)),
    ),
    "zeros": (pa.array([0.0, -0.0]), pa.array([-0.0, 0.0])),
    "not numbers": (pa.array([float("nan")]), pa.array([-float("nan")])),
    "milliseconds and microseconds": (
        pa.array([TIME], pa.timestamp("ms", "UTC")),
        pa.array([TIME], pa.timestamp("us", "UTC")),
    ),
    "text of both sizes": (
        pa.array(["", "ä", "x" * 99]),
        pa.array(["", "ä", "x" * 99], pa.large_string()),
    ),
}


def hashes(values: pa.Array, kind: pa.DataType) -> list[int]:
    wanted = comparable_type(kind)
    assert wanted is not None
    return hash_rows(pa.table({"k": values.cast(wanted, safe=False)})).tolist()


@pytest.mark.parametrize("one", SAME)
def test_equal_keys_hash_equal(one: str) -> None:
    first, second = SAME[one]
    assert hashes(first, first.type) == hashes(second, first.type)


VALUES = {
    pa.int8(): st.integers(-128, 127),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float64(): st.floats(),
    pa.bool_(): st.booleans(),
    pa.large_string(): st.text(max_size=40),
    pa.large_binary(): st.binary(max_size=40),
    pa.date32(): st.dates(date(1, 1, 1)),
    pa.decimal128(38, 3): st.decimals(-(10**34), 10**34, places=3),
}


@pytest.mark.parametrize("kind", VALUES, ids=str)
@settings(max_examples=40, deadline=None, derandomize=True)
@given(data=st.data())
def test_a_hash_depends_on_the_key_alone(kind: pa.DataType, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.none() | VALUES[kind], min_size=1, max_size=30))
    column = pa.array(values, kind)
    whole = hash_rows(pa.table({"a": column, "b": column}))
    alone = [
        hash_rows(pa.table({"a": column.slice(i, 1), "b": pa.array([v], kind)}))[0]
        for i, v in enumerate(values)
    ]
    assert whole.tolist() == alone


def test_different_keys_seldom_share_a_hash() -> None:
    texts = [f"{i:07x}" for i in range(50_000)] + [" " * i for i in range(300)]
    assert len(set(hashes(pa.array(texts), pa.string()))) == len(texts)
    numbers = pa.table(
        {"a": [i // 300 for i in range(90_000)], "b": [i % 300 for i in range(90_000)]}
    )
    assert len(set(hash_rows(numbers).tolist())) == 90_000
    nulls = pa.table({"a": ["x", None, None, ""], "b": [None, "x", None, None]})
    assert (
        len(
            set(
                hash_rows(
                    nulls.cast(pa.schema([("a", pa.large_string()), ("b", pa.large_string())]))
                ).tolist()
            )
        )
        == 4
    )
