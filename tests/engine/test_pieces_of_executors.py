"""What a task reads of the storage comes in the form that Spark takes, or the task says why not."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pyarrow as pa
import pytest

from odfbuild.engine.in_pieces import PiecesTask, Recorded, StorageAddress, WrittenPiece
from odfbuild.engine.release import release_of_spark
from odfbuild.engine.slice import dataset_schema, write_records
from odfbuild.engine.spark.connect.expression_text import NotExpressible
from odfbuild.engine.spark.engine import SparkEngine
from odfbuild.engine.spark.internals.catalyst import optimised_plan_of
from odfbuild.engine.spark.pieces import run, tasks
from odfbuild.engine.spark.pieces.columns import columns_read
from odfbuild.engine.spark.pieces.run import _unable, check_stored
from odfbuild.errors import EngineProblem, IntegrityError, OdfbuildError, QueryError
from odfbuild.odf.model import DataSlice, OffsetInterval, SqlQueryStep, TransformSql
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp
from odfbuild.odf.vocabulary import vocabulary_of
from odfbuild.records.first_difference import RecordDifference, ValueDifference
from odfbuild.records.intact import check_slice, damage_of
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.storage import Storage

VOCAB = vocabulary_of(None)
MILLIS = pa.timestamp("ms", "UTC")
MICROS = pa.timestamp("us", "UTC")
RECORDS = pa.table(
    {
        "event_time": pa.array([1, -1], MILLIS),
        "key": pa.array([uuid.UUID(int=7).bytes, None], pa.binary(16)),
        "price": pa.array([Decimal("1.50"), None], pa.decimal128(12, 2)),
        "exact": pa.array([1, -7], MICROS),
    }
)


@pytest.fixture
def where(tmp_path: Path) -> StorageAddress:
    return StorageAddress("store", tmp_path)


def storage(where: StorageAddress) -> Storage:
    return Storage(where.address, where.root)


def stored(where: StorageAddress, records: pa.Table) -> DataSlice:
    """A slice with offsets from 10 on, in the storage."""
    staged = write_records(
        records.to_batches(),
        dataset="a",
        schema=dataset_schema(records.schema, VOCAB),
        vocab=VOCAB,
        first_offset=10,
        system_time=Timestamp(0),
        target=where.root / "slice",
    )
    assert staged is not None
    storage(where).upload("data", staged.data.physical_hash, staged.path)
    return staged.data


def read(where: StorageAddress, layout: pa.Schema, *pieces: tuple[DataSlice, ...]) -> pa.Table:
    """The records of all pieces, each of which a task is asked for."""
    how = tasks.Reading(pieces, layout, VOCAB, where, "a")
    return pa.Table.from_batches(list(tasks.read(how, numbers(len(pieces)))), layout)


def numbers(count: int) -> Iterator[pa.RecordBatch]:
    yield pa.record_batch([pa.array(range(count))], ["id"])


def problem(text: Exception) -> OdfbuildError:
    found = tasks.problem_of(f"PythonException: … {text} …")
    assert found is not None
    return found


def test_records_come_in_the_form_that_spark_takes(where: StorageAddress) -> None:
    first, second = stored(where, RECORDS), stored(where, RECORDS.slice(0, 1))
    layout = pa.schema(
        [
            ("offset", pa.int64()),
            ("event_time", MICROS),
            ("key", pa.string()),
            ("price", pa.decimal128(12, 2)),
            ("exact", MICROS),
            ("later", pa.string()),
        ]
    )
    found = read(where, layout, (first,), (second,)).to_pylist()
    assert [each["offset"] for each in found] == [10, 11, 10]
    assert [each["key"] for each in found] == [str(uuid.UUID(int=7)), None, str(uuid.UUID(int=7))]
    assert [each["price"] for each in found] == [Decimal("1.50"), None, Decimal("1.50")]
    assert [each["exact"].microsecond for each in found] == [1, 999_993, 1]
    assert {each["later"] for each in found} == {None}, "a column that came later"
    assert list(where.root.glob("odfbuild-*")) == []


def test_retracted_records_are_left_to_another_way(where: StorageAddress) -> None:
    retracted = RECORDS.append_column("op", pa.array([0, 1], pa.int32()))
    with pytest.raises(tasks.TaskError) as caught:
        read(where, pa.schema([("offset", pa.int64())]), (stored(where, retracted),))
    assert isinstance(problem(caught.value), tasks.NeedsOperations)


def test_damage_in_the_storage_is_told_as_such(where: StorageAddress) -> None:
    data = stored(where, RECORDS)
    file = where.root / "store" / "data" / str(data.physical_hash)
    file.write_bytes(file.read_bytes()[:-1] + b"X")
    with pytest.raises(tasks.TaskError) as caught:
        read(where, pa.schema([("offset", pa.int64())]), (data,))
    found = problem(caught.value)
    assert isinstance(found, IntegrityError)
    assert found.code == "E0813"


def test_an_object_that_a_worker_does_not_find_is_an_error_of_the_worker(
    where: StorageAddress,
) -> None:
    hash = Multihash.sha3_256(b"")
    absent = DataSlice(
        logical_hash=hash,
        physical_hash=hash,
        offset_interval=OffsetInterval(start=0, end=0),
        size=1,
    )
    with pytest.raises(tasks.TaskError) as caught:
        read(where, pa.schema([("offset", pa.int64())]), (absent,))
    found = problem(caught.value)
    assert isinstance(found, EngineProblem)
    assert found.code == "E1682"
    assert found.notes == ("nothing was committed",)


def test_a_storage_that_a_worker_may_not_use_is_an_error_of_the_worker(
    where: StorageAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError("Forbidden")

    monkeypatch.setattr("odfbuild.store.storage.open_place", refused)
    hash = Multihash.sha3_256(b"")
    data = DataSlice(
        logical_hash=hash,
        physical_hash=hash,
        offset_interval=OffsetInterval(start=0, end=0),
        size=1,
    )
    with pytest.raises(tasks.TaskError) as caught:
        read(where, pa.schema([("offset", pa.int64())]), (data,))
    found = problem(caught.value)
    assert found.code == "E1682"
    assert found.message.startswith("a worker cannot use the storage: the storage store cannot be")
    assert "Forbidden" in found.message


def test_a_worker_tells_what_it_sees_and_leaves_what_it_wrote(
    where: StorageAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "_number", lambda: 3)
    monkeypatch.setattr(tasks, "release", lambda: "4.0.0")
    data = stored(where, RECORDS)
    (told,) = tasks.look(where, data, "token", numbers(1))
    assert told.to_pylist() == [
        {
            "pyspark": "4.0.0",
            "pyarrow": pa.__version__,
            "size": data.size,
            "written": "probes/token-3",
        }
    ]
    assert [each.name for each in storage(where).files("probes")] == ["probes/token-3"]


@pytest.mark.parametrize(
    ("other", "code", "named"),
    [
        ({"pyspark": "4.0.0"}, "E1675", "has Spark 4.0.0, and this machine has"),
        ({"pyarrow": "18.0.0"}, "E1681", "has PyArrow 18.0.0, and this machine has"),
        ({"size": None}, "E1682", "it sees no such object"),
        ({"written": "probes/elsewhere"}, "E1682", "which is not there"),
    ],
)
def test_a_worker_of_which_results_could_differ_gets_no_work(
    where: StorageAddress, other: dict[str, object], code: str, named: str
) -> None:
    data = stored(where, RECORDS)
    told = {"pyspark": release_of_spark(), "pyarrow": pa.__version__, "size": data.size}
    row = SimpleNamespace(**{**told, "written": "probes/1", **other})
    place = run.Workplace("a", where, where.root, "spark://h:7077")
    with pytest.raises(EngineProblem) as caught:
        run.check_seen(row, place, data, {"probes/1"})
    assert caught.value.code == code
    assert named in f"{caught.value.message} {caught.value.notes}"
    assert "nothing was committed" in caught.value.notes


def test_a_task_writes_the_slice_of_its_piece(
    where: StorageAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "_number", lambda: 1)
    how = tasks.Writing(
        "a", dataset_schema(RECORDS.schema, VOCAB), VOCAB, (0, 10, 12), Timestamp(0), where
    )
    (told,) = tasks.write(how, iter(RECORDS.to_batches()))
    (row,) = told.to_pylist()
    data = stored(where, RECORDS)
    assert row == {
        "piece": 1,
        "records": 2,
        "size": data.size,
        "physical": str(data.physical_hash),
        "logical": str(data.logical_hash),
        "latest": 1,
        "difference": None,
    }
    (nothing,) = tasks.write(how, iter(RECORDS.slice(0, 0).to_batches()))
    assert nothing.to_pylist()[0]["records"] == 0


def test_a_task_that_compares_tells_the_first_record_that_differs_and_keeps_nothing(
    where: StorageAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "_number", lambda: 0)
    prices = pa.array([Decimal("1.50"), Decimal("2.00")], pa.decimal128(12, 2))
    changed = stored(where, RECORDS.set_column(2, "price", prices))
    before = {each.name for each in storage(where).files("data")}
    how = tasks.Writing(
        "a",
        dataset_schema(RECORDS.schema, VOCAB),
        VOCAB,
        (10,),
        Timestamp(7),
        where,
        (Recorded(changed, 10, Timestamp(0)),),
    )
    (told,) = tasks.write(how, iter(RECORDS.to_batches()))
    difference = told["difference"][0].as_py()
    found = msgspec.json.decode(difference, type=RecordDifference)
    assert found == RecordDifference(1, (ValueDifference("price", "2.00", "NULL"),))
    assert {each.name for each in storage(where).files("data")} == before
    same = stored(where, RECORDS)
    how = replace(how, recorded=(Recorded(same, 10, Timestamp(0)),))
    (told,) = tasks.write(how, iter(RECORDS.to_batches()))
    assert told["logical"].to_pylist() == [str(same.logical_hash)]
    assert told["difference"].to_pylist() == [None]


def test_a_task_finds_wrong_with_an_object_what_is_found_here(where: StorageAddress) -> None:
    whole, cut = stored(where, RECORDS), stored(where, RECORDS.slice(1))
    other = replace(whole, logical_hash=cut.logical_hash)
    moved = replace(whole, offset_interval=OffsetInterval(start=0, end=1))
    absent = replace(whole, physical_hash=Multihash.sha3_256(b"absent"))
    file = where.root / "store" / "data" / str(cut.physical_hash)
    file.write_bytes(file.read_bytes()[:-1] + b"X")
    slices = tuple((each, "offset") for each in (whole, other, moved, absent, cut))
    how = tasks.Checking("a", slices, where, logical=True)
    told = pa.Table.from_batches(tasks.check(how, numbers(len(slices))))
    store = DatasetStore(where.root / "here", "a", storage(where))
    here = []
    for data, column in slices:
        path = store.object_path("data", data.physical_hash)
        check = partial(check_slice, path, data, column, logical=True)
        here.append(damage_of(store, "data", data.physical_hash, check))
    assert [each and each.code for each in here] == [None, "E0816", "E0814", "E0811", "E0813"]
    assert told["piece"].to_pylist() == [*range(len(slices))]
    for name in ("code", "message", "help"):
        assert told[name].to_pylist() == [each and getattr(each, name) for each in here]


def test_a_missing_value_in_a_required_column_is_an_error_of_the_query(
    where: StorageAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "_number", lambda: 0)
    empty = pa.table({"event_time": pa.array([None], MILLIS)})
    how = tasks.Writing(
        "a", dataset_schema(empty.schema, VOCAB), VOCAB, (0, 1), Timestamp(0), where
    )
    with pytest.raises(tasks.TaskError) as caught:
        list(tasks.write(how, iter(empty.to_batches())))
    found = problem(caught.value)
    assert isinstance(found, QueryError)
    assert (found.code, found.dataset) == ("E0520", "a")


@pytest.mark.parametrize(
    ("said", "code", "named"),
    [
        ('java.io.IOException: Cannot run program "python9": error=2', "E1680", "python9"),
        ("[PYTHON_VERSION_MISMATCH] Python in worker has 3.9", "E1680", "3.9"),
        ("ModuleNotFoundError: No module named 's3fs'", "E1681", "s3fs"),
        (
            "ImportError: PyArrow >= 18.0.0 must be installed; however, it was not",
            "E1681",
            "PyArrow",
        ),
    ],
)
def test_what_a_worker_lacks_is_told(said: str, code: str, named: str) -> None:
    found = _unable(said, "sc://h", is_server=True)
    assert found is not None
    assert found.code == code
    assert code != "E1680" or "PYSPARK_PYTHON where the server runs" in (found.help or "")
    assert named in f"{found.message} {found.notes}"


def test_other_errors_of_spark_are_none_of_a_worker() -> None:
    assert _unable("Job aborted: division by zero", "spark://h:7077") is None
    assert tasks.problem_of("Job aborted: division by zero") is None


def task(where: StorageAddress, *pieces: tuple[DataSlice, ...]) -> PiecesTask:
    schema = dataset_schema(RECORDS.schema, VOCAB)
    query = SqlQueryStep(query="SELECT event_time, price FROM a")
    return PiecesTask(
        dataset="b",
        transform=TransformSql(engine="spark", queries=(query,)),
        alias="a",
        input_schema=schema,
        input_vocab=VOCAB,
        vocab=VOCAB,
        schema=schema,
        pieces=pieces,
        storage=where,
        first_offset=0,
        system_time=Timestamp(0),
    )


def test_a_slice_that_is_not_in_the_storage_is_not_committed(where: StorageAddress) -> None:
    data = stored(where, RECORDS)
    check_stored("a", where, [WrittenPiece(data), WrittenPiece(None)])
    storage(where).discard(f"data/{data.physical_hash}")
    with pytest.raises(EngineProblem) as caught:
        check_stored("a", where, [WrittenPiece(data)])
    assert caught.value.code == "E1683"
    assert "is not there" in caught.value.notes[0]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("SELECT v FROM a WHERE k > 1", "kv"),
        ("SELECT count(*) FROM a", ""),
        ("SELECT count(DISTINCT *) FROM a", "kvw"),
        ("SELECT k FROM a ORDER BY w", "kw"),
        ("SELECT v, row_number() OVER (PARTITION BY k ORDER BY w) FROM a", "kvw"),
        ("SELECT a.v FROM a JOIN b USING (k) GROUP BY ALL HAVING sum(x) > 1", "kvx"),
        ("SELECT v FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND y > 1)", "kvy"),
        ("SELECT v > (SELECT max(y) FROM b) FROM a", "vy"),
        ("SELECT v IN (SELECT x FROM b) FROM a", "vx"),
        ("SELECT k FROM a UNION SELECT x FROM b WHERE y = 1", "kxy"),
        ("SELECT v FROM a NATURAL JOIN b", "kv"),
        ("SELECT explode(array(v, w)) FROM a", "vw"),
        ("SELECT * FROM (SELECT k, v FROM a) PIVOT (sum(v) FOR k IN (1))", "kv"),
        ("SELECT k, v FROM a EXCEPT SELECT x, k FROM b", "kvx"),
    ],
)
def test_tasks_read_the_columns_of_which_spark_makes_anything(
    query: str, columns: str, spark_engine: SparkEngine
) -> None:
    with spark_engine.request("a") as spark:
        for name, names in (("a", "kvw"), ("b", "kxy")):
            shape = ", ".join(f"{each} INT" for each in names)
            spark.range(1).mapInArrow(lambda each: each, shape).createOrReplaceTempView(name)
        assert columns_read(optimised_plan_of(spark.sql(query))) == {*columns}


@pytest.mark.spark
def test_the_sandbox_lets_no_task_run_python(
    where: StorageAddress, spark_engine: SparkEngine
) -> None:
    if not spark_engine._session.fences.network:
        pytest.skip("this system has no sandbox")
    with pytest.raises(EngineProblem) as caught:
        spark_engine.run(task(where, (stored(where, RECORDS),)))
    assert caught.value.code == "E1684"


@pytest.mark.spark
def test_a_server_that_reads_the_query_otherwise_is_told(
    where: StorageAddress, spark_engine: SparkEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise NotExpressible("the server reads its text as another plan")

    for name in ("ship_to_server", "_check_workers", "_written"):
        monkeypatch.setattr(run, name, refuse if name == "_written" else lambda *_: None)
    step = task(where, (stored(where, RECORDS),))
    with spark_engine.request("b") as spark, pytest.raises(EngineProblem) as caught:
        run.write_in_pieces(spark, step, where.root, "sc://h", server=object())
    assert caught.value.code == "E1670"
    assert "another plan" in caught.value.message
