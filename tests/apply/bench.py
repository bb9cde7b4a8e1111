"""A workspace with roots and derivatives, fed by hand and derived without a JVM."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from odfbuild.apply.derive import read_inputs, stage_transform
from odfbuild.apply.transaction import Transaction
from odfbuild.engine.contract import EngineResult
from odfbuild.engine.slice import dataset_schema, write_slice
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.chain.step import is_due
from odfbuild.odf.model import (
    AddData,
    DatasetKind,
    ExecuteTransform,
    MetadataEvent,
    SetDataSchema,
    SetTransform,
    SqlQueryStep,
    TransformInput,
    TransformSql,
)
from odfbuild.odf.schema.arrow_schema import to_raw
from odfbuild.odf.timestamp import Timestamp
from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.store.workspace import Workspace
from tests.apply.plain_engine import RESULT, PlainEngine

NOW = Timestamp.parse("2050-01-01T00:00:00Z")
VOCAB = Vocabulary()


class Bench:
    """A workspace with roots and derivatives, fed by hand."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workspace = Workspace(folder / "chains", folder / "keys", folder / "cache")
        self.scratches = 0

    def scratch(self) -> Path:
        self.scratches += 1
        made = self.folder / f"scratch-{self.scratches}"
        made.mkdir()
        return made

    def root(self, name: str) -> None:
        schema = SetDataSchema(raw_arrow_schema=to_raw(dataset_schema(RESULT, VOCAB)))
        self.workspace.create(name, DatasetKind.Root, [schema], NOW)

    def now(self, name: str) -> Projection:
        found = self.workspace.projection(name)
        assert found is not None
        return found

    def append(self, name: str, *events: MetadataEvent) -> None:
        self.workspace.dataset(name).append(self.now(name).head, events, NOW)

    def add(self, name: str, ids: Sequence[int] = (), watermark: str | None = None) -> None:
        """Commit records with these ids, or a watermark alone."""
        state = self.now(name)
        assert state.schema is not None
        scratch = self.scratch()
        data = None
        if ids:
            rows = pa.table(
                [
                    pa.array([i] * len(ids), t) if n == "event_time" else pa.array(ids, t)
                    for i, (n, t) in enumerate(zip(RESULT.names, RESULT.types, strict=True))
                ],
                schema=RESULT,
            )
            part = scratch / "part.parquet"
            pq.write_table(rows, part)
            staged = write_slice(
                EngineResult(parts=(part,), schema=RESULT),
                dataset=name,
                schema=dataset_schema(RESULT, VOCAB),
                vocab=VOCAB,
                first_offset=0 if state.last_offset is None else state.last_offset + 1,
                system_time=NOW,
                target=scratch / "slice.parquet",
            )
            assert staged is not None
            self.workspace.dataset(name).put_object("data", staged.path, staged.data.physical_hash)
            data = staged.data
        mark = Timestamp.parse(watermark) if watermark else state.watermark
        self.append(name, AddData(prev_offset=state.last_offset, new_data=data, new_watermark=mark))

    def derive(self, name: str, *inputs: str, query: str = "SELECT value * 10") -> None:
        self.workspace.create(
            name, DatasetKind.Derivative, [self.transform(*inputs, query=query)], NOW
        )

    def transform(self, *inputs: str, query: str = "SELECT value * 10") -> SetTransform:
        return SetTransform(
            inputs=tuple(
                TransformInput(dataset_ref=self.now(each).dataset_id, alias=each) for each in inputs
            ),
            transform=TransformSql(engine="spark", queries=(SqlQueryStep(query=query),)),
        )

    def step(self, name: str) -> list[str] | None:
        """Do the next step of a derivative; kinds of the new events, `None`: nothing is due."""
        state = self.now(name)
        inputs = read_inputs(self.workspace, name, state)
        if inputs is None or not is_due(
            (i.step for i in inputs), has_schema=state.schema is not None
        ):
            return None
        transaction = Transaction(self.workspace, name, DatasetKind.Derivative, state, NOW)
        stage_transform(transaction, PlainEngine, inputs, self.scratch())
        transaction.commit()
        return [type(event).__name__ for event in transaction.events]

    def last(self, name: str) -> ExecuteTransform:
        store = self.workspace.dataset(name)
        event = store.read_block(self.now(name).head).event
        assert isinstance(event, ExecuteTransform)
        return event

    def values(self, name: str) -> pa.ChunkedArray:
        """The column `value` of all records, oldest first."""
        store = self.workspace.dataset(name)
        slices = [
            block.event.new_data
            for _, block in reversed(list(store.walk(self.now(name).head)))
            if isinstance(block.event, AddData | ExecuteTransform) and block.event.new_data
        ]
        files = [store.object_path("data", s.physical_hash) for s in slices]
        return pa.concat_tables([pq.read_table(file) for file in files])["value"]
