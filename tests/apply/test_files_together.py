"""Files of one root that are read in one job: the same blocks as one by one."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from odfbuild.apply.roots import planned_files
from odfbuild.engine.spark import engine as spark
from odfbuild.engine.spark.engine import SparkEngine
from odfbuild.ingest.fetch import Fetched
from odfbuild.odf.model import AddData, FetchStepFilesGlob, SourceOrdering
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp
from odfbuild.store.dataset import DatasetStore
from tests.apply.in_process import Program, share

pytestmark = pytest.mark.spark

NOW = Timestamp.parse("2050-01-01T00:00:00Z")
_PREPROCESS = """
      preprocess:
        kind: Sql
        engine: spark
        query: SELECT *, upper(name) AS loud FROM input WHERE n IS NULL OR n <> 3"""


def root(merge: str, preprocess: str = "", read: str = "Csv\n        header: true") -> str:
    return f"""\
kind: DatasetSnapshot
version: 1
content:
  name: r
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch:
        kind: FilesGlob
        path: data/*
        order: ByName
        eventTime:
          kind: FromPath
          pattern: (\\d+-\\d+-\\d+)
          timestampFormat: "%Y-%m-%d"
      read:
        kind: {read}
        schema: ["event_time TIMESTAMP", "id BIGINT", "name STRING", "n INT", "x DOUBLE"]
{preprocess.lstrip(chr(10))}
      merge:
        kind: {merge}
"""


def files_of(seed: int, number: int) -> dict[str, str]:
    """Files of CSV with times that are missing, keys that come again, and none or many records."""
    chance = random.Random(seed)
    found = {}
    for day in range(number):
        rows = ["event_time,id,name,n,x"]
        for _ in range(chance.choice((0, 1, 5, 12)) if day else 3):
            time = chance.choice(("", f"2024-03-{chance.randrange(1, 28):02d} 10:00:00"))
            id = chance.choice(("", str(chance.randrange(12))))
            x = chance.choice(("", "0.0", "-0.0", "1.5"))
            rows.append(f"{time},{id},{chance.choice('aäb')} é,{chance.randrange(5)},{x}")
        found[f"2024-01-{day + 1:02d} ü.csv"] = "\n".join(rows) + "\n"
    return found


@contextmanager
def jobs_of(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int | None]]:
    """How many results each job for several files gave; `None`: they go one by one."""
    seen: list[int | None] = []
    work = SparkEngine.ingest_together

    def noted(self: SparkEngine, tasks: Any) -> Any:
        found = work(self, tasks)
        seen.append(None if found is None else len(found))
        return found

    monkeypatch.setattr(spark.SparkEngine, "ingest_together", noted)
    yield seen


@pytest.fixture
def project(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    spark_engine: SparkEngine,
) -> Callable[[str, str, dict[str, str], int], Program]:
    """A project with a root over files, of which so many are read together."""
    share(spark_engine, monkeypatch)
    monkeypatch.setattr(Timestamp, "now", classmethod(lambda cls: NOW))

    def make(name: str, definition: str, files: dict[str, str], together: int) -> Program:
        monkeypatch.setattr(planned_files, "_FILES", together)
        folder = tmp_path / name
        for sub in ("datasets", "data"):
            (folder / sub).mkdir(parents=True)
        (folder / "odfbuild.yaml").write_text(
            "kind: Project\nversion: 1\ncontent:\n  name: together\n"
        )
        (folder / "datasets/r.yaml").write_text(definition)
        for file, text in files.items():
            (folder / "data" / file).write_text(text)
        return Program(folder, monkeypatch, capsys)

    return make


def blocks(program: Program) -> list[AddData]:
    """All `AddData` of the root, oldest first."""
    [folder] = program.root.glob("**/r/refs")
    store = DatasetStore(folder.parent)
    head = store.head()
    assert head is not None
    found = [block.event for _, block in store.walk(head)]
    return [event for event in reversed(found) if isinstance(event, AddData)]


@pytest.mark.parametrize(
    ("merge", "preprocess"),
    [("Append", _PREPROCESS), ("Ledger\n        primaryKey: [id, x]", "")],
    ids=["append", "ledger"],
)
def test_files_read_in_one_job_give_the_blocks_that_they_give_one_by_one(
    project: Callable[..., Program],
    monkeypatch: pytest.MonkeyPatch,
    merge: str,
    preprocess: str,
) -> None:
    files = files_of(len(merge) + len(preprocess), 9)
    alone = project("alone", root(merge, preprocess), files, 1)
    alone.apply()
    together = project("together", root(merge, preprocess), files, 5)
    with jobs_of(monkeypatch) as jobs:
        together.apply()
    assert jobs == [5, 3]
    assert blocks(together) == blocks(alone)
    assert sum(event.new_data is not None for event in blocks(alone)) > 4


