"""First files of several roots that are read in one job: the same blocks as one by one."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from odfbuild.apply.roots import read_ahead
from odfbuild.engine.spark import engine as spark
from odfbuild.engine.spark.engine import SparkEngine
from odfbuild.ingest import read_marks
from odfbuild.odf.model import MetadataEvent
from odfbuild.odf.timestamp import Timestamp
from odfbuild.store.dataset import DatasetStore
from tests.apply.in_process import Program, share

pytestmark = pytest.mark.spark

NOW = Timestamp.parse("2050-01-01T00:00:00Z")
_SCHEMA = '["event_time TIMESTAMP", "id BIGINT", "name STRING", "x DOUBLE"]'
_APPEND = "Append"
_LEDGER = "Ledger\n        primaryKey: [id, name]"


def root(name: str, merge: str, *, preprocess: str = "", more: str = "") -> str:
    return f"""\
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch:
        kind: FilesGlob
        path: data/{name}*
        order: ByName
      read:
        kind: Csv
        header: true
        schema: {_SCHEMA}
{more}{preprocess}      merge:
        kind: {merge}
"""


_PREPROCESS = """\
      preprocess:
        kind: Sql
        engine: spark
        query: SELECT *, upper(name) AS loud FROM input WHERE x IS NULL OR x <> 1.5
