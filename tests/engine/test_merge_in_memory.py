"""Small files that are read and merged without Spark: what Spark gives, or nothing."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odfbuild.engine.contract import EngineResult, IngestTask
from odfbuild.engine.spark import engine as spark
from odfbuild.engine.spark.engine import SparkEngine
from odfbuild.engine.spark.merging import in_memory
from odfbuild.engine.spark.merging.in_memory import merge_in_memory
from odfbuild.engine.spark.reading.plain_records import plain_records
from odfbuild.fallbacks import STRICT
from odfbuild.odf.model import (
    MergeStrategy,
    MergeStrategyAppend,
    MergeStrategyChangelogStream,
    MergeStrategyLedger,
    MergeStrategySnapshot,
    MergeStrategyUpsertStream,
    ReadStep,
    ReadStepCsv,
    ReadStepNdJson,
)
from odfbuild.odf.schema.arrow_schema import declared_columns
from odfbuild.odf.vocabulary import Vocabulary
from tests.ingest.merge_model import merge
from tests.ingest.run_ingest import LATE, OneFile, ingest, write_history

KEY = ("k", "n")
MERGES: dict[str, MergeStrategy] = {
    "Append": MergeStrategyAppend(),
    "Ledger": MergeStrategyLedger(primary_key=KEY),
    "Snapshot": MergeStrategySnapshot(primary_key=KEY),
    "UpsertStream": MergeStrategyUpsertStream(primary_key=KEY),
    "ChangelogStream": MergeStrategyChangelogStream(primary_key=KEY),
}
WITH_OPERATIONS = ("UpsertStream", "ChangelogStream")
COLUMNS = ("event_time TIMESTAMP", "k STRING", "n INT", "v BIGINT", "w DECIMAL(5, 2)")


def task_of(
    file: Path, read: ReadStep, strategy: MergeStrategy, history: Path | None = None, **more: Any
) -> IngestTask:
    return IngestTask(
        dataset="tests",
        file=file,
        source_name=file.name,
        read=read,
        preprocess=None,
        merge=strategy,
        vocab=Vocabulary(),
        history=OneFile(history),
        history_schema=pq.read_schema(history) if history else None,
        event_time=LATE,
        scratch=file.parent,
        **more,
    )


def csv_of(rows: list[dict[str, Any]], names: list[str]) -> str:
    """Rows as CSV with a header, null as nothing."""

    def cell(value: Any) -> str:
        if isinstance(value, datetime):
            return f"{value:%Y-%m-%d %H:%M:%S}"
        if isinstance(value, bool):
            return str(value).lower()
        return "" if value is None else str(value)

    lines = [",".join(names), *(",".join(cell(row[name]) for name in names) for row in rows)]
    return "\n".join(lines) + "\n"


def records(strategy: str) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Rows of a file; keys come again, but not in snapshots."""
    days = [datetime(2020, 1, day, tzinfo=UTC) for day in (1, 2)]
    row = st.fixed_dictionaries(
        {
            "event_time": st.sampled_from(days),
            "k": st.sampled_from(["a", "b", None]),
            "n": st.sampled_from([1, 2]),
            "v": st.sampled_from([None, 1, 2]),
            "w": st.sampled_from([None, 1]),
            "op": st.sampled_from([0, 0, 1, 2, 3] if strategy == "ChangelogStream" else [0, 0, 1]),
        }
    )
    unique = (lambda each: (each["k"], each["n"])) if strategy == "Snapshot" else None
    return st.lists(row, max_size=6, unique_by=unique)


@settings(deadline=None, max_examples=60)
@given(st.data())
@pytest.mark.parametrize("strategy", [*MERGES])
def test_small_files_are_merged_as_a_plain_model_does_it(
    strategy: str, data: st.DataObject
) -> None:
    history: list[dict[str, Any]] = []
    with_operations = strategy in WITH_OPERATIONS
    columns = (*COLUMNS, "op INT") if with_operations else COLUMNS
    names = [each.split()[0] for each in columns]
    with TemporaryDirectory() as folder:
        committed: Path | None = None
        before: list[pa.Table] = []
        for turn in range(3):
            batch = data.draw(records(strategy))
            if not with_operations:
                batch = [{**row, "op": 0} for row in batch]
            file = Path(folder) / f"{turn}.csv"
            file.write_text(csv_of(batch, names))
            read = ReadStepCsv(header=True, ddl_schema=columns)
            found = merge_in_memory(task_of(file, read, MERGES[strategy], committed))
            assert found is not None
            wanted = merge(strategy, history, batch, key=[*KEY])
            assert found.rows is not None
            assert found.rows.select(["op", *names[:5]]).to_pylist() == [
                {name: row[name] for name in ("op", *names[:5])} for row in wanted
            ]
            history += wanted
            before.append(as_committed(found))
            whole = pa.concat_tables(before)
            committed = write_history(Path(folder) / f"history{turn}.parquet", whole)


