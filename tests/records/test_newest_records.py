"""What merges look up has the newest record of each key, whatever the slices are."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfbuild.odf.schema.arrow_schema import schema_of
from odfbuild.records import segments as segments_module
from odfbuild.records.key_index import KeyIndex, key_index
from odfbuild.store.committed import Committed
from tests.records.chains import Chain, workspace

COLUMNS = (
    pa.field("id", pa.int32(), metadata={"odf.note": "kept"}),
    pa.field("part", pa.string()),
    pa.field("price", pa.decimal128(12, 3)),
)
KEY = ("id", "part")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces and ranges of few records."""
    monkeypatch.setattr(segments_module, "PIECE_BYTES", 600)
    monkeypatch.setattr(segments_module, "_BATCH_ROWS", 3)
    monkeypatch.setattr(segments_module, "_TOGETHER", 2)


def committed(made: Chain) -> Committed:
    return made.space.committed(made.name, made.space.projection(made.name))


def index(made: Chain, key: tuple[str, ...] = KEY) -> KeyIndex | None:
    state = made.space.projection(made.name)
    assert state is not None and state.schema is not None
    return key_index(committed(made), schema_of(state.schema), key, "offset")


def newest(files: tuple[Path, ...]) -> dict[Any, int]:
    """The offset of the newest record of each key; a file has one of a key at most."""
    found: dict[Any, int] = {}
    for file in files:
        rows = pq.read_table(file).to_pylist()
        each = {tuple(row[name] for name in KEY): row["offset"] for row in rows}
        assert len(each) == len(rows)
        assert all(found.get(key, -1) < offset for key, offset in each.items())
        found |= each
    return found


@pytest.mark.parametrize("seed", range(3))
def test_each_key_has_its_newest_record(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    made = Chain(workspace(tmp_path), "d", *COLUMNS)
    expected: dict[Any, int] = {}
    for turn in range(14):
        if turn == 9:  # a column that older slices lack
            made.schema = made.schema.append(pa.field("more", pa.int32()))
        rows = []
        for _ in range(chance.choice([1, 4, 30])):
            key = (chance.choice([None, *range(6)]), chance.choice([None, "", "a", "ä"]))
            expected[key] = made.next + len(rows)
            rows.append((0, *key, None, *([turn] if turn >= 9 else [])))
        made.add(rows, [chance.randrange(4) for _ in rows])
        if chance.random() < 0.6:
            found = index(made)
            assert found is not None
            assert newest(found.copy(None, tmp_path / f"all-{turn}")) == expected
            wanted = [chance.choice([*expected]) for _ in range(3)]
            keys = pa.table({name: [key[n] for key in wanted] for n, name in enumerate(KEY)})
            some = newest(found.copy(keys, tmp_path / f"some-{turn}"))
            assert some == {key: expected[key] for key in wanted}
    nobody = pa.table({"id": pa.array([77], pa.int32()), "part": ["a"]})
    found = index(made)
    assert found is not None and found.copy(nobody, tmp_path / "none") == ()


def test_keys_that_may_equal_others_are_read_from_slices(tmp_path: Path) -> None:
    made = Chain(workspace(tmp_path), "d", pa.field("id", pa.float64()))
    made.add([(0, 0.0), (0, -0.0)])
    assert index(made, ("id",)) is None
