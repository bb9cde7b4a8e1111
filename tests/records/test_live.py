"""How many records datasets have now, without reading their records."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfbuild.records import operations
from odfbuild.records.live import live_records
from odfbuild.store.workspace import Workspace
from tests.records.chains import MILLIS, A, Chain, F, R, T, workspace

NAME = pa.field("name", pa.string())


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    return workspace(tmp_path)


def _live(space: Workspace, *, newest: bool = True) -> dict[str, int | None]:
    return live_records(space, space.projections(), newest=newest)


def _people(space: Workspace) -> Chain:
    chain = Chain(space, "people", NAME)
    chain.add([(0, "ann"), (0, "bob"), (0, "cid")])
    chain.add([(0, "ann"), (1, "anna"), (0, "bob")], [F, T, R])
    return chain


def test_it_is_the_number_of_records_of_the_current_state(space: Workspace) -> None:
    chain = _people(space)
    assert _live(space) == {"people": chain.records().count()} == {"people": 2}
    chain.add([(2, "dan")])
    assert _live(space) == {"people": 3}
    chain.add([(2, "dan")], [R])
    assert _live(space) == {"people": chain.records().count()} == {"people": 2}


def test_only_new_slices_are_looked_at_and_nothing_twice(
    space: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = _people(space)
    _live(space)
    looked = []
    original = operations.taken_back
    monkeypatch.setattr(
        operations, "taken_back", lambda file, column: looked.append(file) or original(file, column)
    )
    assert _live(space) == {"people": 2}
    assert looked == []
    chain.add([(2, "dan")])
    assert _live(space, newest=False) == {"people": 3}
    assert _live(space) == {"people": 3}
    assert len(looked) == 2
    assert _live(space) == {"people": 3}
    assert len(looked) == 2


def test_a_root_that_only_appends_needs_neither_files_nor_pyarrow(
    space: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = Chain(space, "log", NAME, appends=True)
    chain.add([(0, "a"), (0, "b")])
    _people(space)
    Chain(space, "empty", NAME)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    for file in (chain.store.path / "data").iterdir():
        file.unlink()
    assert _live(space) == {"log": 2, "people": None, "empty": 0}


def test_what_is_not_here_is_not_known_and_nothing_is_fetched(space: Workspace) -> None:
    chain = _people(space)
    files = sorted((chain.store.path / "data").iterdir())
    content = files[0].read_bytes()
    files[0].unlink()
    assert _live(space) == {"people": None}
    files[0].write_bytes(content)
    assert _live(space) == {"people": 2}


def test_damaged_files_are_left_to_verify(space: Workspace) -> None:
    chain = _people(space)
    next((chain.store.path / "data").iterdir()).write_bytes(b"PAR1nothing")
    assert _live(space) == {"people": None}


def test_the_column_is_read_where_statistics_are_missing(space: Workspace, tmp_path: Path) -> None:
    table = pa.table({"op": pa.array([A, R, F, T], pa.int32()), "t": pa.array([0] * 4, MILLIS)})
    pq.write_table(table, tmp_path / "x.parquet", write_statistics=False)
    assert operations.taken_back(tmp_path / "x.parquet", "op") == 2
