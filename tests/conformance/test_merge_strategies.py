"""Family `merge_strategies`: a batch merged with history, through Spark and through a model."""

from datetime import date

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfbuild.engine.contract import Vocabulary
from odfbuild.engine.spark.frames import read_slices
from odfbuild.engine.spark.merge_changes import project
from odfbuild.errors import IngestError
from odfbuild.odf.model import (
    MergeStrategyAppend,
    MergeStrategyChangelogStream,
    MergeStrategyLedger,
    MergeStrategySnapshot,
    MergeStrategyUpsertStream,
)
from tests.conformance.vectors import cases
from tests.ingest import merge_model
from tests.ingest.run_ingest import ingest, write_history

OPS = {"+A": 0, "-R": 1, "-C": 2, "+C": 3}
NEVER_LOST = {
    "merge/snapshot/quirk-all-null-append-dropped": [["+A", None, "ghost", None]],
    "merge/upsertstream/quirk-all-null-append-dropped": [["+A", None, "ghost", None]],
}
"""What we record where the reference loses a row (docs/compatibility.md)."""


def _strategy(case):
    key = tuple(case.get("primary_key") or ())
    match case.get("strategy"):
        case "Append":
            return MergeStrategyAppend()
        case "Ledger":
            return MergeStrategyLedger(primary_key=key)
        case "Snapshot":
            compare = case.get("compare_columns")
            return MergeStrategySnapshot(
                primary_key=key, compare_columns=None if compare is None else tuple(compare)
            )
        case "ChangelogStream":
            return MergeStrategyChangelogStream(primary_key=key)
        case "UpsertStream":
            return MergeStrategyUpsertStream(primary_key=key)
    raise AssertionError(f"a strategy that is not known: {case['strategy']}")


def _table(case, table, event_time):
    """Rows as Arrow; event times, which the cases give as years, become dates."""
    columns = {}
    for index, name in enumerate(table["columns"]):
        values = [row[index] for row in table["rows"]]
        if name == "op":
            columns[name] = pa.array([OPS[v] for v in values], pa.int32())
        elif name == event_time:
            days = [
                v if v is None else date(v, 1, 1) if isinstance(v, int) else date.fromisoformat(v)
                for v in values
            ]
            columns[name] = pa.array(days, pa.date32())
        elif name == "offset":
            continue
        else:
            columns[name] = pa.array(values, _type(case, name))
    return pa.table(columns)


def _type(case, name):
    for table in (case.get("prev"), case.get("new"), case.get("ledger")):
        for row in table["rows"] if table else ():
            if name in table["columns"]:
                value = row[table["columns"].index(name)]
                if value is not None:
                    return pa.int32() if isinstance(value, int) else pa.string()
    return pa.int32()


MERGES = [one for one in cases("merge_strategies") if one.values[0] and "strategy" in one.values[0]]
PROJECTIONS = [one for one in cases("merge_strategies") if one not in MERGES]


@pytest.mark.spark
@pytest.mark.parametrize("case", PROJECTIONS)
def test_a_ledger_projects_to_the_state_that_the_reference_finds(case, spark_engine, tmp_path):
    ledger, expected = case["ledger"], case["expected"]
    history = write_history(tmp_path / "ledger.parquet", _table(case, ledger, "year"), Vocabulary())
    schema = pq.read_schema(history)
    with spark_engine.request("tests") as spark:
        records = read_slices(spark, [history], schema, Vocabulary())
        state = project(records, case["primary_key"], Vocabulary())
        found = state.select(*expected["columns"]).toArrow().to_pylist()
    wanted = _table(case, expected, "year").to_pylist()
    assert sorted(found, key=repr) == sorted(wanted, key=repr)


@pytest.mark.spark
@pytest.mark.parametrize("case", MERGES)
def test_a_batch_merges_as_the_reference_merges_it(case, spark_engine, tmp_path):
    strategy = _strategy(case)
    event_time = case["event_time_column"]
    vocab = Vocabulary(event_time=event_time)
    source = tmp_path / "new.parquet"
    pq.write_table(_table(case, case["new"], event_time), source)
    history = None
    if case["prev"] is not None and case["prev"]["rows"]:
        prev = _table(case, case["prev"], event_time)
        if event_time not in prev.column_names:
            nulls = pa.nulls(prev.num_rows, pa.timestamp("ms", "UTC"))
            prev = prev.append_column(event_time, nulls)
        history = write_history(tmp_path / "prev.parquet", prev, vocab)
    if "expected_error" in case:
        with pytest.raises(IngestError) as caught:
            ingest(spark_engine, tmp_path, source, None, strategy, vocab, history)
        assert caught.value.help
        return
    _, found = ingest(spark_engine, tmp_path, source, None, strategy, vocab, history)
    expected = case["expected"]
    if "quirk" in case["features"]:
        expected = {**expected, "rows": NEVER_LOST[case["id"]]}
    names = expected["columns"]
    wanted = _table(case, expected, event_time).to_pylist()
    rows = [{name: row[name] for name in names} for row in found.to_pylist()]
    for one, row in zip(wanted, rows, strict=False):
        if event_time in one and one[event_time] is None:
            one[event_time] = row[event_time]  # merging fills in the event time of the source
    if case.get("ordered"):
        assert rows == wanted
    else:
        assert sorted(rows, key=repr) == sorted(wanted, key=repr)


@pytest.mark.parametrize("case", [one for one in MERGES if "expected" in one.values[0]])
def test_the_model_agrees_with_the_reference(case):
    event_time = case["event_time_column"]
    tables = {
        name: _table(case, case[name], event_time).to_pylist() if case[name] else []
        for name in ("prev", "new", "expected")
    }
    for row in (*tables["prev"], *tables["new"]):
        row.setdefault(event_time, None)
    if "quirk" in case["features"]:
        lost = {**case["expected"], "rows": NEVER_LOST[case["id"]]}
        tables["expected"] = _table(case, lost, event_time).to_pylist()
    found = merge_model.merge(
        case["strategy"],
        tables["prev"],
        tables["new"],
        key=case.get("primary_key") or [],
        compare=case.get("compare_columns"),
        event_time=event_time,
        fallback=date(2050, 1, 1),
    )
    rows = [{name: row[name] for name in case["expected"]["columns"]} for row in found]
    for wanted, row in zip(tables["expected"], rows, strict=False):
        if event_time in wanted and wanted[event_time] is None:
            wanted[event_time] = row[event_time]
    if case.get("ordered"):
        assert rows == tables["expected"]
    else:
        assert sorted(rows, key=repr) == sorted(tables["expected"], key=repr)
