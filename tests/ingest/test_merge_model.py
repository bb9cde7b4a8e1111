"""Merges have the properties that people count on, and Spark merges as a plain model does."""

import itertools
import random
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odfbuild.engine.spark.merging.changes import project as project_frame
from odfbuild.engine.spark.results.frames import read_slices
from odfbuild.errors import IngestError
from odfbuild.odf.model import (
    MergeStrategy,
    MergeStrategyAppend,
    MergeStrategyChangelogStream,
    MergeStrategyLedger,
    MergeStrategySnapshot,
    MergeStrategyUpsertStream,
    ReadStepCsv,
    SqlQueryStep,
    TransformSql,
)
from odfbuild.odf.vocabulary import Vocabulary
from tests.ingest.merge_model import merge, project
from tests.ingest.run_ingest import LATE, ingest, write_history

CSV = ReadStepCsv(ddl_schema=("k STRING", "v INT", "t TIMESTAMP"), header=True)
KEY = ["k", "n"]
FALLBACK = datetime.fromtimestamp(LATE.millis / 1000, UTC)
STRATEGIES: dict[str, MergeStrategy] = {
    "Append": MergeStrategyAppend(),
    "Ledger": MergeStrategyLedger(primary_key=tuple(KEY)),
    "Snapshot": MergeStrategySnapshot(primary_key=tuple(KEY)),
    "ChangelogStream": MergeStrategyChangelogStream(primary_key=tuple(KEY)),
    "UpsertStream": MergeStrategyUpsertStream(primary_key=tuple(KEY)),
}

keys = st.tuples(st.sampled_from(["a", "b", "c", None]), st.sampled_from([1, 2, None]))
values = st.one_of(st.none(), st.integers(0, 3))
times = st.sampled_from([None, *(datetime(2020, 1, day, tzinfo=UTC) for day in (1, 2, 3))])
records = st.builds(
    lambda key, v, time: {"k": key[0], "n": key[1], "v": v, "event_time": time}, keys, values, times
)
batches = st.lists(records, max_size=12)
unique_batches = st.lists(records, max_size=12, unique_by=lambda row: (row["k"], row["n"]))


def _run(strategy, chunks, **options):
    """The whole history after merging one batch after the other."""
    history = []
    for chunk in chunks:
        history += merge(strategy, history, chunk, key=KEY, fallback=FALLBACK, **options)
    return history


def _data(row, *without):
    return tuple((name, row[name]) for name in sorted(row) if name not in ("op", *without))


def _state(history):
    return {key: row["v"] for key, row in project(history, KEY).items()}


def _split(data, rows):
    """`rows` cut into batches at any places."""
    chunks, rest = [], list(rows)
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        chunks.append(rest[:size])
        rest = rest[size:]
    return chunks


@given(st.lists(unique_batches, max_size=6))
def test_snapshots_merged_and_projected_give_back_the_last_one(snapshots):
    history = _run("Snapshot", snapshots)
    wanted = {(row["k"], row["n"]): row["v"] for row in snapshots[-1]} if snapshots else {}
    assert _state(history) == wanted


@given(st.lists(unique_batches, max_size=5))
def test_both_sides_of_a_correction_stand_together(snapshots):
    history = _run("Snapshot", snapshots)
    for one, two in zip(history, [*history[1:], None], strict=False):
        if one["op"] == 2:
            assert two is not None and two["op"] == 3
            assert [one[name] for name in KEY] == [two[name] for name in KEY]
    assert sum(row["op"] == 2 for row in history) == sum(row["op"] == 3 for row in history)


@given(unique_batches, st.data())
def test_any_split_of_a_ledger_gives_the_same_records(ledger, data):
    rows = [
        *ledger,
        *data.draw(st.lists(st.sampled_from(ledger), max_size=6) if ledger else st.just([])),
    ]
    whole = _run("Ledger", [rows])
    split = _run("Ledger", _split(data, rows))
    assert {_data(row) for row in split} == {_data(row) for row in whole}
    again = _run("Ledger", [rows, rows])
    assert again == whole


@given(st.lists(st.tuples(records, st.sampled_from([0, 0, 1, 3])), max_size=15), st.data())
def test_any_split_of_upserts_gives_the_same_state(upserts, data):
    rows = [{**row, "op": op} for row, op in upserts]
    wanted = {}
    for row in rows:
        if row["op"] == 1:
            wanted.pop((row["k"], row["n"]), None)
        else:
            wanted[row["k"], row["n"]] = row["v"]
    assert _state(_run("UpsertStream", [rows])) == wanted
    assert _state(_run("UpsertStream", _split(data, rows))) == wanted


@given(st.lists(unique_batches, max_size=4), st.data())
def test_any_split_of_a_changelog_gives_the_same_state(snapshots, data):
    changelog = _run("Snapshot", snapshots)
    assert _state(_run("ChangelogStream", [changelog])) == _state(changelog)
    assert _state(_run("ChangelogStream", _split(data, changelog))) == _state(changelog)


# --- Spark against the model ---

