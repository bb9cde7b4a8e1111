"""What an engine reads and writes in one step, and the request that names it.

Source: Open Data Fabric, "Execute Query"; how peers fill requests.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.engine.contract import InputSlices, TransformTask
from odfbuild.odf.identity import DatasetAlias, DatasetId, name_like
from odfbuild.odf.model import OffsetInterval, SqlQueryStep, TransformSql
from odfbuild.odf.model.messages import (
    DatasetVocabulary,
    TransformRequest,
    TransformRequestInput,
)
from odfbuild.odf.timestamp import Timestamp
from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.store.merged_copies import NO_COPIES
from odfbuild.values import Value

if TYPE_CHECKING:
    import pyarrow as pa

_NOBODY = DatasetId(bytes(32))


class StepFiles(Value):
    """Files of this machine: those of each input, what the engine kept, and where it writes."""

    folder: Path
    slices: tuple[tuple[Path, ...], ...]
    schemas: tuple[Path, ...]
    checkpoint: Path | None

    @property
    def out(self) -> Path:
        """The only folder that the engine writes to."""
        return self.folder / "out"

    @property
    def data(self) -> Path:
        """Where its records will be."""
        return self.out / "data"

    @property
    def new_checkpoint(self) -> Path:
        """Where it may keep what it needs for the next step."""
        return self.out / "checkpoint"

    @property
    def read(self) -> tuple[Path, ...]:
        """The folders that it reads, each once: many files would be as many mounts."""
        found = [*self.schemas, *(file for each in self.slices for file in each)]
        found += [self.checkpoint] if self.checkpoint else []
        return tuple(dict.fromkeys(file.parent for file in found))


def step_files(task: TransformTask) -> StepFiles:
    """Write what an engine needs besides the data files, which are slices as peers have them."""
    task = replace(task, inputs=tuple(replace(each, copies=NO_COPIES) for each in task.inputs))
    folder = Path(tempfile.mkdtemp(prefix="engine-", dir=task.scratch))
    files = StepFiles(
        folder,
        tuple(tuple(_readable(each, folder, n)) for n, each in enumerate(task.inputs)),
        tuple(_schema_file(each, folder, n) for n, each in enumerate(task.inputs)),
        task.checkpoint(),
    )
    files.out.mkdir()
    # The program may run as any user of its image; nobody else gets into the folder around it.
    files.out.chmod(0o777)
    return files


def transform_request(
    task: TransformTask, files: StepFiles, inside: Callable[[Path], str]
) -> TransformRequest:
    """The request for a step; `inside` tells how the engine calls a file of this machine."""
    inputs = zip(task.inputs, files.slices, files.schemas, strict=True)
    return TransformRequest(
        dataset_id=task.dataset_id or _NOBODY,
        dataset_alias=DatasetAlias.parse(task.dataset),
        system_time=task.system_time or Timestamp.now(),
        vocab=_vocabulary(task.vocab),
        transform=in_steps(task.transform),
        query_inputs=tuple(_input(each, slices, file, inside) for each, slices, file in inputs),
        next_offset=task.first_offset,
        prev_checkpoint_path=inside(files.checkpoint) if files.checkpoint else None,
        new_checkpoint_path=inside(files.new_checkpoint),
        new_data_path=inside(files.data),
    )


def in_steps(transform: TransformSql) -> TransformSql:
    """The transformation with all queries in `queries`, which is all that engines read."""
    if transform.query is None:
        return transform
    return replace(transform, query=None, queries=(SqlQueryStep(query=transform.query),))


def _input(
    given: InputSlices, slices: tuple[Path, ...], schema: Path, inside: Callable[[Path], str]
) -> TransformRequestInput:
    interval = None
    if given.first is not None and given.last is not None:
        interval = OffsetInterval(start=given.first, end=given.last)
    return TransformRequestInput(
        dataset_id=given.dataset_id or _NOBODY,
        dataset_alias=DatasetAlias.parse(given.dataset or name_like(given.alias) or "input"),
        query_alias=given.alias,
        vocab=_vocabulary(given.vocab),
        offset_interval=interval,
        data_paths=tuple(map(inside, slices)) if interval else (),
        schema_file=inside(schema),
        explicit_watermarks=given.watermarks,
    )


def _vocabulary(vocab: Vocabulary) -> DatasetVocabulary:
    return DatasetVocabulary(
        offset_column=vocab.offset,
        operation_type_column=vocab.operation_type,
        system_time_column=vocab.system_time,
        event_time_column=vocab.event_time,
    )


# --- In the types that all engines read ---


def _readable(given: InputSlices, folder: Path, number: int) -> Iterator[Path]:
    """The data files; copies of those whose system columns are of types that engines refuse."""
    if given.first is None:
        return
    if _plain(given.schema, given.vocab) == given.schema:
        yield from given.files
        return
    import pyarrow.parquet as pq

    from odfbuild.records.slice_file import with_statistics

    target = folder / f"in-{number}"
    target.mkdir()
    for file in given.files:
        with pq.ParquetFile(file) as source:
            schema = _plain(source.schema_arrow, given.vocab)
            if schema == source.schema_arrow:
                yield file
                continue
            with pq.ParquetWriter(
                target / file.name,
                schema,
                store_schema=False,
                write_statistics=with_statistics(schema),
            ) as writer:
                for batch in source.iter_batches():
                    writer.write_batch(batch.cast(schema))
        yield target / file.name


def _schema_file(given: InputSlices, folder: Path, number: int) -> Path:
    import pyarrow.parquet as pq

    own = folder / "in"
    own.mkdir(exist_ok=True)
    file = own / f"schema-{number}.parquet"
    schema = _plain(given.schema, given.vocab)
    pq.write_table(schema.empty_table(), file, store_schema=False)
    return file


def _plain(schema: pa.Schema, vocab: Vocabulary) -> pa.Schema:
    """A schema whose offsets are Int64 and whose operations are Int32, as peers write them."""
    import pyarrow as pa

    wanted = {vocab.offset: pa.int64(), vocab.operation_type: pa.int32()}
    return pa.schema(
        [
            column.with_type(wanted[column.name]) if column.name in wanted else column
            for column in schema
        ],
        schema.metadata,
    )