"""


def csv(seed: object, rows: int) -> str:
    """Records with times that are missing, and keys that come again, also in other files."""
    chance = random.Random(str(seed))
    lines = ["event_time,id,name,x"]
    for _ in range(rows):
        time = chance.choice(("", f"2024-03-{chance.randrange(1, 28):02d} 10:00:00"))
        lines.append(
            f"{time},{chance.randrange(3)},{chance.choice('aäb')} é,{chance.choice((0, 1.5))}"
        )
    return "\n".join(lines) + "\n"


@pytest.fixture
def project(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    spark_engine: SparkEngine,
) -> Callable[..., Program]:
    """A project with roots, of which so many are read together."""
    share(spark_engine, monkeypatch)
    monkeypatch.setattr(Timestamp, "now", classmethod(lambda cls: NOW))

    def make(name: str, together: int, definitions: dict[str, str]) -> Program:
        monkeypatch.setattr(read_ahead, "_FILES", together)
        folder = tmp_path / name
        for sub in ("datasets", "data"):
            (folder / sub).mkdir(parents=True)
        (folder / "odfbuild.yaml").write_text(
            "kind: Project\nversion: 1\ncontent:\n  name: together\n"
            "  ingest: {blankEventTimes: {'*': fill}}\n"
        )
        for number, (dataset, text) in enumerate(definitions.items()):
            (folder / f"datasets/{dataset}.yaml").write_text(text)
            (folder / f"data/{dataset}1 ü.csv").write_text(csv(number, number % 5))
        return Program(folder, monkeypatch, capsys)

    return make


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[list[str] | None]:
    """The datasets of each job for several files; `None`: they go one by one."""
    seen: list[list[str] | None] = []
    work = SparkEngine._together

    def noted(self: SparkEngine, tasks: Any) -> Any:
        found = work(self, tasks)
        seen.append(None if found is None else [each.dataset for each in tasks])
        return found

    monkeypatch.setattr(spark.SparkEngine, "_together", noted)
    return seen


def events(program: Program) -> dict[str, list[MetadataEvent]]:
    """What each chain says behind its Seed, oldest first."""
    found = {}
    for refs in program.root.glob("chains/*/refs"):
        store = DatasetStore(refs.parent)
        head = store.head()
        assert head is not None
        found[refs.parent.name] = [block.event for _, block in store.walk(head)][-2::-1]
    return found


@pytest.mark.parametrize(
    ("merge", "preprocess"),
    [(_APPEND, _PREPROCESS), (_APPEND, ""), (_LEDGER, "")],
    ids=["append-preprocessed", "append", "ledger"],
)
def test_roots_read_in_one_job_give_the_blocks_that_they_give_one_by_one(
    project: Callable[..., Program],
    jobs: list[list[str] | None],
    merge: str,
    preprocess: str,
) -> None:
    names = [f"r{number}" for number in range(7)]
    definitions = {name: root(name, merge, preprocess=preprocess) for name in names}
    alone, together = project("alone", 1, definitions), None
    alone.apply()
    assert jobs == []
    together = project("together", 4, definitions)
    together.apply()
    assert jobs == [names[:4], names[4:]]
    assert events(together) == events(alone)


def test_new_files_of_several_roots_are_read_in_one_job_where_records_are_only_appended(
    project: Callable[..., Program], jobs: list[list[str] | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    merges = {"a": _APPEND, "b": _APPEND, "k": _LEDGER, "l": _LEDGER}
    definitions = {name: root(name, merge) for name, merge in merges.items()}
    alone, together = project("alone", 1, definitions), project("together", 9, definitions)
    for program, files in ((alone, 1), (together, 9)):
        monkeypatch.setattr(read_ahead, "_FILES", files)
        program.apply()
        for name in merges:
            (program.root / f"data/{name}2.csv").write_text(csv(name, 4))
            (program.root / f"data/{name}3.csv").write_text(csv(name * 2, 3))
        jobs.clear()
        program.apply()
    assert [job for job in jobs if job and len({*job}) > 1] == [["a", "b"]]
    assert events(together) == events(alone)


def test_a_bad_record_fails_its_root_and_no_other_one(
    project: Callable[..., Program], jobs: list[list[str] | None]
) -> None:
    names = ["a", "b", "c"]
    program = project("bad", 9, {name: root(name, _LEDGER) for name in names})
    (program.root / "data/b1 ü.csv").write_text("event_time,id,name,x\n,none,a,1\n")
    said = program("apply", "-y")
    assert jobs == [None]
    assert said.code == 4
    assert "E0421" in said.out + said.err
    assert "data/b1 ü.csv" in said.out + said.err
    assert {*events(program)} == {"a", "c"}


def test_a_file_that_was_edited_before_its_turn_is_read_again(
    project: Callable[..., Program],
    jobs: list[list[str] | None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = ["a", "b"]
    program = project("edited", 9, {name: root(name, _APPEND) for name in names})
    work = SparkEngine._together

    def then_edit(self: SparkEngine, tasks: Any) -> Any:
        found = work(self, tasks)
        (program.root / "data/b1 ü.csv").write_text(csv("edited", 7))
        return found

    monkeypatch.setattr(spark.SparkEngine, "_together", then_edit)
    program.apply()
    assert jobs == [names]
    said = program.ok("sql", "SELECT count(*) AS n FROM b", "--format", "json")
    assert said.data == [{"n": 7}]
    assert "b1" not in program.ok("plan").out


def test_roots_with_other_columns_or_policies_are_read_in_jobs_of_their_own(
    project: Callable[..., Program], jobs: list[list[str] | None]
) -> None:
    definitions = {name: root(name, _LEDGER) for name in "abcd"}
    definitions["b"] = definitions["b"].replace("x DOUBLE", "x STRING")
    definitions["c"] = root("c", _LEDGER, more="        separator: ','\n")
    definitions["e"] = definitions["b"].replace("name: b", "name: e").replace("data/b", "data/e")
    program = project("mixed", 9, definitions)
    program.apply()
    assert sorted(map(str, jobs)) == ["['a', 'd']", "['b', 'e']"]
    assert len(events(program)) == 5


def test_roots_that_declare_no_columns_are_read_one_by_one(
    project: Callable[..., Program], jobs: list[list[str] | None]
) -> None:
    inferred = {n: root(n, _APPEND).replace(f"        schema: {_SCHEMA}\n", "") for n in "ab"}
    program = project("inferred", 9, inferred)
    for name in inferred:
        (program.root / f"data/{name}1 ü.csv").write_text("event_time,id\n2024-03-01 10:00:00,1\n")
    program.apply()
    assert jobs == [None]
    assert {*events(program)} == {*inferred}


def test_large_files_are_read_alone_and_jobs_end_where_their_files_are_large_together(
    project: Callable[..., Program], jobs: list[list[str] | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    program = project("sized", 9, {name: root(name, _APPEND) for name in "abcde"})
    for name in "abde":
        (program.root / f"data/{name}1 ü.csv").write_text(csv(name, 8))
    (program.root / "data/c1 ü.csv").write_text(csv("c", 99))
    one = max((program.root / f"data/{name}1 ü.csv").stat().st_size for name in "abde")
    monkeypatch.setattr(read_ahead, "_BYTES", 2 * one)
    looks: list[str] = []
    look_at = read_marks.look_at

    def noted(step: Any, fetched: Any) -> Any:
        looks.append(fetched.display_name[5:6])
        return look_at(step, fetched)

    monkeypatch.setattr(read_ahead, "look_at", noted)
    program.apply()
    assert jobs == [["a", "b"], ["d", "e"]]
    assert looks == ["a", "b", "d", "e"]
    assert len(events(program)) == 5


def test_a_root_that_moved_while_it_was_read_ahead_is_told_so(
    project: Callable[..., Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    program = project("moved", 9, {name: root(name, _APPEND) for name in "ab"})
    program.apply()
    for name in "ab":
        (program.root / f"data/{name}2.csv").write_text(csv(name, 4))
    [a, b] = (DatasetStore(program.root / "chains" / name) for name in "ab")
    before = a.head()
    work = SparkEngine._together

    def then_move(self: SparkEngine, tasks: Any) -> Any:
        found = work(self, tasks)
        head = b.head()
        assert head is not None
        b.swap_head(head, b.read_block(head).prev_block_hash)
        return found

    monkeypatch.setattr(spark.SparkEngine, "_together", then_move)
    said = program("apply", "-y")
    assert "E0701" in said.out + said.err
    assert a.head() != before
