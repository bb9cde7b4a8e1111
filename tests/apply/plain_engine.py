"""An engine without a JVM for the projects of `tiny`.

It reads CSV and JSON, appends or merges by `id`, multiplies, and honours what the coordinator
relies on (offset intervals, order, schema of the result), so that a step can be done, and killed,
in milliseconds. What queries say is read as far as tests need it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.json as json
import pyarrow.parquet as pq

from odfbuild.engine.contract import (
    EngineInfo,
    EngineResult,
    IngestTask,
    ScreenTask,
    StepProgress,
    Together,
    TransformResult,
    TransformTask,
    ValidateTask,
)
from odfbuild.engine.in_pieces import CheckTask, PiecesTask, RootTask, WholeTask, WrittenRoot
from odfbuild.odf.model import (
    MergeStrategyAppend,
    MergeStrategyChangelogStream,
    ReadStepNdJson,
    ReadStepParquet,
)
from odfbuild.sql.mode import RECORD_BY_RECORD

MILLIS = pa.timestamp("ms", "UTC")
RESULT = pa.schema([("event_time", MILLIS), ("id", pa.int64()), ("value", pa.int64())])


class PlainEngine:
    """`contract.Engine` in Arrow; understands `value * N`, `WHERE id > N`, and `value` alone."""

    def run(self, request: Any) -> Any:
        if isinstance(request, TransformTask):
            return self.transform(request)
        if isinstance(request, IngestTask):
            return self.ingest(request)
        if isinstance(request, Together):
            tasks: tuple[Any, ...] = request.tasks
            if isinstance(tasks[0], IngestTask):
                return self.ingest_together(tasks)
            return [self.transform(task) for task in tasks]
        if isinstance(request, RootTask):
            return WrittenRoot(why="it has no executors")
        if isinstance(request, ScreenTask | PiecesTask | WholeTask | CheckTask):
            return None  # any query is right, and it has no executors
        assert isinstance(request, ValidateTask)
        return RESULT

    def transform(self, task: TransformTask) -> TransformResult:
        query = (task.transform.queries or ())[-1].query
        factor = re.search(r"value \* (\d+)", query)
        above = re.search(r"id > (\d+)", query)
        found = [RESULT.empty_table()]
        for each in task.inputs:
            for file in each.files:
                table = pq.ParquetFile(file).read()
                offsets = table["offset"]
                wanted = pc.and_(
                    pc.greater_equal(offsets, each.first), pc.less_equal(offsets, each.last)
                )
                found.append(table.filter(wanted).select(RESULT.names).cast(RESULT))
        rows = pa.concat_tables(found)
        if above:
            rows = rows.filter(pc.greater(rows["id"], int(above[1])))
        values = pc.multiply(rows["value"], int(factor[1]) if factor else 1)
        result = self._result(rows.set_column(2, "value", values), task)
        return TransformResult(
            parts=result.parts,
            schema=result.schema,
            choice=RECORD_BY_RECORD,
            read=frozenset(file for each in task.inputs for file in each.files),
        )

    def ingest_together(self, tasks: Sequence[IngestTask]) -> Sequence[EngineResult] | None:
        """One by one."""
        return None

    def ingest(self, task: IngestTask) -> EngineResult:
        rows = _read(task)
        if isinstance(task.merge, MergeStrategyAppend | MergeStrategyChangelogStream):
            return self._result(rows, task)
        for file in task.history.files():
            known = pq.ParquetFile(file).read(columns=["id"])["id"]
            rows = rows.filter(pc.invert(pc.is_in(rows["id"], known.combine_chunks())))
        return self._result(rows, task)

    def _result(self, rows: pa.Table, task: TransformTask | IngestTask) -> EngineResult:
        part = task.scratch / "part.parquet"
        pq.write_table(rows.cast(RESULT), part)
        return EngineResult(parts=(part,), schema=RESULT)

    def progress(self, dataset: str) -> StepProgress | None:
        return None

    def about(self) -> EngineInfo:
        return EngineInfo("this process", "0", "none")

    def stop(self) -> None:
        pass


def _read(task: IngestTask) -> pa.Table:
    types = {f.name: f.type for f in RESULT} | {"event_time": pa.timestamp("ms")}
    if isinstance(task.read, ReadStepNdJson):
        schema = json.ParseOptions(
            explicit_schema=pa.schema(types.items()), unexpected_field_behavior="ignore"
        )
        return json.read_json(task.file, parse_options=schema).cast(RESULT)
    if isinstance(task.read, ReadStepParquet):
        return pq.read_table(task.file).select(RESULT.names).cast(RESULT)
    options = csv.ConvertOptions(column_types=types)
    return csv.read_csv(task.file, convert_options=options).cast(RESULT)
