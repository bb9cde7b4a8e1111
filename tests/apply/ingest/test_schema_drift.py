"""A source with other columns than expected: an error with ways out, or what a policy says."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfbuild.engine.contract import Drift, Engine
from odfbuild.odf.model import (
    AddData,
    MergeStrategyChangelogStream,
    ReadStep,
    ReadStepCsv,
    ReadStepNdJson,
    ReadStepParquet,
    SetDataSchema,
    SqlQueryStep,
    TransformSql,
)
from odfbuild.report.outcome import render_dataset_outcome
from odfbuild.store.workspace import Workspace
from odfbuild.survey.outcome import Status
from tests.apply.in_process import Program, share
from tests.apply.ingesting import create, ingest_into
from tests.apply.tiny import Tiny

pytestmark = pytest.mark.spark

BEFORE = b'{"id": 1, "v": 1.5, "n": "x"}\n'
OTHER = b'{"extra": true, "id": "2", "v": 2}\n'


def records(space: Workspace) -> list[dict[str, Any]]:
    """Data columns of all records."""
    hidden = ["offset", "op", "system_time", "event_time"]
    found: list[dict[str, Any]] = []
    for file in space.committed("d", space.projection("d")).files():
        found += pq.ParquetFile(file).read().drop_columns(hidden).to_pylist()
    return found


def test_by_default_every_difference_is_an_error_that_leaves_the_chain_alone(
    tmp_path: Path, spark_engine: Engine
) -> None:
    space = create(tmp_path, ReadStepNdJson())
    assert ingest_into(space, spark_engine, BEFORE).records == 1
    head = space.dataset("d").head()
    cases = {
        b'{"id": "a", "v": "b", "n": "c"}\n': (
            "E0432",
            "column 'id' is STRING in '{file}' and BIGINT in the dataset 'd'",
            "column 'v' is STRING in '{file}' and DOUBLE in the dataset 'd'",
        ),
        b'{"id": 2}\n': ("E0521", "column 'v' is missing", "column 'n' is missing"),
        b'{"id": 2, "v": 0.5, "n": "x", "a": 1, "b": 2}\n': ("E0522", "did not have: a, b"),
    }
    for data, (code, *said) in cases.items():
        error = ingest_into(space, spark_engine, data).error
        assert error is not None
        assert error.code == code
        text = "\n".join([error.message, *error.notes])
        for each in said:
            assert each.format(file=space.state / "batch") in text
        assert error.help is not None
        assert "ingest.onSchemaChange: {d: ignore}" in error.help
        assert space.dataset("d").head() == head


def test_known_columns_go_on_and_new_ones_are_left_out(
    tmp_path: Path, spark_engine: Engine
) -> None:
    space = create(tmp_path, ReadStepNdJson())
    ingest_into(space, spark_engine, BEFORE)
    outcome = ingest_into(space, spark_engine, OTHER, on_schema_change="ignore")
    assert outcome.status is Status.COMMITTED, outcome.error
    assert outcome.drift == Drift(
        ("extra",), ("n",), ("id: STRING, not BIGINT", "v: BIGINT, not DOUBLE")
    )
    assert records(space)[1:] == [{"id": 2, "v": 2.0, "n": None}]
    shown = render_dataset_outcome(outcome)
    assert "             new in the source: extra\n             missing in the source: n\n" in shown
    # What has no counterpart is a bad record, also where a cast would round it.
    for data, line in ((b'{"id": "2"}\n{"id": "two"}\n', 2), (b'{"id": 1.5}\n', 1)):
        error = ingest_into(space, spark_engine, data, on_schema_change="ignore").error
        assert error is not None
        assert (error.code, error.location and error.location.line) == ("E0421", line)
        assert "in column 'id' is not BIGINT" in error.message
    outcome = ingest_into(
        space,
        spark_engine,
        b'{"id": "3"}\n{"id": "three"}\n',
        on_schema_change="ignore",
        skip_bad_records=True,
    )
    assert (outcome.records, outcome.skipped.total) == (1, 1)
    # A type that cannot be converted at all stays an error.
    error = ingest_into(space, spark_engine, b'{"v": [1]}', on_schema_change="ignore").error
    assert error is not None
    assert error.code == "E0432"


def test_new_columns_are_appended_on_request(tmp_path: Path, spark_engine: Engine) -> None:
    space = create(tmp_path, ReadStepNdJson())
    ingest_into(space, spark_engine, BEFORE)
    outcome = ingest_into(space, spark_engine, OTHER, on_schema_change="append_new_columns")
    assert (outcome.blocks, outcome.error) == (2, None)
    assert records(space)[1:] == [{"id": 2, "v": 2.0, "n": None, "extra": True}]
    outcome = ingest_into(space, spark_engine, BEFORE, on_schema_change="append_new_columns")
    assert outcome.drift == Drift((), ("extra",))
    head = space.dataset("d").head()
    assert head is not None
    events = [type(block.event) for _, block in space.dataset("d").walk(head)][::-1]
    assert events[2:] == [SetDataSchema, AddData, SetDataSchema, AddData, AddData]


def test_a_query_gives_the_columns_that_count(tmp_path: Path, spark_engine: Engine) -> None:
    query = SqlQueryStep(query="SELECT *, id + 1 AS next FROM input")
    query_of_all = TransformSql(engine="spark", queries=(query,))
    space = create(tmp_path, ReadStepNdJson(), preprocess=query_of_all)
    ingest_into(space, spark_engine, BEFORE)
    more = b'{"id": 2, "a": 1}\n'
    outcome = ingest_into(space, spark_engine, more, on_schema_change="ignore")
    assert outcome.drift == Drift(("a",), ("v", "n"))
    assert records(space)[1:] == [{"id": 2, "v": None, "n": None, "next": 3}]
    # What a query does to types is its own affair.
    error = ingest_into(space, spark_engine, b'{"id": 2.5}\n', on_schema_change="ignore").error
    assert error is not None
    assert error.code == "E0432"
    assert error.help == "convert it back in `preprocess`, or define a new dataset, 'd.v2'"


COLUMNS = ("id BIGINT NOT NULL", "v INT", "n STRING")


def parquet(**columns: list[Any]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


DECLARED: dict[str, tuple[ReadStep, bytes, bytes, Drift]] = {
    "Csv": (
        ReadStepCsv(ddl_schema=COLUMNS, header=True),
        b"id,v,n\n1,1,x\n",
        b"more,V,id,\nm,2,2,\n",
        Drift(("more", "column 4"), ("n",)),
    ),
    "Parquet": (
        ReadStepParquet(ddl_schema=COLUMNS),
        parquet(id=[1], v=[1], n=["x"]),
        parquet(more=["m"], v=[2], id=[2]),
        Drift((), ("n",)),
    ),
}


@pytest.mark.parametrize("kind", DECLARED)
def test_declared_columns_are_found_by_name(
    tmp_path: Path, spark_engine: Engine, kind: str
) -> None:
    read, before, other, drift = DECLARED[kind]
    space = create(tmp_path, read)
    ingest_into(space, spark_engine, before)
    error = ingest_into(space, spark_engine, other).error
    assert error is not None
    assert error.code == "E0420"
    assert "ingest.onSchemaChange: {d: ignore}" in (error.help or "")
    assert ("`_ STRING`" in (error.help or "")) == (kind == "Csv")
    for policy in ("ignore", "append_new_columns"):
        outcome = ingest_into(space, spark_engine, other, on_schema_change=policy)
        assert (outcome.error, outcome.drift) == (None, drift)
        assert records(space)[-1] == {"id": 2, "v": 2, "n": None}
    lost = b"v,n\n1,x\n" if kind == "Csv" else parquet(v=[1], n=["x"])
    error = ingest_into(space, spark_engine, lost, on_schema_change="ignore").error
    assert error is not None
    assert "has no column 'id'" in error.message
    if kind == "Csv":
        # A bad cell is found where it stands in the file.
        bad = ingest_into(space, spark_engine, b"v,id\n1,1\nx,2\n", on_schema_change="ignore").error
        assert bad is not None
        assert bad.location is not None
        assert (bad.code, bad.location.line, bad.location.column) == ("E0421", 3, 1)


def test_columns_with_system_names_and_times_drift_like_others(
    tmp_path: Path, spark_engine: Engine
) -> None:
    space = create(tmp_path, ReadStepNdJson())
    first = b'{"event_time": "2024-01-01T00:00:00Z", "offset": 5, "v": 1}\n'
    ingest_into(space, spark_engine, first)
    second = b'{"op": 1, "event_time": 1704067200, "offset": "6"}\n'
    outcome = ingest_into(space, spark_engine, second, on_schema_change="append_new_columns")
    assert outcome.error is None
    assert outcome.drift == Drift(("op",), ("v",), ("offset: STRING, not BIGINT",))
    assert records(space)[1:] == [{"_offset": 6, "v": None, "_op": 1}]

    changes = create(
        tmp_path / "c", ReadStepNdJson(), MergeStrategyChangelogStream(primary_key=("id",))
    )
    ingest_into(changes, spark_engine, b'{"op": 0, "id": 1, "v": 1}\n')
    outcome = ingest_into(
        changes, spark_engine, b'{"id": 1, "op": 1, "w": 1}\n', on_schema_change="ignore"
    )
    assert (outcome.error, outcome.drift) == (None, Drift(("w",), ("v",)))


def test_the_policy_of_a_dataset_is_the_last_pattern_that_matches(
    tmp_path: Path,
    spark_engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    tiny = Tiny.fresh(tmp_path / "p")
    share(spark_engine, monkeypatch)
    odfbuild = Program(tiny.root, monkeypatch, capsys)
    odfbuild.apply()
    (tiny.root / "data" / "2.csv").write_text("id,event_time,note\n9,2024-02-02 00:00:00,x\n")
    refused = odfbuild("apply", "-y")
    assert (refused.code, "error[E0420]" in refused.err) == (1, True)
    assert "ingest.onSchemaChange: {root: ignore}" in refused.err
    config = tiny.root / "odfbuild.yaml"
    text = config.read_text()
    config.write_text(text + "  ingest: {onSchemaChange: {'*': ignore, root: fail}}\n")
    assert odfbuild("apply", "-y").code == 1
    config.write_text(text + "  ingest: {onSchemaChange: {'*': drop}}\n")
    wrong = odfbuild("plan")
    assert wrong.code != 0
    assert "expected one of fail, ignore, append_new_columns; found the string 'drop'" in wrong.err
    config.write_text(text + "  ingest: {onSchemaChange: {'*': fail, 'ro*': ignore}}\n")
    done = odfbuild.ok("apply", "-y", "--json").data["datasets"]
    assert {d["name"]: d["drift"] for d in done} == {
        "root": {"new": ["note"], "missing": ["value"], "retyped": []},
        "derived": {"new": [], "missing": [], "retyped": []},
    }
    assert tiny.records("root")[-1]["id"] == 9