seldom = settings(
    max_examples=3,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def _random_batch(strategy, seed, rows=60):
    chance = random.Random(seed)
    found = []
    for _ in range(rows):
        row = {
            "k": chance.choice(["a", "b", "c", "d", "e", None]),
            "n": chance.choice([1, 2, 3, 4, None]),
            "v": chance.choice([1, 2, 3, None]),
            "event_time": chance.choice(
                [None, datetime(2020, 1, chance.randint(1, 9), tzinfo=UTC)]
            ),
        }
        if strategy in ("ChangelogStream", "UpsertStream"):
            row["op"] = chance.choice([0, 0, 1, 2, 3])
        found.append(row)
    return found


def _file(folder, name, batch):
    kinds = [("k", pa.string()), ("n", pa.int32()), ("v", pa.int32())]
    kinds.append(("event_time", pa.timestamp("ms", "UTC")))
    if batch and "op" in batch[0]:
        kinds.append(("op", pa.int32()))
    pq.write_table(pa.Table.from_pylist(batch, pa.schema(kinds)), folder / name)
    return folder / name


@pytest.mark.spark
@pytest.mark.parametrize("strategy", STRATEGIES)
@seldom
@given(st.integers(0, 2**32))
def test_spark_merges_as_the_model_does(spark_engine, strategy, seed):
    folder = Path(tempfile.mkdtemp())
    history, ledger = None, []
    for turn in range(2):
        batch = _random_batch(strategy, seed + turn)
        file = _file(folder, f"batch-{turn}.parquet", batch)
        _, found = ingest(spark_engine, folder, file, merge=STRATEGIES[strategy], history=history)
        wanted = merge(strategy, ledger, batch, key=KEY, fallback=FALLBACK)
        assert [_data(row) for row in found.to_pylist()] == [_data(row) for row in wanted]
        assert [row["op"] for row in found.to_pylist()] == [row["op"] for row in wanted]
        ledger += wanted
        whole = pa.Table.from_pylist(ledger, found.schema)
        history = write_history(folder / f"history-{turn}.parquet", whole)


def _accumulate(engine, folder, strategy, chunks):
    """The ledger that Spark makes of one batch after the other."""
    history, ledger = None, None
    for turn, chunk in enumerate(chunks):
        file = _file(folder, f"batch-{turn}.parquet", chunk)
        _, found = ingest(engine, folder, file, merge=strategy, history=history)
        ledger = found if ledger is None else pa.concat_tables([ledger, found])
        history = write_history(folder / f"history-{turn}.parquet", ledger)
    return history, ledger


@pytest.mark.spark
@pytest.mark.parametrize("compare", [None, ("v",)])
def test_spark_gives_back_the_last_of_many_snapshots(spark_engine, tmp_path, compare):
    chance = random.Random(7)
    snapshots = [_unique(_random_batch("Snapshot", chance.random(), 14)) for _ in range(3)]
    snapshots.insert(2, [])
    strategy = MergeStrategySnapshot(primary_key=tuple(KEY), compare_columns=compare)
    history, ledger = _accumulate(spark_engine, tmp_path, strategy, snapshots)
    # By the model, and by what odfbuild itself takes for the state.
    wanted = {(row["k"], row["n"]): row["v"] for row in snapshots[-1]}
    assert _state(ledger.to_pylist()) == wanted
    with spark_engine.request("tests") as spark:
        frame = read_slices(spark, [history], pq.read_schema(history), Vocabulary())
        rows = project_frame(frame, KEY, Vocabulary()).collect()
    assert {(row["k"], row["n"]): row["v"] for row in rows} == wanted
    assert len(rows) == len(wanted)


@pytest.mark.spark
def test_any_split_of_a_ledger_gives_the_same_records_on_spark(spark_engine, tmp_path):
    rows = _unique(_random_batch("Ledger", 11))
    rows += rows[:5]
    strategy = STRATEGIES["Ledger"]
    found = []
    for number, cuts in enumerate([(), (7,), (1, 2, len(rows) - 1)]):
        folder = tmp_path / str(number)
        folder.mkdir()
        edges = [0, *cuts, len(rows)]
        chunks = [rows[a:b] for a, b in itertools.pairwise(edges)]
        _, ledger = _accumulate(spark_engine, folder, strategy, chunks)
        found.append({_data(row) for row in ledger.to_pylist()})
    assert found[0] == found[1] == found[2]
    assert len(found[0]) == len(rows) - 5


def _unique(rows):
    return list({(row["k"], row["n"]): row for row in rows}.values())


@pytest.mark.spark
def test_a_number_that_is_no_operation_is_refused(spark_engine, tmp_path):
    file = _file(tmp_path, "in.parquet", [{**_random_batch("Ledger", 1, 1)[0], "op": 7}])
    with pytest.raises(IngestError) as caught:
        ingest(spark_engine, tmp_path, file, merge=STRATEGIES["ChangelogStream"])
    assert "has 7 in the column 'op'" in caught.value.message
    assert caught.value.code == "E0434"


@pytest.mark.spark
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


@pytest.mark.spark
def test_cells_are_read_as_the_specification_says(spark_engine, tmp_path):
    file = tmp_path / "in.csv"
    file.write_text('k,v,t\n"a ""b"", c",1,2020-01-01 01:02:03\n"",,\n')
    _, table = ingest(spark_engine, tmp_path, file, CSV)
    first, second = table.to_pylist()
    assert (first["k"], first["v"]) == ('a "b", c', 1)
    assert first["t"] == datetime(2020, 1, 1, 1, 2, 3, tzinfo=UTC)
    assert (second["k"], second["v"], second["t"]) == (None, None, None)


@pytest.mark.spark
def test_a_key_that_the_data_has_not_is_explained(spark_engine, tmp_path):
    file = tmp_path / "in.csv"
    file.write_text("kay,v,t\na,1,\n")
    read = ReadStepCsv(ddl_schema=("kay STRING", "v INT", "t TIMESTAMP"), header=True)
    with pytest.raises(IngestError) as caught:
        merge = MergeStrategyLedger(primary_key=("key",))
        ingest(spark_engine, tmp_path, file, read, merge)
    assert caught.value.help == "did you mean 'kay'?"
