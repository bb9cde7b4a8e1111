"""Chains of inputs and of one result in a folder, stepped through as the coordinator does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from odfbuild.engine.contract import (
    Engine,
    Extent,
    InputSlices,
    SliceFile,
    TransformTask,
)
from odfbuild.engine.slice import dataset_schema, write_slice
from odfbuild.odf.chain.step import output_watermark
from odfbuild.odf.model import TransformSql
from odfbuild.odf.timestamp import Timestamp
from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.sql.mode import Mode
from odfbuild.store.merged_copies import MergedCopies

VOCAB = Vocabulary()
MILLIS = pa.timestamp("ms", "UTC")
SYSTEM = [
    pa.field("offset", pa.int64(), nullable=False),
    pa.field("op", pa.int32(), nullable=False),
    pa.field("system_time", MILLIS, nullable=False),
    pa.field("event_time", MILLIS, nullable=False),
]
SIGN = {0: 1, 1: -1, 2: -1, 3: 1}


def millis(text: str) -> int:
    """Milliseconds of `HH:MM` or `HH:MM:SS` on 1 May 2024, or of a whole date and time."""
    if "T" not in text:
        text = f"2024-05-01T{text}" + (":00" if text.count(":") == 1 else "")
    return Timestamp.parse(text + "Z").millis


@dataclass
class Source:
    """An input: its blocks, each a file (or none) and the watermark after it.

    The system time of a block is its number in seconds.
    """

    folder: Path
    alias: str
    columns: Sequence[pa.Field]
    blocks: list[tuple[SliceFile | None, int, Timestamp | None]] = field(default_factory=list)
    next_offset: int = 0

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([*SYSTEM, *self.columns])

    def add(
        self, rows: Sequence[Sequence[Any]], watermark: str | int | None = "max", ops: Any = None
    ) -> None:
        """Append a block: rows begin with the event time; the watermark is the highest one."""
        times = [r[0] if isinstance(r[0], int) else millis(r[0]) for r in rows]
        promised = self.blocks[-1][2] if self.blocks else None
        if watermark == "max":
            reached: int | None = max(times, default=None)
        elif isinstance(watermark, str):
            reached = millis(watermark)
        else:
            reached = watermark
        after = promised
        if reached is not None and (promised is None or reached > promised.millis):
            after = Timestamp.from_millis(reached)
        if not rows:
            self.blocks.append((None, self.next_offset, after))
            return
        count = len(rows)
        table = pa.table(
            [
                list(range(self.next_offset, self.next_offset + count)),
                list(ops or [0] * count),
                [len(self.blocks) * 1000] * count,
                times,
                *([r[1 + i] for r in rows] for i in range(len(self.columns))),
            ],
            schema=self.schema,
        )
        path = self.folder / f"{self.alias}-{len(self.blocks)}.parquet"
        pq.write_table(table, path)
        self.next_offset += count
        self.blocks.append((SliceFile(path, promised), self.next_offset, after))

    def between(self, first: int, last: int) -> InputSlices:
        """Blocks `[first, last)` as a step reads them."""
        before = self.blocks[first - 1] if first else (None, 0, None)
        after = self.blocks[last - 1] if last else (None, 0, None)
        slices = tuple(b[0] for b in self.blocks[first:last] if b[0])
        earlier = tuple(b[0] for b in self.blocks[:first] if b[0])
        return InputSlices(
            alias=self.alias,
            schema=self.schema,
            vocab=VOCAB,
            slices=slices,
            first=before[1] if slices else None,
            last=after[1] - 1 if slices else None,
            watermark_before=before[2],
            watermark=after[2],
            earlier=lambda: earlier,
            copies=MergedCopies(self.folder, side_cars=self.folder / "side-cars" / self.alias),
        )


@dataclass
class Derived:
    """A result and its steps so far."""

    engine: Engine
    folder: Path
    transform: TransformSql
    sources: Sequence[Source]
    done: list[int] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    hashes: list[str] = field(default_factory=list)
    tasks: list[TransformTask] = field(default_factory=list)
    records: int = 0
    watermark: Timestamp | None = None
    mode: Mode | None = None
    reason: str = ""
    schema: pa.Schema | None = None
    continued: bool = False
    extent: Extent | None = None
    system_time: Timestamp = Timestamp.from_millis(0)  # noqa: RUF009

    def step(self, *upto: int) -> list[tuple[Any, ...]]:
        """Read the inputs up to these numbers of blocks (all without); returns the new records."""
        last = upto or tuple(len(s.blocks) for s in self.sources)
        done = self.done or [0] * len(self.sources)
        inputs = tuple(s.between(a, b) for s, a, b in zip(self.sources, done, last, strict=True))
        self.folder.mkdir(exist_ok=True)
        scratch = self.folder / f"step-{len(list(self.folder.iterdir()))}"
        scratch.mkdir()
        previous = tuple(self.files)
        task = TransformTask(
            dataset="derived",
            transform=self.transform,
            inputs=inputs,
            vocab=VOCAB,
            scratch=scratch,
            watermark_before=self.watermark,
            previous=lambda: previous,
            copies=MergedCopies(self.folder, side_cars=self.folder / "side-cars"),
            continued=self.continued and bool(self.done),
        )
        result = self.engine.run(task)
        self.watermark = output_watermark(self.watermark, [each.watermark for each in inputs])
        self.mode, self.reason = result.choice.mode, result.choice.reason
        self.extent = result.extent
        self.schema = self.schema or dataset_schema(result.schema, VOCAB)
        self.done = list(last)
        staged = write_slice(
            result,
            dataset="derived",
            schema=self.schema,
            vocab=VOCAB,
            first_offset=self.records,
            system_time=self.system_time,
            target=scratch / f"slice-{len(self.files)}.parquet",
        )
        if staged is None:
            return []
        self.tasks.append(task)
        self.files.append(staged.path)
        self.hashes.append(str(staged.data.logical_hash))
        self.records += staged.records
        return rows_of(pq.read_table(staged.path))

    def all(self) -> list[tuple[Any, ...]]:
        """All records in order, without offset and system time."""
        return [row for file in self.files for row in rows_of(pq.read_table(file))]

    def amounts_to(self) -> list[tuple[Any, ...]]:
        """What the records amount to, sorted, without operations."""
        counts: dict[tuple[Any, ...], int] = {}
        for op, *values in self.all():
            key = tuple(values)
            counts[key] = counts.get(key, 0) + SIGN[op]
            assert counts[key] >= 0, f"{key} was taken away before it was there"
        return sorted((row for row, n in counts.items() for _ in range(n)), key=repr)


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """Rows as tuples of operation, event time as text, and the data columns."""
    shown = table.drop_columns(["offset", "system_time"])
    return [tuple(_shown(v) for v in row.values()) for row in shown.to_pylist()]


def _shown(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple((name, _shown(inner)) for name, inner in value.items())
    if isinstance(value, list):
        return tuple(map(_shown, value))
    if hasattr(value, "isoformat") and hasattr(value, "hour"):
        return value.strftime("%H:%M" if value.date().isoformat() == "2024-05-01" else "%FT%H:%M")
    return value
