"""Executors check objects and recompute steps; what they leave is done here, and told.

What tasks do is carried out in this process; with Spark it is in tests/apply.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from odfbuild.engine.in_pieces import CheckTask, PiecesTask, WrittenPiece
from odfbuild.engine.settings import EngineSettings, SlicesBy
from odfbuild.engine.spark.pieces import tasks
from odfbuild.engine.spark.pieces.run import piece_of
from odfbuild.errors import EngineProblem
from odfbuild.inspect.verify.check import Verdict, verify
from odfbuild.inspect.verify.executors import ByExecutors
from odfbuild.records.intact import Damage
from odfbuild.report.findings.verification import render_verdict, verdict_to_data
from odfbuild.store.storage import Storage
from odfbuild.store.workspace import Workspace
from tests.apply.bench import Bench
from tests.apply.plain_engine import RESULT, PlainEngine
from tests.inspect.verify.test_reproduce import tamper

EXECUTORS = EngineSettings(slices=SlicesBy.EXECUTORS)


class Tasks(PlainEngine):
    """Has executors, which know no join."""

    def run(self, request: Any) -> Any:
        if isinstance(request, CheckTask):
            how = tasks.Checking(request.dataset, request.slices, request.storage, request.logical)
            told = tasks.check(how, numbers(*range(len(request.slices))))
            return [damage(row) for each in told for row in each.to_pylist()]
        if isinstance(request, PiecesTask):
            return [piece(request, number) for number in range(len(request.pieces))]
        return super().run(request)


def numbers(*found: int) -> Iterator[pa.RecordBatch]:
    yield pa.record_batch([pa.array(found)], ["id"])


def damage(row: dict[str, Any]) -> Damage | None:
    return Damage(row["code"], row["message"], row["help"]) if row["code"] else None


def piece(task: PiecesTask, number: int) -> WrittenPiece:
    query = (task.transform.queries or ())[-1].query
    factor = re.search(r"value \* (\d+)", query)
    assert factor is not None
    reading = tasks.Reading(task.pieces, RESULT, task.input_vocab, task.storage, task.alias)
    rows = pa.Table.from_batches(tasks.read(reading, numbers(number)), RESULT)
    rows = rows.set_column(2, "value", pc.multiply(rows["value"], int(factor[1])))
    offsets = tuple(each.first_offset for each in task.recorded)
    writing = tasks.Writing(
        task.dataset,
        task.schema,
        task.vocab,
        offsets,
        task.system_time,
        task.storage,
        task.recorded,
    )
    with tasks.own_folder() as folder:
        (row,) = tasks.written(writing, number, rows.to_batches(), folder).to_pylist()
    return piece_of(SimpleNamespace(**row), offsets[number])


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """root → derived, two steps, and joined, one; their data is in the storage only."""
    made = Bench(tmp_path)
    old = made.workspace
    made.workspace = Workspace(old.state, old.keys, old.cache, Storage("lake", tmp_path))
    made.root("root")
    made.root("more")
    made.derive("derived", "root", query="SELECT event_time, id, value * 10 AS value FROM root")
    made.derive("joined", "root", "more")
    made.add("more", [9])
    for ids in ([1, 2, 3], [4, 5]):
        made.add("root", ids)
        made.step("derived")
    made.step("joined")
    leave_to_storage(made)
    return made


def leave_to_storage(bench: Bench) -> None:
    for folder in bench.workspace.state.glob("*/data"):
        shutil.rmtree(folder)


def check(bench: Bench, settings: EngineSettings = EXECUTORS, **options: Any) -> Verdict:
    names = bench.workspace.aliases()
    return verify(bench.workspace, names, factory=Tasks, settings=settings, **options)


def test_what_executors_did_is_told_with_the_datasets_that_they_left(bench: Bench) -> None:
    verdict = check(bench, logical=True)
    assert verdict.findings == ()
    assert verdict.executors == ByExecutors(6, 0, 2, (("joined", 1),))
    assert render_verdict(["a"], verdict).splitlines()[1:] == [
        "  executors checked 6 of 6 data objects, and recomputed 2 of 3 steps; "
        "recomputed here: joined"
    ]
    assert verdict_to_data(["a"], verdict)["executors"] == {
        "objects": 6,
        "objects_here": 0,
        "steps": 2,
        "steps_here": {"joined": 1},
    }


def test_small_datasets_are_left_to_this_machine(bench: Bench) -> None:
    cluster = EngineSettings(master="spark://elsewhere:7077")
    assert check(bench, cluster).executors is None
    assert check(bench, EngineSettings()).executors is None


def test_a_record_changed_with_all_hashes_made_to_fit_is_found_there_as_here(
    bench: Bench,
) -> None:
    tamper(bench, "derived", 3, "value", 666)
    leave_to_storage(bench)
    verdict = check(bench)
    assert verdict.executors is not None
    assert verdict.executors.steps == 2
    [there] = verdict.findings
    [here] = check(bench, EngineSettings()).findings
    assert there == here
    assert (there.code, there.sequence_number, there.offset) == ("E0820", 3, 0)
    [value] = there.differences
    assert (value.column, value.recorded, value.replayed) == ("value", "666", "10")


def test_a_damaged_and_a_missing_object_are_found_there_as_here(bench: Bench) -> None:
    first, second, *_ = sorted((bench.folder / "lake" / "data").iterdir())
    first.write_bytes(first.read_bytes()[:-1] + b"X")
    second.unlink()
    there = check(bench).findings
    leave_to_storage(bench)
    assert there == check(bench, EngineSettings()).findings
    assert {each.code for each in there} == {"E0811", "E0813"}


def test_workers_that_cannot_do_it_end_the_verification(bench: Bench) -> None:
    class Unable(Tasks):
        def run(self, request: Any) -> Any:
            if isinstance(request, CheckTask):
                raise EngineProblem("workers have no Python", code="E1680")
            return super().run(request)

    with pytest.raises(EngineProblem):
        verify(bench.workspace, ["root"], factory=Unable, settings=EXECUTORS)