def test_lines_of_json_in_several_files_give_the_blocks_that_they_give_one_by_one(
    project: Callable[..., Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {
        f"2024-01-{day:02d}.json": "".join(
            f'{{"id": {day % 3}, "name": "n{row}", "x": {row}.5}}\n' for row in range(day)
        )
        for day in range(1, 6)
    }
    definition = root("Ledger\n        primaryKey: [id]", read="NdJson")
    alone = project("alone", definition, files, 1)
    alone.apply()
    together = project("together", definition, files, 100)
    with jobs_of(monkeypatch) as jobs:
        together.apply()
    assert jobs == [4]
    assert blocks(together) == blocks(alone)


def test_a_bad_record_fails_its_file_and_keeps_those_before(
    project: Callable[..., Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = files_of(5, 6)
    files["2024-01-04 ü.csv"] += "2024-03-01 10:00:00,none,a,1,2\n"
    program = project("bad", root("Append"), files, 100)
    with jobs_of(monkeypatch) as jobs:
        said = program("apply", "-y")
    assert jobs == [None]
    assert said.code == 4
    assert "E0421" in said.out + said.err
    assert "2024-01-04 ü.csv" in said.out + said.err
    assert len(blocks(program)) == 3


_NO_NULLS = """\
  checks:
    - match: [r]
      notNull: [id]
"""
_OF_ITS_OWN = """\
  checks:
    - match: [r]
      relationships: {n: {to: r, field: id}}
"""


def check(program: Program, text: str) -> None:
    with (program.root / "odfbuild.yaml").open("a") as file:
        file.write(text)


def test_records_that_break_a_check_fail_their_file_and_keep_those_before(
    project: Callable[..., Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    row = "event_time,id,name,n,x\n2024-03-01 10:00:00,{},a,1,2\n"
    files = {f"2024-01-0{day}.csv": row.format("" if day == 5 else day) for day in range(1, 7)}
    program = project("checked", root("Append"), files, 100)
    check(program, _NO_NULLS)
    with jobs_of(monkeypatch) as jobs:
        said = program("apply", "-y")
    assert jobs == [5]
    assert said.code == 4
    assert "E0540" in said.out + said.err
    assert len(blocks(program)) == 4
    (program.root / "data/2024-01-05.csv").write_text(row.format(5))
    program.apply()
    assert [each.new_data.offset_interval.end for each in blocks(program) if each.new_data] == [
        *range(6)
    ]


def test_a_check_against_the_dataset_itself_sees_the_files_before(
    project: Callable[..., Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    row = "event_time,id,name,n,x\n2024-03-01 10:00:00,{},a,{},2\n"
    files = {f"2024-01-0{day}.csv": row.format(day, day - 1 or "") for day in range(1, 7)}
    program = project("related", root("Append"), {"2023-12-31.csv": row.format(0, "")}, 100)
    program.apply()
    check(program, _OF_ITS_OWN)
    for name, text in files.items():
        (program.root / "data" / name).write_text(text)
    with jobs_of(monkeypatch) as jobs:
        program.apply()
    assert jobs == [5]
    assert len(blocks(program)) == 7


def test_files_read_together_are_seen_together(
    project: Callable[..., Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    program = project("seen", root("Append"), files_of(8, 6), 100)
    heads = []
    swap = DatasetStore.swap_head

    def noted(self: DatasetStore, expected: Multihash | None, new: Multihash) -> None:
        swap(self, expected, new)
        heads.append(self.read_block(new).sequence_number)

    monkeypatch.setattr(DatasetStore, "swap_head", noted)
    program.apply()
    assert len(heads) == 2
    assert heads[1] - heads[0] == 5


def test_a_file_edited_after_the_job_is_told_by_the_next_plan(
    project: Callable[..., Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = files_of(6, 4)
    program = project("edited", root("Append"), files, 100)
    last = program.root / "data" / max(files)
    work = SparkEngine.ingest_together

    def then_edit(self: SparkEngine, tasks: Any) -> Any:
        found = work(self, tasks)
        last.write_text(last.read_text() + "2024-03-01 10:00:00,1,late,1,2\n")
        return found

    monkeypatch.setattr(spark.SparkEngine, "ingest_together", then_edit)
    program.apply()
    assert last.name in program.ok("plan").out


def test_a_query_over_all_records_of_a_file_is_run_file_by_file(
    project: Callable[..., Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    grouped = _PREPROCESS.replace(
        "SELECT *, upper(name) AS loud FROM input WHERE n IS NULL OR n <> 3",
        "SELECT id, max(event_time) AS event_time, count(*) AS c FROM input GROUP BY id",
    )
    files = files_of(7, 4)
    alone = project("alone", root("Append", grouped), files, 1)
    alone.apply()
    together = project("together", root("Append", grouped), files, 100)
    with jobs_of(monkeypatch) as jobs:
        together.apply()
    assert jobs == [None]
    assert blocks(together) == blocks(alone)


def test_what_goes_wrong_while_files_are_listed_comes_behind_those_before(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("a")
    step = FetchStepFilesGlob(path="data/*", order=SourceOrdering.ByName)

    def found() -> Iterator[Fetched]:
        for number in range(3):
            yield Fetched(file, None, None, str(number))
        raise OSError("no more")

    batches = []
    with pytest.raises(OSError, match="no more"):
        for batch in planned_files.in_batches(step, found()):
            batches.append([each.display_name for each in batch])
    assert batches == [["0"], ["1", "2"]]
