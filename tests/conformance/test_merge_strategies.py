"""Family `merge_strategies`: a batch merged with history, through Spark."""

from datetime import date

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfbuild.engine.contract import Vocabulary
from odfbuild.errors import IngestError
from odfbuild.odf.model import (
    MergeStrategyAppend,
    MergeStrategyLedger,
    MergeStrategySnapshot,
)
from tests.conformance.vectors import cases
from tests.ingest.run_ingest import ingest, write_history

pytestmark = pytest.mark.spark

OPS = {"+A": 0, "-R": 1, "-C": 2, "+C": 3}
FALLBACK = "fallback"


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
    return None


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
    for table in (case["prev"], case["new"]):
        for row in table["rows"] if table else ():
            if name in table["columns"]:
                value = row[table["columns"].index(name)]
                if value is not None:
                    return pa.int32() if isinstance(value, int) else pa.string()
    return pa.int32()


@pytest.mark.parametrize("case", cases("merge_strategies"))
def test_a_batch_merges_as_the_reference_merges_it(case, spark_engine, tmp_path):
    if case.get("operation") == "project":
        pytest.skip("projecting a ledger to its state is not an operation of this version")
    strategy = _strategy(case)
    if strategy is None:
        pytest.skip(f"the merge strategy {case['strategy']} is not supported by this version")
    if "quirk" in case["features"]:
        pytest.xfail("a record whose values are all null is neither lost nor repeated here")
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
