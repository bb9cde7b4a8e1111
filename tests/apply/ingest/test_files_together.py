"""Files of one root that are read in one job: the same blocks as one by one."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
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


_COLUMNS = ("event_time TIMESTAMP", "id BIGINT", "name STRING", "n INT", "x DOUBLE")
_DECLARED = f"\n        schema: {json.dumps(_COLUMNS)}"
_DECLARED_WITH_OP = f"\n        schema: {json.dumps((*_COLUMNS, 'op INT'))}"


def root(
    merge: str,
    preprocess: str = "",
    read: str = "Csv\n        header: true",
    schema: str = _DECLARED,
) -> str:
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
        kind: {read}{schema}
{preprocess.lstrip(chr(10))}
      merge:
        kind: {merge}
"""


Record = dict[str, Any]


def records_of(seed: int, number: int, *, op: bool, unique: bool) -> list[list[Record]]:
    """Records of files: times that are missing, keys that come again, none or many of them."""
    chance = random.Random(seed)
    found = []
    for day in range(number):
        rows = []
        for _ in range(chance.choice((0, 1, 5, 12)) if day else 3):
            time = f"2024-03-{chance.randrange(1, 28):02d} 10:00:00"
            row = {
                "event_time": chance.choice((None, time)),
                "id": chance.choice((None, *range(6))),
                "name": f"{chance.choice('aäb')} é",
                "n": chance.randrange(3),
                "x": chance.choice((None, 0.0, -0.0, 1.5)),
            }
            rows.append(row | ({"op": chance.choice((0, 0, 1, 2, 3))} if op else {}))
        found.append([*{row["id"]: row for row in rows}.values()] if unique else rows)
    return found


def csv(rows: Sequence[Record]) -> bytes:
    names = list(rows[0]) if rows else [column.split()[0] for column in _COLUMNS]
    cells = [["" if value is None else str(value) for value in row.values()] for row in rows]
    return "".join(f"{','.join(line)}\n" for line in (names, *cells)).encode()


def ndjson(rows: Sequence[Record]) -> bytes:
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows).encode()


def features(rows: Sequence[Record]) -> list[Record]:
    place = {"type": "Point", "coordinates": [1.5, 2]}
    return [{"type": "Feature", "properties": row, "geometry": place} for row in rows]


def parquet(rows: Sequence[Record]) -> bytes:
    kinds = [("event_time", pa.string()), ("id", pa.int64()), ("name", pa.string())]
    kinds += [("n", pa.int32()), ("x", pa.float64())]
    kinds += [("op", pa.int32())] if rows and "op" in rows[0] else []
    table = pa.Table.from_pylist(list(rows), pa.schema(kinds))
    times = table["event_time"].cast(pa.timestamp("ms")).cast(pa.timestamp("ms", "UTC"))
    target = io.BytesIO()
    pq.write_table(table.set_column(0, "event_time", times), target)
    return target.getvalue()


FORMATS: dict[str, Callable[[Sequence[Record]], bytes]] = {
    "Csv\n        header: true": csv,
    "NdJson": ndjson,
    "Json": lambda rows: json.dumps(rows).encode(),
    "NdGeoJson": lambda rows: ndjson(features(rows)),
    "GeoJson": lambda rows: json.dumps(
        {"type": "FeatureCollection", "features": features(rows)}
    ).encode(),
    "Parquet": parquet,
}


def files_of(seed: int, number: int) -> dict[str, str]:
    """Files of CSV."""
    days = enumerate(records_of(seed, number, op=False, unique=False), 1)
    return {f"2024-01-{day:02d} ü.csv": csv(rows).decode() for day, rows in days}


@contextmanager
def jobs_of(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int | None]]:
    """How many results each job for several files gave; `None`: they go one by one."""
    seen: list[int | None] = []
    work = SparkEngine._together

    def noted(self: SparkEngine, tasks: Any) -> Any:
        found = work(self, tasks)
        seen.append(None if found is None else len(found))
        return found

    monkeypatch.setattr(spark.SparkEngine, "_together", noted)
    yield seen


@pytest.fixture
def project(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    spark_engine: SparkEngine,
) -> Callable[[str, str, Mapping[str, str | bytes], int], Program]:
    """A project with a root over files, of which so many are read together."""
    share(spark_engine, monkeypatch)
    monkeypatch.setattr(Timestamp, "now", classmethod(lambda cls: NOW))

    def make(
        name: str, definition: str, files: Mapping[str, str | bytes], together: int
    ) -> Program:
        monkeypatch.setattr(planned_files, "_FILES", together)
        folder = tmp_path / name
        for sub in ("datasets", "data"):
            (folder / sub).mkdir(parents=True)
        (folder / "odfbuild.yaml").write_text(
            "kind: Project\nversion: 1\ncontent:\n  name: together\n"
        )
        (folder / "datasets/r.yaml").write_text(definition)
        for file, text in files.items():
            (folder / "data" / file).write_bytes(text.encode() if isinstance(text, str) else text)
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


