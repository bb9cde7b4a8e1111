"""What merges look up has the newest record of each key, whatever the slices are."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfbuild.odf.schema.arrow_schema import schema_of
from odfbuild.records import key_index as module
from odfbuild.records import segments as segments_module
from odfbuild.records.key_index import KeyIndex, key_index
from odfbuild.records.segments import Segments
from odfbuild.store import side_cars
from odfbuild.store.committed import Committed
from odfbuild.store.side_cars import SideCarFolder
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


def grow(made: Chain, count: int) -> None:
    """Commit records whose keys are their offsets modulo 7."""
    made.add([(0, n % 7, None, None) for n in range(made.next, made.next + count)])


def all_of(made: Chain, folder: Path) -> dict[Any, int]:
    found = index(made)
    assert found is not None
    return newest(found.copy(None, folder))


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


class Killed(BaseException):
    """As if the process had ended here."""


STEPS: dict[str, Any] = {
    "prepare_cache_folder": module,
    "_write": Segments,
    "pieces": segments_module,
    "describe": SideCarFolder,
    "save": SideCarFolder,
    "write_disposable": side_cars,
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("after", [False, True])
def test_a_kill_while_they_are_brought_up_to_the_head_is_harmless(
    tmp_path: Path, step: str, *, after: bool
) -> None:
    made = Chain(workspace(tmp_path), "d", *COLUMNS)
    grow(made, 20)
    assert index(made) is not None
    grow(made, 30)
    real: Callable[..., Any] = getattr(STEPS[step], step)

    def killed(*args: Any, **options: Any) -> Any:
        if after:
            real(*args, **options)
        raise Killed

    with pytest.MonkeyPatch.context() as fault:
        fault.setattr(STEPS[step], step, killed)
        with pytest.raises(Killed):
            index(made)
    assert all_of(made, tmp_path / "found") == {(n % 7, None): n for n in range(43, 50)}


@pytest.mark.parametrize("harm", ["another machine", "older release", "lost", "rewritten"])
def test_what_is_foreign_old_or_of_another_history_is_made_again(
    tmp_path: Path, harm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Chain(workspace(tmp_path), "d", *COLUMNS)
    grow(made, 20)
    base = made.store.head()
    grow(made, 30)
    assert index(made) is not None
    if harm == "another machine":
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "there"))
    elif harm == "older release":
        monkeypatch.setattr(module, "_FORM", b"looked up by merges 2\n")
    elif harm == "lost":
        next((tmp_path / ".odfbuild").rglob("*.arrow")).unlink()
    else:
        made.store.swap_head(made.store.head(), base)
        made.next = 20
        grow(made, 30)
    assert all_of(made, tmp_path / "found") == {(n % 7, None): n for n in range(43, 50)}


def test_keys_that_may_equal_others_are_read_from_slices(tmp_path: Path) -> None:
    made = Chain(workspace(tmp_path), "d", pa.field("id", pa.float64()))
    made.add([(0, 0.0), (0, -0.0)])
    assert index(made, ("id",)) is None
