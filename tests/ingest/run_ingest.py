"""Ingest rows and text through the real engine, keeping history as a dataset would."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from odfbuild.engine.contract import Engine, EngineResult, IngestTask
from odfbuild.engine.slice import records_of
from odfbuild.odf.model import (
    DataSlice,
    MergeStrategy,
    MergeStrategyAppend,
    OffsetInterval,
    ReadStep,
    ReadStepParquet,
)
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp
from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.store.committed import CommittedSlice
from odfbuild.store.merged_copies import NO_COPIES, MergedCopies

NOBODY = Multihash.sha3_256(b"")
WHOLE = DataSlice(
    logical_hash=NOBODY,
    physical_hash=NOBODY,
    offset_interval=OffsetInterval(start=0, end=0),
    size=0,
)


@dataclass(frozen=True)
class _Stored:
    """Objects of a dataset, of which there is one."""

    file: Path

    def object_path(self, kind: str, name: Multihash) -> Path:
        return self.file

    def bring(self, kind: str, name: Multihash) -> Path:
        return self.file

    def bring_all(self, kind: str, names: Iterable[Multihash]) -> tuple[Path, ...]:
        return tuple(self.file for _ in names)


@dataclass(frozen=True)
class _OneFile:
    """A history that stands in a file, without a chain and without side-cars."""

    file: Path | None
    head: None = None
    side_cars: None = None

    def slices(self, after: object = None) -> tuple[CommittedSlice, ...]:
        store: Any = _Stored(self.file)
        return (CommittedSlice(store, WHOLE),) if self.file else ()

    def is_short(self, records: int, blocks: int) -> bool:
        return True

    def copies(self) -> MergedCopies:
        return NO_COPIES

    def files(self) -> tuple[Path, ...]:
        return (self.file,) if self.file else ()


OneFile: Any = _OneFile
"""Stands in for `Committed`."""

MILLIS = pa.timestamp("ms", "UTC")
LATE = Timestamp.parse("2050-01-01T00:00:00Z")


def ingest(
    engine: Engine,
    folder: Path,
    file: Path,
    read: ReadStep | None = None,
    merge: MergeStrategy | None = None,
    vocab: Vocabulary | None = None,
    history: Path | None = None,
    preprocess: Any = None,
    **more: Any,
) -> tuple[EngineResult, pa.Table]:
    scratch = folder / f"scratch-{len(list(folder.iterdir()))}"
    scratch.mkdir()
    result = engine.run(
        IngestTask(
            dataset="tests",
            file=file,
            source_name=file.name,
            read=read or ReadStepParquet(),
            preprocess=preprocess,
            merge=merge or MergeStrategyAppend(),
            vocab=vocab or Vocabulary(),
            history=OneFile(history),
            history_schema=pq.read_schema(history) if history else None,
            event_time=LATE,
            scratch=scratch,
            duplicate_keys="warn",  # what is committed then is what the reference commits
            blank_event_times="fill",  # as well
            **more,
        )
    )
    parts = [
        batch.select(result.schema.names) for batch in records_of(result, vocab or Vocabulary())
    ]
    if parts:
        return result, pa.Table.from_batches(parts)
    if result.rows is not None:
        return result, result.rows.select(result.schema.names)
    return result, pq.read_table(result.parts[0], columns=result.schema.names)


def write_history(file: Path, table: pa.Table, vocab: Vocabulary | None = None) -> Path:
    """Store a result with offsets from 0, as apply does."""
    vocab = vocab or Vocabulary()
    offsets = pa.array(range(table.num_rows), pa.int64())
    times = pa.array([0] * table.num_rows, MILLIS)
    if vocab.offset in table.column_names:
        table = table.drop_columns([vocab.offset])
    table = table.add_column(0, vocab.offset, offsets).add_column(2, vocab.system_time, times)
    pq.write_table(table, file)
    return file
