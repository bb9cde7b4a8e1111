"""Merges against a naive model: values with NULLs anywhere, also in keys, and duplicate keys."""

import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odfbuild.errors import IngestError
from odfbuild.odf.model import (
    MergeStrategyLedger,
    MergeStrategySnapshot,
    ReadStepCsv,
    SqlQueryStep,
    TransformSql,
)
from tests.ingest.run_ingest import ingest, write_history

pytestmark = pytest.mark.spark

CSV = ReadStepCsv(ddl_schema=("k STRING", "v INT", "t TIMESTAMP"), header=True)
rows = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c", None]), st.sampled_from([1, 2, None])), max_size=6
)
seldom = settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def _file(folder, name, batch):
    keys, values = [k for k, _ in batch], [v for _, v in batch]
    table = pa.table({"k": pa.array(keys, pa.string()), "v": pa.array(values, pa.int32())})
    pq.write_table(table, folder / name)
    return folder / name


def _rows(table):
    return [(r["op"], r["k"], r["v"]) for r in table.to_pylist()]


def _snapshot(history, batch):
    state = {}
    for op, k, v in history:
        if op == 1:
            state.pop(k, None)
        else:
            state[k] = v
    found = []
    for k, v in batch:
        if k not in state:
            found.append((0, k, v))
        elif state[k] != v:
            found += [(2, k, state[k]), (3, k, v)]
    found += [(1, k, v) for k, v in state.items() if k not in {k for k, _ in batch}]
    return sorted(found, key=lambda r: (r[1] is not None, r[1] or "", r[0]))


@seldom
@given(rows, rows)
def test_a_snapshot_records_what_the_model_records(spark_engine, first, second):
    folder = Path(tempfile.mkdtemp())
    merge = MergeStrategySnapshot(primary_key=("k",))
    _, one = ingest(spark_engine, folder, _file(folder, "one", first), merge=merge)
    assert _rows(one) == _snapshot([], first)
    history = write_history(folder / "history", one) if one.num_rows else None
    _, two = ingest(
        spark_engine, folder, _file(folder, "two", second), merge=merge, history=history
    )
    assert _rows(two) == _snapshot(_rows(one), second)


@seldom
@given(rows, rows)
def test_a_ledger_appends_keys_that_were_never_seen(spark_engine, first, second):
    folder = Path(tempfile.mkdtemp())
    merge = MergeStrategyLedger(primary_key=("k",))
    _, one = ingest(spark_engine, folder, _file(folder, "one", first), merge=merge)
    assert _rows(one) == [(0, k, v) for k, v in first]
    history = write_history(folder / "history", one) if one.num_rows else None
    _, two = ingest(
        spark_engine, folder, _file(folder, "two", second), merge=merge, history=history
    )
    seen = {k for k, _ in first}
    assert _rows(two) == [(0, k, v) for k, v in second if k not in seen]


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("k,v,t\na,1,\nb,x,\n", 3, "'x' in column 'v' is not INT"),
        ("k,v,t\na,1,,\n", 2, "4 cells where 3 are expected"),
        ("k,v,t\na\n", 2, "1 cells where 3 are expected"),
        ("k,t\na,\n", 1, "no column 'v'"),
        ("v,k,t\n1,a,\n", 1, "another order"),
        ("k,v,t\na,1,yesterday\n", 2, "'yesterday' in column 't' is not TIMESTAMP"),
    ],
)
def test_a_row_that_does_not_fit_is_named_with_its_line(spark_engine, tmp_path, text, line, said):
    file = tmp_path / "in.csv"
    file.write_text(text)
    # The query does not use the column that is wrong; the row is wrong all the same.
    query = TransformSql(engine="spark", queries=(SqlQueryStep(query="SELECT k FROM input"),))
    for preprocess in (None, query):
        with pytest.raises(IngestError) as caught:
            ingest(spark_engine, tmp_path, file, CSV, preprocess=preprocess)
        assert said in caught.value.message
        assert caught.value.location.line == line
        assert caught.value.help


def test_cells_are_read_as_the_specification_says(spark_engine, tmp_path):
    file = tmp_path / "in.csv"
    file.write_text('k,v,t\n"a ""b"", c",1,2020-01-01 01:02:03\n"",,\n')
    _, table = ingest(spark_engine, tmp_path, file, CSV)
    first, second = table.to_pylist()
    assert (first["k"], first["v"]) == ('a "b", c', 1)
    assert first["t"] == datetime(2020, 1, 1, 1, 2, 3, tzinfo=UTC)
    assert (second["k"], second["v"], second["t"]) == (None, None, None)


def test_a_key_that_the_data_has_not_is_explained(spark_engine, tmp_path):
    file = tmp_path / "in.csv"
    file.write_text("kay,v,t\na,1,\n")
    read = ReadStepCsv(ddl_schema=("kay STRING", "v INT", "t TIMESTAMP"), header=True)
    with pytest.raises(IngestError) as caught:
        merge = MergeStrategyLedger(primary_key=("key",))
        ingest(spark_engine, tmp_path, file, read, merge)
    assert caught.value.help == "did you mean 'kay'?"
