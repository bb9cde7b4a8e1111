"""Slices and requests for engine tests."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from odfbuild.engine.contract import Engine, InputSlices, SliceFile, TransformTask, ValidateTask
from odfbuild.odf.model import SqlQueryStep, TransformSql
from odfbuild.odf.vocabulary import Vocabulary

MILLIS = pa.timestamp("ms", "UTC")
SCHEMA = pa.schema(
    [
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("op", pa.int32(), nullable=False),
        pa.field("system_time", MILLIS, nullable=False),
        pa.field("event_time", MILLIS, nullable=False),
        pa.field("city", pa.string()),
        pa.field("population", pa.int64()),
    ]
)


def rows(first: int, count: int, op: int = 0) -> pa.Table:
    numbers = list(range(first, first + count))
    return pa.table(
        [
            numbers,
            [op] * count,
            [0] * count,
            [n * 1000 for n in numbers],
            [f"city-{n % 7}" for n in numbers],
            numbers,
        ],
        schema=SCHEMA,
    )


def slices(folder: Path, *tables: pa.Table, alias: str = "cities") -> InputSlices:
    files = []
    for table in tables:
        file = folder / f"slice-{len(list(folder.iterdir()))}"
        pq.write_table(table, file)
        files.append(file)
    return InputSlices(
        alias=alias,
        schema=SCHEMA,
        vocab=Vocabulary(),
        slices=tuple(SliceFile(file) for file in files),
        first=tables[0]["offset"][0].as_py() if tables else None,
        last=tables[-1]["offset"][-1].as_py() if tables else None,
    )


def columns_of(
    engine: Engine, dataset: str, transform: TransformSql, inputs: Sequence[InputSlices]
) -> pa.Schema | None:
    """The columns of a result, told without records."""
    task = ValidateTask(
        dataset=dataset, transform=transform, inputs=tuple(inputs), vocab=Vocabulary()
    )
    return engine.run(task)


def sql(*queries: str) -> TransformSql:
    *steps, last = queries
    named = [SqlQueryStep(alias=f"step{i}", query=q) for i, q in enumerate(steps)]
    return TransformSql(engine="spark", queries=(*named, SqlQueryStep(query=last)))


def task(folder: Path, transform: TransformSql, *inputs: InputSlices) -> TransformTask:
    scratch = folder / f"scratch-{len(list(folder.iterdir()))}"
    scratch.mkdir()
    return TransformTask(
        dataset="tests", transform=transform, inputs=inputs, vocab=Vocabulary(), scratch=scratch
    )


def read(parts: Sequence[Path]) -> pa.Table:
    return pa.concat_tables([pq.read_table(part) for part in parts])