_KEYED = "{}\n        primaryKey: [id]"
_CSV = "Csv\n        header: true"


@pytest.mark.parametrize(
    ("merge", "read", "preprocess"),
    [
        ("Append", _CSV, _PREPROCESS),
        ("Append", "Json", ""),
        ("Append", "GeoJson", ""),
        ("Append", "NdGeoJson", ""),
        ("Ledger\n        primaryKey: [id, x]", _CSV, ""),
        (_KEYED.format("Ledger"), "NdJson", ""),
        (_KEYED.format("ChangelogStream"), "Parquet", ""),
        (_KEYED.format("UpsertStream"), _CSV, ""),
        (_KEYED.format("Snapshot"), "NdJson", ""),
    ],
    ids=lambda value: value.split()[0] if value else "",
)
def test_files_read_in_one_job_give_the_blocks_that_they_give_one_by_one(
    project: Callable[..., Program],
    monkeypatch: pytest.MonkeyPatch,
    merge: str,
    read: str,
    preprocess: str,
) -> None:
    op = merge.startswith(("Changelog", "Upsert"))
    days = records_of(len(merge + read), 9, op=op, unique=merge.startswith("Snapshot"))
    if op:
        days = [rows or days[0] for rows in days]  # of none, CSV has not the column
    files = {f"2024-01-{day:02d} ü": FORMATS[read](rows) for day, rows in enumerate(days, 1)}
    definition = root(merge, preprocess, read, _DECLARED_WITH_OP if op else _DECLARED)
    alone = project("alone", definition, files, 1)
    alone.apply()
    together = project("together", definition, files, 5)
    with jobs_of(monkeypatch) as jobs:
        together.apply()
    assert jobs == [5, 3]
    assert blocks(together) == blocks(alone)
    assert sum(event.new_data is not None for event in blocks(alone)) > 4


@pytest.mark.parametrize("read", [_CSV, f"{_CSV}\n        inferSchema: true", "NdJson"])
def test_files_that_declare_no_columns_give_the_blocks_that_they_give_one_by_one(
    project: Callable[..., Program], monkeypatch: pytest.MonkeyPatch, read: str
) -> None:
    full = {"event_time": "2024-03-01 10:00:00", "id": 7, "name": "a", "n": 1, "x": 1.5}
    days = records_of(3, 5, op=False, unique=False)
    write = FORMATS[read if read in FORMATS else _CSV]
    files = {f"2024-01-0{day}": write([full, *rows]) for day, rows in enumerate(days, 1)}
    definition = root(_KEYED.format("Ledger"), read=read, schema="")
    alone = project("alone", definition, files, 1)
    alone.apply()
    together = project("together", definition, files, 100)
    with jobs_of(monkeypatch) as jobs:
        together.apply()
    assert jobs == [4]
    assert blocks(together) == blocks(alone)


def test_files_of_parquet_with_other_columns_go_one_by_one(
    project: Callable[..., Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = parquet([{"event_time": None, "id": 1, "name": "a", "n": 1, "x": 1.0, "op": 0}])
    narrow = parquet([{"event_time": None, "id": 1, "name": "a", "n": 1, "x": 1.0}])
    files = {f"2024-01-0{day}": wide if day == 3 else narrow for day in range(1, 5)}
    program = project("wide", root("Append", read="Parquet"), files, 100)
    with jobs_of(monkeypatch) as jobs:
        program.apply()
    assert jobs == [None]
    assert len(blocks(program)) == 4


def test_a_snapshot_in_which_a_key_comes_twice_fails_and_keeps_those_before(
    project: Callable[..., Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    row = "2024-03-01 10:00:00,{},a,{},2\n"
    files = {
        f"2024-01-0{day}.csv": "event_time,id,name,n,x\n" + row.format(1, day)
        for day in range(1, 6)
    }
    files["2024-01-04.csv"] += row.format(1, 7)
    program = project("twice", root(_KEYED.format("Snapshot")), files, 100)
    with jobs_of(monkeypatch) as jobs:
        said = program("apply", "-y")
    assert jobs == [None]
    assert said.code == 4
    assert "E0460" in said.out + said.err
    assert "2024-01-04.csv" in said.out + said.err
    assert len(blocks(program)) == 3


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
    work = SparkEngine._together

    def then_edit(self: SparkEngine, tasks: Any) -> Any:
        found = work(self, tasks)
        last.write_text(last.read_text() + "2024-03-01 10:00:00,1,late,1,2\n")
        return found

    monkeypatch.setattr(spark.SparkEngine, "_together", then_edit)
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
