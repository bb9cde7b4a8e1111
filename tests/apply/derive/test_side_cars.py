"""Side-cars change nothing but time: with, without and with bad ones chains are the same."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from odfbuild.apply import ingest as ingest_module
from odfbuild.engine.contract import Engine
from odfbuild.engine.spark.merging import earlier_records as prior_module
from odfbuild.odf.model import (
    AddPushSource,
    MergeStrategy,
    MergeStrategyLedger,
    MergeStrategySnapshot,
    MergeStrategyUpsertStream,
    ReadStepNdJson,
)
from odfbuild.odf.schema.arrow_schema import schema_of
from odfbuild.odf.timestamp import Timestamp
from odfbuild.records import merge_slices
from odfbuild.records import segments as segments_module
from odfbuild.records.key_index import key_index
from odfbuild.survey.outcome import Status
from tests.apply.in_process import Program, share
from tests.apply.ingesting import NOW, create, ingest_into, workspace
from tests.apply.tiny import Tiny

pytestmark = pytest.mark.spark

KEY = ("k", "n")
STRATEGIES: list[MergeStrategy] = [
    MergeStrategyLedger(primary_key=KEY),
    MergeStrategySnapshot(primary_key=KEY),
    MergeStrategyUpsertStream(primary_key=KEY),
]
BATCHES = 4


def prepared(root: Path, merge: MergeStrategy) -> Path:
    """A project with an empty dataset."""
    columns: tuple[str, ...] = ("event_time TIMESTAMP", "k STRING", "n BIGINT", "v INT")
    if isinstance(merge, MergeStrategyUpsertStream):
        columns = (*columns, "op INT")
    create(root, ReadStepNdJson(ddl_schema=columns), merge)
    return root


def batch(merge: MergeStrategy, chance: random.Random) -> bytes:
    lines = []
    for _ in range(chance.randint(5, 60)):
        row = {
            "k": chance.choice(["a", "b", "", None, "ä" * 20]),
            "n": chance.choice([None, *range(-3, 9)]),
            "v": chance.choice([None, 1, 2]),
            "event_time": chance.choice([None, "2020-01-01T00:00:00Z", "2021-01-01T00:00:00Z"]),
        }
        if isinstance(merge, MergeStrategyUpsertStream):
            row["op"] = chance.choice([0, 0, 0, 1])
        lines.append(json.dumps(row))
    return "\n".join(lines).encode()


def chain(root: Path) -> dict[str, bytes]:
    """Every byte of the dataset."""
    folder = root / "chains" / "d"
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }


def kept(root: Path) -> Path:
    return root / ".odfbuild" / "side-cars" / "d"


def harm(root: Path, chance: random.Random, old: Path) -> None:
    """Do something to the side-cars that may happen to files."""
    folder = kept(root)
    if not folder.exists():
        return
    match chance.choice(["delete", "flip", "cut", "old", "lose"]):
        case "delete":
            shutil.rmtree(folder)
        case "old" if old.exists():
            shutil.rmtree(folder)
            shutil.copytree(old, folder)
        case kind:
            files = [f for f in folder.rglob("*") if f.is_file() and f.stat().st_size]
            for file in chance.sample(files, min(3, len(files))):
                data = bytearray(file.read_bytes())
                if kind == "flip":
                    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
                elif kind == "cut":
                    del data[chance.randrange(len(data)) :]
                if kind == "lose":
                    file.unlink()
                else:
                    file.write_bytes(data)


@pytest.mark.parametrize("merge", STRATEGIES, ids=lambda merge: type(merge).KIND)
def test_a_chain_does_not_depend_on_its_side_cars(
    tmp_path: Path, spark_engine: Engine, merge: MergeStrategy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments_module, "PIECE_BYTES", 400)
    monkeypatch.setattr(prior_module, "_FEW_RECORDS", 0)
    first = prepared(tmp_path / "kept", merge)
    without = shutil.copytree(first, tmp_path / "without")
    harmed = shutil.copytree(first, tmp_path / "harmed")
    (without / ".odfbuild").mkdir(exist_ok=True)
    (without / ".odfbuild" / "side-cars").write_text("in the way")
    chance, fate = random.Random(type(merge).KIND), random.Random(5)
    for turn in range(BATCHES):
        clock = SimpleNamespace(time_ns=lambda turn=turn: NOW.ns + turn * 10**9)
        monkeypatch.setattr("odfbuild.odf.timestamp.time", clock)
        data = batch(merge, chance)
        for root in (first, without, harmed):
            # Batches repeat keys, which a snapshot keeps only where it is told to.
            outcome = ingest_into(
                workspace(root),
                spark_engine,
                data,
                duplicate_keys="warn",
                blank_event_times="fill",
            )
            assert outcome.status is not Status.FAILED, outcome.error
        wanted = chain(without)
        assert chain(first) == wanted
        assert chain(harmed) == wanted
        harm(harmed, fate, tmp_path / "old")
        if turn == 1:
            shutil.copytree(kept(first), tmp_path / "old")
    assert [each.name[:3] for each in kept(first).iterdir() if each.is_dir()] == ["by-"]
    assert len([name for name in wanted if name.startswith("data/")]) >= BATCHES - 1


def test_keys_are_indexed_as_soon_as_they_are_committed(
    tmp_path: Path, spark_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    merge = STRATEGIES[0]
    monkeypatch.setattr(ingest_module, "WORTH_AN_INDEX", 1)
    root = prepared(tmp_path / "p", merge)
    space = workspace(root)
    ingest_into(space, spark_engine, batch(merge, random.Random(7)), blank_event_times="fill")
    state = space.projection("d")
    assert state is not None
    assert state.schema is not None
    for each in space.committed("d", state).slices():
        each.file.unlink()
    index = key_index(space.committed("d", state), schema_of(state.schema), KEY)
    assert index is not None


@pytest.mark.parametrize("indexed", [True, False])
def test_a_key_may_have_a_column_that_earlier_records_have_not(
    tmp_path: Path, spark_engine: Engine, monkeypatch: pytest.MonkeyPatch, indexed: bool
) -> None:
    if not indexed:
        monkeypatch.setattr(prior_module, "SMALL_BATCH_ROWS", 0)
    strategies: list[Any] = [MergeStrategyLedger, MergeStrategyUpsertStream]
    for number, strategy in enumerate(strategies):
        space = create(tmp_path / str(number), ReadStepNdJson(), strategy(primary_key=("id",)))
        ingest_into(space, spark_engine, b'{"id": 1, "v": 1}\n{"id": 2, "v": 2}\n')
        store = space.dataset("d")
        wider = AddPushSource(
            source_name="wide", read=ReadStepNdJson(), merge=strategy(primary_key=("id", "part"))
        )
        store.append(store.head(), [wider], Timestamp.now())
        said = ingest_into(
            space,
            spark_engine,
            b'{"id": 1, "part": null, "v": 1}\n{"id": 2, "part": "a", "v": 2}\n',
            source="wide",
            on_schema_change="append_new_columns",
        )
        # NULL is a value: the first row is there already.
        assert (said.error, said.records) == (None, 1)


def test_derivatives_are_the_same_with_and_without_merged_copies(
    tmp_path: Path,
    spark_engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(merge_slices, "MANY", 3)
    share(spark_engine, monkeypatch)
    found = []
    for name in ("kept", "without"):
        tiny = Tiny.fresh(tmp_path / name)
        tiny.derive(
            "sums",
            "SELECT max(event_time) AS event_time, id % 5 AS id, sum(value) AS value"
            " FROM source GROUP BY id % 5",
        )
        tiny.derive("of-sums", "SELECT event_time, id, -value AS value FROM source", "sums")
        if name == "without":
            (tiny.root / ".odfbuild").mkdir()
            (tiny.root / ".odfbuild" / "side-cars").write_text("in the way")
        program = Program(tiny.root, monkeypatch, capsys)
        number = 10
        for _ in range(4):
            for _ in range(3):
                lines = [f"2024-02-01 00:00:00,{number * 10 + n},{number + n}" for n in range(7)]
                text = "\n".join(("event_time,id,value", *lines)) + "\n"
                (tiny.root / "data" / f"{number}.csv").write_text(text)
                number += 1
            program.apply()
        space = tiny.workspace()
        for each in ("root", "sums"):
            copies = space.committed(each, space.projection(each)).copies().copies
            assert bool(copies) is (name == "kept")
        found.append({each: tiny.records(each) for each in space.aliases()})
    assert found[0] == found[1]
    assert any(record["op"] for record in found[0]["of-sums"])