def as_committed(result: EngineResult) -> pa.Table:
    assert result.rows is not None
    assert result.schema is not None
    return result.rows.select(result.schema.names).cast(result.schema)


# --- Beside Spark ---


TYPES = {
    "event_time": "TIMESTAMP",
    "k": "STRING",
    "n": "INT",
    "small": "SMALLINT",
    "flag": "BOOLEAN",
    "day": "DATE",
    "fine": "TIMESTAMP(6)",
    "x": "DOUBLE",
    "money": "DECIMAL(12, 2)",
}


def some(chance: random.Random, at: int) -> dict[str, Any]:
    """A row with values at the edges of what is read without Spark."""
    return {
        "event_time": datetime(2020, 1, 1 + chance.randrange(3), 4, 5, 6, tzinfo=UTC),
        "k": chance.choice(["a", "B", "ä ö", "x'y", "true", "-1.50", "𝄞"]) + str(at // 2),
        "n": chance.choice([0, -1, 2**31 - 1, -(2**31)]),
        "small": chance.choice([None, 0, 32767, -32768]),
        "flag": chance.choice([None, True, False]),
        "day": chance.choice([None, "1600-02-29", "2999-12-31", "2024-12-30"]),
        "fine": chance.choice([None, datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)]),
        "x": chance.choice([None, 0, 0.1, -9999999.999999, 1.5, 0.0001, 123456]),
        "money": chance.choice([None, "0", "-0.5", "9999999999.99", "7.1"]),
    }


@pytest.mark.spark
@pytest.mark.parametrize("form", ["csv", "json"])
@pytest.mark.parametrize("strategy", [*MERGES])
def test_small_files_give_the_records_and_the_schema_that_spark_gives(
    strategy: str,
    form: str,
    tmp_path: Path,
    spark_engine: SparkEngine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chance = random.Random(f"{strategy} {form}")
    types = TYPES | ({"op": "INT"} if strategy in WITH_OPERATIONS else {})
    if form == "json":
        types.pop("money")
    ddl = tuple(f"{name} {kind}" for name, kind in types.items())
    read = (
        ReadStepCsv(header=True, ddl_schema=ddl)
        if form == "csv"
        else ReadStepNdJson(ddl_schema=ddl)
    )
    history: Path | None = None
    for turn in range(2):
        rows = [some(chance, at) | {"op": chance.choice([0, 0, 1])} for at in range(24)]
        if strategy == "Snapshot":
            rows = [*{(row["k"], row["n"]): row for row in rows}.values()]
        file = tmp_path / f"{turn}.{form}"
        file.write_text(csv_of(rows, [*types]) if form == "csv" else json_of(rows, [*types]))
        taken: list[bool] = []

        def noted(task: IngestTask, taken: list[bool] = taken) -> EngineResult | None:
            found = merge_in_memory(task)
            taken.append(found is not None)
            return found

        given_to = [noted, lambda task: None]
        found = []
        for way in given_to:
            monkeypatch.setattr(spark, "merge_in_memory", way)
            result, table = ingest(
                spark_engine, tmp_path, file, read, MERGES[strategy], history=history
            )
            assert result.schema is not None
            found.append((result.schema, result.warnings, table.cast(result.schema).to_pylist()))
        assert taken == [True]
        assert found[0] == found[1]
        whole = pa.Table.from_pylist(found[0][2], found[0][0])
        before = [] if history is None else [pq.read_table(history, columns=whole.column_names)]
        history = write_history(
            tmp_path / f"history{turn}.parquet", pa.concat_tables([*before, whole])
        )


def json_of(rows: list[dict[str, Any]], names: list[str]) -> str:
    """Rows as lines of JSON; every other null is left out."""
    lines = []
    for at, row in enumerate(rows):
        kept = {name: row[name] for name in names if row[name] is not None or at % 2}
        for name, value in kept.items():
            if isinstance(value, datetime):
                kept[name] = f"{value:%Y-%m-%dT%H:%M:%SZ}"
            elif name == "x" and value is not None:
                kept[name] = float(value)
        lines.append(json.dumps(kept, ensure_ascii=False))
    return "\n".join(lines) + "\n"


# --- What is left to Spark ---


@pytest.mark.parametrize(
    ("kind", "cell"),
    [
        ("INT", "007"),
        ("INT", "1.0"),
        ("INT", " 1"),
        ("INT", "2147483648"),
        ("BIGINT", "1" * 40),
        ("DOUBLE", "1e3"),
        ("DOUBLE", "-0.0"),
        ("DOUBLE", "1d"),
        ("FLOAT", "1.5"),
        ("DECIMAL(4, 2)", "1.234"),
        ("DECIMAL(4, 2)", "123.4"),
        ("BOOLEAN", "True"),
        ("DATE", "2024-02-30"),
        ("DATE", "2024-1-3"),
        ("TIMESTAMP", "2024-01-01"),
        ("TIMESTAMP", "2024-01-01 24:00:00"),
        ("TIMESTAMP", "2024-01-01 10:00:00.1234"),
        ("TIMESTAMP", "2024-01-01 10:00:00 Europe/Berlin"),
        ("STRING", '"a"b'),
        ("STRING", 'a"b"'),
        ("STRING", '"a\nb"'),
        ("STRING", '" a"'),
        ("INT", '"007"'),
        ("STRING", "a "),
        ("STRING", "a\\b"),
        ("STRING", "a\rb"),
        ("STRING", "a\x01b"),
        ("STRING NOT NULL", ""),
    ],
)
def test_a_file_with_a_value_that_could_mean_something_else_is_left_to_spark(
    kind: str, cell: str, tmp_path: Path
) -> None:
    assert read_plainly(tmp_path, kind, f"event_time,x,y\n2024-01-01 00:00:00,{cell},1\n") is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\ufeffevent_time,x,y\n",
        "event_time,y,x\n2024-01-01 00:00:00,1,1\n",
        "event_time,x,y\n2024-01-01 00:00:00,1\n",
        "event_time,x,y\n\n2024-01-01 00:00:00,1,1\n",
        "event_time,x,y\n,,\n",
    ],
)
def test_a_file_of_another_form_is_left_to_spark(text: str, tmp_path: Path) -> None:
    assert read_plainly(tmp_path, "INT", text) is None


