"""An engine whose transformations go through the protocol, for code that speaks to an engine.

It keeps checkpoints by dataset, as the chain of a coordinator does; all else is asked of the engine
directly.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from odfbuild.engine.contract import (
    Engine,
    InputSlices,
    TransformResult,
    TransformTask,
)
from odfbuild.errors import QueryError
from odfbuild.odf.identity import DatasetAlias
from odfbuild.odf.model.data import OffsetInterval
from odfbuild.odf.model.messages import (
    DatasetVocabulary,
    TransformRequest,
    TransformRequestInput,
    TransformResponseSuccess,
    Watermark,
)
from odfbuild.odf.timestamp import Timestamp
from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.sql.mode import RECORD_BY_RECORD
from tests.engine.process.coordinator import NOW, Line, id_of


@dataclass
class Wired:
    """`contract.Engine`, through a line."""

    engine: Engine
    line: Line
    folder: Path
    steps: int = 0
    checkpoints: dict[str, Path] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def run(self, request: Any) -> Any:
        if isinstance(request, TransformTask):
            return self.transform(request)
        return self.engine.run(request)

    def transform(self, task: TransformTask) -> TransformResult:
        self.steps += 1
        out = self.folder / f"step-{self.steps}"
        out.mkdir(parents=True)
        records = sum(pq.read_metadata(file).num_rows for file in task.previous())
        known = self.checkpoints.get(task.dataset) if task.previous() else None
        answer = self.line.transform(
            TransformRequest(
                dataset_id=id_of(task.dataset),
                dataset_alias=DatasetAlias(task.dataset),
                system_time=NOW,
                vocab=_vocabulary(task.vocab),
                transform=task.transform,
                query_inputs=tuple(_input(each, out) for each in task.inputs),
                next_offset=records,
                prev_checkpoint_path=None if known is None else str(known),
                new_checkpoint_path=str(out / "checkpoint"),
                new_data_path=str(out / "data"),
            )
        )
        if not isinstance(answer, TransformResponseSuccess):
            raise QueryError(answer.message, code=answer.message[:5], dataset=task.dataset)
        self.checkpoints[task.dataset] = out / "checkpoint"
        schema = pq.read_schema(out / "data")
        system = (task.vocab.offset, task.vocab.operation_type, task.vocab.system_time)
        return TransformResult(
            parts=(out / "data",),
            schema=pa.schema([each for each in schema if each.name not in system]),
            choice=RECORD_BY_RECORD,
        )


def _vocabulary(vocab: Vocabulary) -> DatasetVocabulary:
    return DatasetVocabulary(
        offset_column=vocab.offset,
        operation_type_column=vocab.operation_type,
        system_time_column=vocab.system_time,
        event_time_column=vocab.event_time,
    )


def _input(each: InputSlices, out: Path) -> TransformRequestInput:
    schema = out / f"schema-{id_of(each.alias).multibase}"
    pq.write_table(each.schema.empty_table(), schema)
    return TransformRequestInput(
        dataset_id=id_of(each.alias),
        dataset_alias=DatasetAlias("an-input"),
        query_alias=each.alias,
        vocab=_vocabulary(each.vocab),
        offset_interval=OffsetInterval(start=each.first, end=each.last) if each.slices else None,
        data_paths=tuple(str(file) for file in each.files),
        schema_file=str(schema),
        explicit_watermarks=()
        if each.watermark is None
        # Of a block that came after all slices: none of them was late.
        else (Watermark(system_time=Timestamp(1 << 62), event_time=each.watermark),),
    )
