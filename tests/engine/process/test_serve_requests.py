"""Requests that take Spark: queries, operations, checkpoints of windows and changelogs."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import grpc
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfbuild.engine.process.server.calls import Calls
from odfbuild.engine.process.server.serve import Serving, listening
from odfbuild.engine.process.wire import CHANNEL_OPTIONS, EXECUTE_TRANSFORM
from odfbuild.engine.spark.engine import SparkEngine
from odfbuild.odf.model.messages import (
    DatasetVocabulary,
    RawQueryRequest,
    RawQueryResponseInvalidQuery,
    RawQueryResponseSuccess,
    TransformResponseInternalError,
    TransformResponseInvalidQuery,
    TransformResponseSuccess,
)
from tests.engine.inputs import sql
from tests.engine.process.coordinator import Chain, Line, head_of
from tests.engine.stepwise import Source, rows_of

pytestmark = pytest.mark.spark

COLUMNS = [pa.field("id", pa.int64()), pa.field("value", pa.int64())]
TENFOLD = "SELECT event_time, id, value * 10 AS value FROM sales"
HOURLY = """SELECT window.start AS event_time, COUNT(*) AS n FROM sales
    GROUP BY window(event_time, '1 hour')"""
TOTALS = "SELECT MAX(event_time) AS event_time, id, SUM(value) AS total FROM sales GROUP BY id"


def serving(engine: SparkEngine, limit: int = 256 << 20) -> Iterator[Line]:
    calls = Calls(lambda: engine, progress_seconds=0.2)
    asked = Serving(addresses=("127.0.0.1:0",), checkpoint_limit=limit)
    with listening(calls, asked) as (address,):
        yield Line(address)


@pytest.fixture(scope="module")
def line(spark_engine: SparkEngine) -> Iterator[Line]:
    yield from serving(spark_engine)


@pytest.fixture
def narrow(spark_engine: SparkEngine) -> Iterator[Line]:
    """An engine whose checkpoints may hold 9 kB."""
    yield from serving(spark_engine, 9_000)


@pytest.fixture
def sales(tmp_path: Path) -> Source:
    source = Source(tmp_path, "sales", COLUMNS)
    source.add([("10:00", 1, 10), ("10:05", 2, 20), ("10:10", 3, 30)])
    return source


def chain_of(line: Line, source: Source, *queries: str, name: str = "derived") -> Chain:
    return Chain(line, source.folder / name, sql(*queries), [source])


# --- Queries ---


def test_operations_carry_over_and_those_that_a_query_selects_are_kept(line, sales) -> None:
    carried = chain_of(line, sales, TENFOLD)
    chosen = chain_of(line, sales, "SELECT op, event_time, id FROM sales", name="chosen")
    carried.step()
    chosen.step()
    sales.add(
        [("10:00", 1, 10), ("10:05", 2, 20), ("10:05", 2, 21), ("11:00", 4, 1), ("11:01", 5, 1)],
        ops=[1, 2, 3, 0, 0],
    )
    assert [row[0] for row in carried.step()] == [1, 2, 3, 0, 0]
    assert [row[0] for row in chosen.step()] == [1, 2, 3, 0, 0]
    assert carried.answer.new_offset_interval.start == 3


@pytest.mark.parametrize(
    ("queries", "words"),
    [
        (["SELECT id FROM sales"], ["E0515", "no column 'event_time'"]),
        (["SELECT * FROM sales"], ["E0514", "'offset'", "AS source_offset"]),
        (
            ["SELECT * FROM sales", "SELECT id, FROM FROM step0", "SELECT * FROM step1"],
            ["queries[1]", ":1:"],
        ),
        (["SELECT event_time, 'a' AS op FROM sales"], ["E0514", "'op' is STRING"]),
        (["SELECT event_time, 1L AS op FROM sales"], ["E0514", "'op' is BIGINT"]),
        (["SELECT event_time, 7 AS op FROM sales"], ["E0517", "no operation"]),
        (["SELECT event_time, now() AS at FROM sales"], ["E05", "now"]),
        (["SELECT event_time, rand() AS r FROM sales"], ["E05", "rand"]),
        (["SELECT event_time FROM csv.`/etc/passwd`"], ["E05"]),
        (["SELECT event_time, reflect('java.lang.System', 'getenv') FROM sales"], ["E05"]),
        (["SELECT id AS event_time FROM sales"], ["E0516", "CAST(event_time AS TIMESTAMP)"]),
        (["SELECT event_time, 1 / (value - 10) AS x FROM sales"], ["E0517"]),
    ],
)
def test_a_query_that_cannot_run_is_invalid_and_its_author_told_why(
    line, sales, queries, words
) -> None:
    answer = chain_of(line, sales, *queries).asks()
    assert isinstance(answer, TransformResponseInvalidQuery), answer
    assert [word for word in words if word not in answer.message] == [], answer.message


def test_event_times_are_converted_to_milliseconds_in_utc(line, sales) -> None:
    naive = chain_of(
        line, sales, "SELECT CAST(event_time AS TIMESTAMP_NTZ) AS event_time FROM sales", name="a"
    )
    dates = chain_of(line, sales, "SELECT DATE(event_time) AS event_time FROM sales", name="b")
    naive.step()
    dates.step()
    assert naive.schema.field("event_time").type == pa.timestamp("ms", "UTC")
    assert dates.schema.field("event_time").type == pa.date32()


def test_vocabularies_of_input_and_output_may_differ(line, sales, tmp_path) -> None:
    table = pq.read_table(sales.blocks[0][0].path)
    named = table.rename_columns(["nr", "what", "seen", "happened", "id", "value"])
    pq.write_table(named, tmp_path / "named")
    pq.write_table(named.schema.empty_table(), tmp_path / "named-schema")
    chain = chain_of(line, sales, "SELECT happened AS moment, id FROM sales")
    asked = chain.request()
    (one,) = asked.query_inputs
    vocab = DatasetVocabulary(
        offset_column="nr",
        operation_type_column="what",
        system_time_column="seen",
        event_time_column="happened",
    )
    other = DatasetVocabulary(
        offset_column="position",
        operation_type_column="action",
        system_time_column="recorded",
        event_time_column="moment",
    )
    given = replace(
        one,
        vocab=vocab,
        data_paths=(str(tmp_path / "named"),),
        schema_file=str(tmp_path / "named-schema"),
    )
    answer = line.transform(replace(asked, vocab=other, query_inputs=(given,)))
    assert isinstance(answer, TransformResponseSuccess), answer
    names = ["position", "action", "recorded", "moment", "id"]
    assert pq.read_schema(asked.new_data_path).names == names


def test_an_input_that_stands_still_and_one_without_any_record_are_empty(line, sales) -> None:
    idle = Source(sales.folder, "idle", COLUMNS)
    both = "SELECT event_time, id FROM sales UNION ALL SELECT event_time, id FROM idle"
    chain = Chain(line, sales.folder / "derived", sql(both), [sales, idle])
    assert len(chain.step()) == 3
    assert chain.watermark is None
    idle.add([("11:00", 9, 9)])
    assert chain.step() == [(0, "11:00", 9)]


def test_a_slice_that_is_damaged_inside_is_an_internal_error_with_its_path(line, sales) -> None:
    path = sales.blocks[0][0].path
    table = pq.read_table(path)
    # Only the last column, which nothing but the query reads.
    pq.write_table(table, path, compression="none", use_dictionary=False)
    data = bytearray(path.read_bytes())
    chunk = pq.read_metadata(path).row_group(0).column(5)
    start = chunk.data_page_offset
    data[start : start + 12] = b"\xff" * 12
    path.write_bytes(data)
    answer = chain_of(line, sales, TENFOLD).asks()
    assert isinstance(answer, TransformResponseInternalError), answer
    assert str(path) in answer.message


def test_a_caller_who_leaves_ends_the_job_within_seconds(line, sales) -> None:
    long = "SELECT event_time, COUNT(*) AS n FROM sales, range(0, 100000000000) GROUP BY 1"
    chain = chain_of(line, sales, long)
    with grpc.insecure_channel(line.address, CHANNEL_OPTIONS) as channel:
        method = channel.unary_stream(EXECUTE_TRANSFORM.path)
        data = EXECUTE_TRANSFORM.encode_request(chain.request())
        call = method(data, wait_for_ready=True)
        threading.Timer(3, call.cancel).start()
        with pytest.raises(grpc.RpcError):
            kinds = [EXECUTE_TRANSFORM.decode_response(each).KIND for each in call]
            pytest.fail(f"{kinds}")
    began = time.monotonic()
    assert len(chain_of(line, sales, TENFOLD, name="next").step()) == 3
    assert time.monotonic() - began < 20


# --- Checkpoints ---


def test_windows_close_once_over_steps(line, sales) -> None:
    chain = chain_of(line, sales, HOURLY)
    assert chain.step() == []
    sales.add([("10:30", 4, 1), ("11:10", 5, 1)])
    assert chain.step() == [(0, "10:00", 4)]
    sales.add([("10:40", 6, 1), ("12:10", 7, 1)])  # 10:40 is too late
    assert chain.step() == [(0, "11:00", 1)]


def test_a_changelog_tells_only_what_changed(line, sales) -> None:
    chain = chain_of(line, sales, TOTALS)
    assert len(chain.step()) == 3
    sales.add([("11:00", 1, 5)])
    assert chain.step() == [(2, "10:00", 1, 10), (3, "11:00", 1, 15)]


def test_a_changed_query_is_computed_from_the_records_that_are_kept(line, sales) -> None:
    chain = chain_of(line, sales, TOTALS)
    chain.step()
    chain.transform = sql(TOTALS.replace("SUM(value)", "2 * SUM(value)"))
    sales.add([("11:00", 4, 5)])
    assert [row[0] for row in chain.step()] == [2, 3, 2, 3, 2, 3, 0]


def test_a_changed_query_that_needs_what_is_not_kept_asks_for_a_reset(line, sales) -> None:
    chain = chain_of(line, sales, TENFOLD)
    chain.step()
    sales.add([("11:00", 4, 5)])
    chain.transform = sql(TOTALS)
    answer = chain.asks()
    assert isinstance(answer, TransformResponseInvalidQuery), answer
    assert answer.message.startswith("E1402")
    assert "reset the dataset" in answer.message


def test_a_result_with_other_columns_than_before_is_refused_early(line, sales) -> None:
    chain = chain_of(line, sales, TENFOLD)
    chain.step()
    sales.add([("11:00", 4, 5)])
    chain.transform = sql("SELECT event_time, id, CAST(value AS STRING) AS value FROM sales")
    answer = chain.asks()
    assert isinstance(answer, TransformResponseInvalidQuery), answer
    assert answer.message.startswith("E0521")
    assert "'value' is STRING" in answer.message


def test_above_the_limit_windows_keep_what_is_open_and_others_are_refused(narrow, sales) -> None:
    hourly = chain_of(narrow, sales, HOURLY)
    hourly.step()
    for hour in range(11, 14):
        sales.add([(f"{hour}:00", hour, 1), (f"{hour}:30", hour, 1)])
        assert hourly.step()
    (kept,) = head_of(hourly.checkpoint)["inputs"]
    assert kept["kept"] == "open"
    assert len(kept["slices"]) < len(sales.blocks)
    whole = chain_of(narrow, sales, HOURLY, name="whole")
    answer = chain_of(narrow, sales, TOTALS, name="totals").asks()
    assert isinstance(answer, TransformResponseInvalidQuery), answer
    assert answer.message.startswith("E1403")
    # All at once, the closed windows are not kept from the beginning.
    assert whole.step() == [row for file in hourly.files for row in rows_of(pq.read_table(file))]
    sales.add([("13:40", 1, 1)], ops=[1])
    assert hourly.asks().message.startswith("E1402")


# --- Raw queries ---


def raw(folder: Path, *queries: str) -> RawQueryRequest:
    source = pa.table({"op": ["x", "y", "z"], "offset": ["3", "1", "2"]})
    pq.write_table(source, folder / "input.parquet")
    return RawQueryRequest(
        input_data_paths=(str(folder / "input.parquet"),),
        transform=sql(*queries),
        output_data_path=str(folder / "output.parquet"),
    )


def test_a_raw_query_reads_input_in_steps_and_knows_no_system_columns(line, tmp_path) -> None:
    asked = raw(
        tmp_path, "SELECT op, int(offset) AS n FROM input", "SELECT op, n * 2 AS n FROM step0"
    )
    assert line.raw_query(asked) == RawQueryResponseSuccess(num_records=3)
    table = pq.read_table(asked.output_data_path)
    assert table.to_pydict() == {"op": ["x", "y", "z"], "n": [6, 2, 4]}


def test_a_raw_query_without_records_has_a_file_with_its_columns(line, tmp_path) -> None:
    asked = raw(tmp_path, "SELECT op FROM input WHERE false")
    assert line.raw_query(asked) == RawQueryResponseSuccess(num_records=0)
    assert pq.read_schema(asked.output_data_path).names == ["op"]


def test_a_raw_query_over_several_files_reads_them_in_their_order(line, tmp_path) -> None:
    asked = raw(tmp_path, "SELECT concat(op, offset) AS both FROM input")
    twice = replace(asked, input_data_paths=asked.input_data_paths * 2)
    assert line.raw_query(twice) == RawQueryResponseSuccess(num_records=6)
    assert pq.read_table(asked.output_data_path)["both"].to_pylist() == ["x3", "y1", "z2"] * 2


def test_a_raw_query_that_is_wrong_is_invalid(line, tmp_path) -> None:
    answer = line.raw_query(raw(tmp_path, "SELECT nothing FROM input"))
    assert isinstance(answer, RawQueryResponseInvalidQuery)
    assert "nothing" in answer.message
    answer = line.raw_query(replace(raw(tmp_path, "SELECT 1"), input_data_paths=()))
    assert answer.message.startswith("E1404")
