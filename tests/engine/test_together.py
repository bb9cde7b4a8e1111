"""Steps that are carried out together give what each of them gives alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odfbuild.engine.contract import Together, TransformResult, TransformTask
from odfbuild.engine.slice import dataset_schema, write_slice
from odfbuild.engine.spark.engine import SparkEngine
from odfbuild.odf.model import TransformSql
from odfbuild.odf.timestamp import Timestamp
from tests.engine.inputs import sql
from tests.engine.stepwise import VOCAB, Source

pytestmark = pytest.mark.spark

COLUMNS = [pa.field("id", pa.int64()), pa.field("note", pa.string())]
ROW_BY_ROW = [
    sql("SELECT event_time, id * 2 AS id, upper(note) AS note FROM a WHERE id > 1"),
    sql("SELECT event_time, id FROM a UNION ALL SELECT event_time, -id FROM b WHERE id < 4"),
    sql("SELECT event_time, id FROM a UNION ALL SELECT event_time, -id FROM a WHERE id > 2"),
    sql("SELECT event_time, n, note FROM b LATERAL VIEW explode(sequence(0, id)) AS n"),
    sql(
        "SELECT *, id % 3 AS third FROM a",
        "WITH odd AS (SELECT event_time, third FROM step0 WHERE third = 1) "
        "SELECT * FROM odd UNION ALL SELECT event_time, id FROM b UNION ALL SELECT * FROM odd",
    ),
    sql("SELECT event_time, regexp_replace(note, 'x', cast(id AS STRING)) AS note FROM a"),
]

record = st.tuples(
    st.integers(-5_000, 5_000), st.integers(0, 5), st.sampled_from([None, "", "x", "Straße"])
)
block = st.lists(st.tuples(record, st.sampled_from([0, 0, 0, 1, 2, 3])), max_size=4)
appended = st.lists(st.tuples(record, st.just(0)), max_size=4)
of_both = st.tuples(block, block) | st.tuples(appended, appended)


def steps_over(
    folder: Path, transform: TransformSql, blocks: Sequence[Any], gap: int | None = None
) -> list[TransformTask]:
    """A task for each of `blocks`, which come to the inputs a and b; that of `gap` is left out."""
    sources = [Source(folder, alias, COLUMNS) for alias in "ab"]
    tasks = []
    for number, of in enumerate(blocks):
        for source, rows in zip(sources, of, strict=True):
            source.add([row for row, _ in rows], watermark=None, ops=[op for _, op in rows])
        inputs = [each.between(number, number + 1) for each in sources]
        tasks.append(
            TransformTask(
                dataset="tests",
                transform=transform,
                inputs=tuple(inputs),
                vocab=VOCAB,
                scratch=Path(mkdtemp(dir=folder)),
            )
        )
    return [task for number, task in enumerate(tasks) if number != gap]


def committed(result: TransformResult, folder: Path) -> tuple[str, int] | None:
    """Logical hash and number of the records as they would be committed."""
    staged = write_slice(
        result,
        dataset="tests",
        schema=dataset_schema(result.schema, VOCAB),
        vocab=VOCAB,
        first_offset=7,
        system_time=Timestamp.from_millis(0),
        target=Path(mkdtemp(dir=folder)) / "slice",
    )
    return (str(staged.data.logical_hash), staged.records) if staged else None


def alone(engine: SparkEngine, tasks: Sequence[TransformTask]) -> list[TransformResult]:
    return [engine.run(replace(task, scratch=Path(mkdtemp(dir=task.scratch)))) for task in tasks]


@settings(max_examples=15)
@given(
    transform=st.sampled_from(ROW_BY_ROW),
    blocks=st.lists(
        st.tuples(block, block) | st.tuples(appended, appended), min_size=2, max_size=5
    ),
    gap=st.none() | st.integers(0, 4),
)
def test_steps_together_give_what_each_gives_alone(
    spark_engine: SparkEngine,
    tmp_path_factory: pytest.TempPathFactory,
    transform: TransformSql,
    blocks: Sequence[Any],
    gap: int | None,
) -> None:
    folder = tmp_path_factory.mktemp("steps")
    tasks = steps_over(folder, transform, blocks, gap)
    together = spark_engine.run(Together(tuple(tasks)))
    assert together is not None
    one_by_one = alone(spark_engine, tasks)
    assert [e.schema for e in together] == [e.schema for e in one_by_one]
    assert [committed(e, folder) for e in together] == [committed(e, folder) for e in one_by_one]


def test_more_records_than_are_handed_over_are_the_same_too(
    spark_engine: SparkEngine, tmp_path: Path
) -> None:
    blocks = [([((n, n % 5, f"{n}-{step}"), 0) for n in range(9_000)], []) for step in range(3)]
    tasks = steps_over(tmp_path, ROW_BY_ROW[0], blocks)
    together = spark_engine.run(Together(tuple(tasks)))
    assert together is not None
    hashes = [committed(each, tmp_path) for each in together]
    assert hashes == [committed(each, tmp_path) for each in alone(spark_engine, tasks)]
    assert len({*hashes}) == 3


TWO = [([((0, 1, "x"), 0)], []), ([((1, 2, "y"), 0)], [])]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT max(event_time) AS event_time, count(*) AS n FROM a",
        "SELECT event_time, op FROM a",
        "SELECT event_time, cast(note AS INT) AS n FROM a",
    ],
    ids=["handles records together", "gives operations itself", "fails for a record"],
)
def test_other_queries_are_carried_out_one_by_one(
    spark_engine: SparkEngine, tmp_path: Path, query: str
) -> None:
    assert spark_engine.run(Together(tuple(steps_over(tmp_path, sql(query), TWO)))) is None


def test_a_slice_that_holds_more_than_its_step_reads_is_carried_out_alone(
    spark_engine: SparkEngine, tmp_path: Path
) -> None:
    first, second = steps_over(tmp_path, ROW_BY_ROW[0], TWO)
    more, other = second.inputs
    pq.write_table(pa.concat_tables([pq.read_table(more.files[0])] * 2), tmp_path / "more.parquet")
    longer = replace(more, slices=(replace(more.slices[0], path=tmp_path / "more.parquet"),))
    tasks = [first, replace(second, inputs=(longer, other))]
    assert spark_engine.run(Together(tuple(tasks))) is None