def test_values_in_their_plain_form_are_read(tmp_path: Path) -> None:
    text = 'event_time,"x",y\r\n2024-01-01 00:00:00,"",1\r\n'
    found = read_plainly(tmp_path, "INT", text)
    assert found == read_plainly(tmp_path, "INT", text.replace('"', "").replace("\r", ""))
    assert found is not None
    assert found.to_pylist() == [
        {"event_time": datetime(2024, 1, 1, tzinfo=UTC), "x": None, "y": 1}
    ]


def read_plainly(folder: Path, kind: str, text: str) -> pa.Table | None:
    file = folder / "some.csv"
    file.write_text(text, newline="")
    read = ReadStepCsv(header=True, ddl_schema=("event_time TIMESTAMP", f"x {kind}", "y INT"))
    columns = declared_columns(read)
    assert columns is not None
    return plain_records(task_of(file, read, MERGES["Append"]), columns)


@pytest.mark.parametrize(
    "more",
    [{"on_schema_change": "ignore"}, {"skip_bad_records": True}, {"of_changes": True}],
)
def test_what_policies_decide_is_left_to_spark(more: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "some.csv"
    file.write_text("event_time,x\n2024-01-01 00:00:00,1\n")
    read = ReadStepCsv(header=True, ddl_schema=("event_time TIMESTAMP", "x INT"))
    assert merge_in_memory(task_of(file, read, MERGES["Append"])) is not None
    assert merge_in_memory(task_of(file, read, MERGES["Append"], **more)) is None


def test_a_short_way_that_breaks_leaves_the_file_to_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(in_memory, "plain_records", broken)
    file = tmp_path / "some.csv"
    file.write_text("event_time,x\n2024-01-01 00:00:00,1\n")
    read = ReadStepCsv(header=True, ddl_schema=("event_time TIMESTAMP", "x INT"))
    task = task_of(file, read, MERGES["Append"])
    with pytest.raises(RuntimeError, match="broken"):
        merge_in_memory(task)
    monkeypatch.delenv(STRICT)
    assert merge_in_memory(task) is None


@pytest.mark.parametrize(
    ("columns", "rows"),
    [
        (("event_time TIMESTAMP", "k STRING", "n INT"), "2024-01-01 00:00:00,a,1\n" * 2),
        (("event_time TIMESTAMP", "k STRING", "n INT"), ",a,1\n"),
        (("event_time TIMESTAMP", "k STRING", "n DOUBLE"), "2024-01-01 00:00:00,a,1\n"),
        (("event_time TIMESTAMP", "k STRING", "N INT"), "2024-01-01 00:00:00,a,1\n"),
        (("event_time TIMESTAMP", "k STRING", "n INT", "op INT"), "2024-01-01 00:00:00,a,1,0\n"),
        (("event_time INT", "k STRING", "n INT"), "1,a,1\n"),
    ],
    ids=["repeated-key", "no-time", "float-key", "no-key", "reserved", "time-of-another-type"],
)
def test_what_spark_has_to_say_something_about_is_left_to_it(
    columns: tuple[str, ...], rows: str, tmp_path: Path
) -> None:
    file = tmp_path / "some.csv"
    file.write_text(",".join(each.split()[0] for each in columns) + "\n" + rows)
    read = ReadStepCsv(header=True, ddl_schema=columns)
    assert merge_in_memory(task_of(file, read, MERGES["Snapshot"])) is None
