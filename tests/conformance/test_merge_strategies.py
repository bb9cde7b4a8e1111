"""Family `merge_strategies`: a batch merged with history, through Spark and through a model."""

from datetime import date, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfbuild.engine.spark.merging.changes import project
from odfbuild.engine.spark.results.frames import read_slices
from odfbuild.errors import IngestError
from odfbuild.odf.model import (
    MergeStrategyAppend,
    MergeStrategyChangelogStream,
    MergeStrategyLedger,
    MergeStrategySnapshot,
    MergeStrategyUpsertStream,
    ReadStepParquet,
)
from odfbuild.odf.schema.arrow_schema import to_odf
from odfbuild.odf.vocabulary import Vocabulary
from tests.conformance.vectors import cases
from tests.ingest import merge_model
from tests.ingest.run_ingest import ingest, write_history

OPS = {"+A": 0, "-R": 1, "-C": 2, "+C": 3}
NEVER_LOST = {
    "merge/snapshot/quirk-all-null-append-dropped": [["+A", None, "ghost", None]],
    "merge/upsertstream/quirk-all-null-append-dropped": [["+A", None, "ghost", None]],
}
"""What we record where the reference loses a row (docs/compatibility.md).

Other quirks are held against the model, which has none.
"""


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
    """Rows as Arrow by offset; event times, which the cases give as years, become dates."""
    names, rows = table["columns"], table["rows"]
    if "offset" in names:
        rows = sorted(rows, key=lambda row: row[names.index("offset")])
    columns = {}
    for index, name in enumerate(names):
        values = [row[index] for row in rows]
        if name == "op":
            columns[name] = pa.array([OPS[v] for v in values], pa.int32())
        elif name == event_time:
            columns[name] = pa.array([_time(v) for v in values], _type(case, name, _time))
        elif name != "offset":
            columns[name] = pa.array(values, _type(case, name))
    return pa.table(columns)


def _time(value):
    if isinstance(value, int):
        return date(value, 1, 1)
    if value is None:
        return None
    return datetime.fromisoformat(value) if len(value) > 10 else date.fromisoformat(value)


ARROW = {
    bool: pa.bool_(),
    int: pa.int32(),
    float: pa.float64(),
    str: pa.string(),
    date: pa.date32(),
    datetime: pa.timestamp("ms", "UTC"),
}


def _type(case, name, value_of=lambda value: value):
    """The type of a column, by its first value anywhere in the case."""
    for table in (case.get(each) for each in ("prev", "new", "ledger", "expected")):
        for row in table["rows"] if table and name in table["columns"] else ():
            value = value_of(row[table["columns"].index(name)])
            if value is not None:
                return ARROW[type(value)]
    return pa.date32() if value_of is _time else pa.int32()


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
    new = _table(case, case["new"], event_time)
    pq.write_table(new, source)
    # Declared, because what is not declared may be called like a system column.
    read = ReadStepParquet(schema=to_odf(new.schema))
    history = None
    if case.get("prev") and case["prev"]["rows"]:
        prev = _table(case, case["prev"], event_time)
        if event_time not in prev.column_names:
            nulls = pa.nulls(prev.num_rows, pa.timestamp("ms", "UTC"))
            prev = prev.append_column(event_time, nulls)
        history = write_history(tmp_path / "prev.parquet", prev, vocab)
    if "expected_error" in case:
        with pytest.raises(IngestError) as caught:
            ingest(spark_engine, tmp_path, source, read, strategy, vocab, history)
        assert caught.value.help
        return
    _, found = ingest(spark_engine, tmp_path, source, read, strategy, vocab, history)
    expected = case["expected"]
    names = [name for name in expected["columns"] if name != "offset"]
    if case["id"] in NEVER_LOST:
        expected = {**expected, "rows": NEVER_LOST[case["id"]]}
    wanted = _table(case, expected, event_time).to_pylist()
    if _is_other_quirk(case):
        wanted = [{name: row[name] for name in names} for row in _by_model(case)]
    rows = [{name: row[name] for name in names} for row in found.to_pylist()]
    for one, row in zip(wanted, rows, strict=False):
        if event_time in one and one[event_time] is None:
            one[event_time] = row[event_time]  # merging fills in the event time of the source
    if case.get("ordered"):
        assert rows == wanted
    else:
        assert sorted(rows, key=repr) == sorted(wanted, key=repr)


def _is_other_quirk(case):
    return "quirk" in case["features"] and case["id"] not in NEVER_LOST


def _by_model(case):
    event_time = case["event_time_column"]
    prev, new = (
        _table(case, case[name], event_time).to_pylist() if case.get(name) else []
        for name in ("prev", "new")
    )
    for row in (*prev, *new):
        row.setdefault(event_time, None)
    return merge_model.merge(
        case["strategy"],
        prev,
        new,
        key=case.get("primary_key") or [],
        compare=case.get("compare_columns"),
        event_time=event_time,
        fallback=date(2050, 1, 1),
    )


STATED = [one for one in MERGES if "expected" in one.values[0] and not _is_other_quirk(*one.values)]


@pytest.mark.parametrize("case", STATED)
def test_the_model_agrees_with_the_reference(case):
    event_time, expected = case["event_time_column"], case["expected"]
    if case["id"] in NEVER_LOST:
        expected = {**expected, "rows": NEVER_LOST[case["id"]]}
    stated = _table(case, expected, event_time).to_pylist()
    names = [name for name in expected["columns"] if name != "offset"]
    rows = [{name: row[name] for name in names} for row in _by_model(case)]
    for wanted, row in zip(stated, rows, strict=False):
        if event_time in wanted and wanted[event_time] is None:
            wanted[event_time] = row[event_time]
    if case.get("ordered"):
        assert rows == stated
    else:
        assert sorted(rows, key=repr) == sorted(stated, key=repr)
