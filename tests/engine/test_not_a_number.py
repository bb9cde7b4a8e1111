"""NaN is greater than all other numbers, and no statistics of a file hide it."""

import math
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfbuild.engine.contract import EngineResult, InputSlices, SliceFile
from odfbuild.engine.slice import dataset_schema, write_slice
from odfbuild.engine.spark.engine import SparkEngine
from odfbuild.odf.model import ReadStepParquet
from odfbuild.odf.timestamp import Timestamp
from odfbuild.odf.vocabulary import Vocabulary
from tests.engine import inputs
from tests.ingest.run_ingest import ingest

NUMBERS = [0.5, math.nan, 0.25]
MANY = 150_000
"""So many that Spark reads the files itself."""


def system_columns(count: int) -> dict[str, pa.Array]:
    times = pa.array([0] * count, inputs.MILLIS)
    return {
        "offset": pa.array(range(count), pa.int64()),
        "op": pa.array([0] * count, pa.int32()),
        "system_time": times,
        "event_time": times,
    }


COLUMNS = {
    "number": (pa.array(NUMBERS * (MANY // 3)), "number > 1"),
    "single": (pa.array(NUMBERS * (MANY // 3), pa.float32()), "number > 1"),
    "equal": (pa.array(NUMBERS * (MANY // 3)), "number = double('NaN')"),
    "nested": (
        pa.array([{"a": each} for each in NUMBERS] * (MANY // 3)),
        "number.a >= 1",
    ),
}


@pytest.mark.spark
@pytest.mark.parametrize(("numbers", "condition"), COLUMNS.values(), ids=COLUMNS)
def test_a_query_finds_it_in_slices_whose_writers_left_it_out_of_statistics(
    tmp_path: Path, spark_engine: SparkEngine, numbers: pa.Array, condition: str
) -> None:
    table = pa.table({**system_columns(MANY), "number": numbers})
    file = tmp_path / "slice"
    pq.write_table(table, file)
    view = InputSlices(
        alias="cities",
        schema=table.schema,
        vocab=Vocabulary(),
        slices=(SliceFile(file),),
        first=0,
        last=MANY - 1,
    )
    query = inputs.sql(f"SELECT event_time, 1 AS one FROM cities WHERE {condition}")
    work = tmp_path / "work"
    work.mkdir()
    result = spark_engine.run(inputs.task(work, query, view))
    found = result.rows if result.rows is not None else inputs.read(result.parts)
    assert len(found) == MANY // 3


@pytest.mark.spark
def test_a_source_file_is_read_as_it_is(tmp_path: Path, spark_engine: SparkEngine) -> None:
    source = tmp_path / "source.parquet"
    times = pa.array([0] * len(NUMBERS), inputs.MILLIS)
    pq.write_table(pa.table({"event_time": times, "number": NUMBERS}), source)
    work = tmp_path / "work"
    work.mkdir()
    _, found = ingest(
        spark_engine,
        work,
        source,
        ReadStepParquet(),
        preprocess=inputs.sql("SELECT * FROM input WHERE number > 1"),
    )
    assert len(found) == 1


def test_slices_tell_no_least_and_greatest_number_so_that_other_readers_find_it(
    tmp_path: Path,
) -> None:
    table = pa.table({"event_time": pa.array([0] * len(NUMBERS), inputs.MILLIS), "number": NUMBERS})
    target = tmp_path / "slice"
    vocab = Vocabulary()
    write_slice(
        EngineResult(parts=(), schema=table.schema, rows=table),
        dataset="a",
        schema=dataset_schema(table.schema, vocab),
        vocab=vocab,
        first_offset=0,
        system_time=Timestamp(0),
        target=target,
    )
    with duckdb.connect() as database:
        asked = f"SELECT count(*) FROM read_parquet('{target}') WHERE number > 1"
        assert database.execute(asked).fetchall() == [(1,)]
    group = pq.read_metadata(target).row_group(0)
    names = pq.read_schema(target).names
    told = {name for at, name in enumerate(names) if group.column(at).is_stats_set}
    assert told == {"offset", "op", "system_time", "event_time"}
