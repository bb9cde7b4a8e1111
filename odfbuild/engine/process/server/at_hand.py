"""The files of a request, brought into the form in which the engine reads them.

Slices may hold more records than their interval, come in another order, or lie where Spark must not
read. What is wrong with a file is told by its path, before Spark sees it.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odfbuild.engine.contract import SliceFile
from odfbuild.engine.process.server.problems import malformed
from odfbuild.engine.settings import FileAccess
from odfbuild.engine.spark.session.sandbox import beyond
from odfbuild.errors import EngineError
from odfbuild.odf.model.data import OffsetInterval
from odfbuild.odf.model.messages import Watermark
from odfbuild.odf.timestamp import Timestamp
from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.values import Value


class Desk(Value):
    """A folder for copies, and what Spark may read besides (`None`: anything)."""

    scratch: Path
    reach: FileAccess | None = None

    def readable(self, file: Path) -> Path:
        """`file`, or a copy of it where Spark may read it."""
        if self.reach is None or not beyond(file, self.reach):
            return file
        copy = self.another()
        shutil.copyfile(file, copy)
        return copy

    def another(self) -> Path:
        """A name for a new file."""
        return self.scratch / f"file-{secrets.token_hex(8)}"


def schema_in(file: Path) -> pa.Schema:
    """The columns of a Parquet file; raises `EngineError` E1404 where it is none."""
    try:
        return pq.read_schema(file)
    except (OSError, pa.ArrowException) as error:
        raise unreadable(file, error) from None


def unreadable(file: Path, error: Exception) -> EngineError:
    """The error of a file that is missing or damaged."""
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return malformed(f"{file} cannot be read: {why}")


def check_types(file: Path, schema: pa.Schema) -> None:
    """Raise `EngineError` E1404 where a column of a file is of another kind than in `schema`."""
    found = schema_in(file)
    for name in found.names:
        if name in schema.names:
            is_, wanted = found.field(name).type, schema.field(name).type
            kinds = {_kind(is_), _kind(wanted)}
            # Files without a schema of Arrow have durations as numbers, and the like.
            if len(kinds) > 1 and None not in kinds:
                raise malformed(
                    f"column '{name}' of {file} is {is_}, but the input has it as {wanted}"
                )


_KINDS = (
    ("a truth value", pa.types.is_boolean),
    ("a number", pa.types.is_integer),
    ("a fraction", pa.types.is_floating),
    ("a decimal", pa.types.is_decimal),
    ("text", pa.types.is_string),
    ("text", pa.types.is_large_string),
    ("text", pa.types.is_string_view),
    ("bytes", pa.types.is_binary),
    ("bytes", pa.types.is_large_binary),
    ("bytes", pa.types.is_binary_view),
    ("bytes", pa.types.is_fixed_size_binary),
    ("a time", pa.types.is_timestamp),
    ("a date", pa.types.is_date),
    ("a time of day", pa.types.is_time),
    ("a list", pa.types.is_list),
    ("a list", pa.types.is_large_list),
    ("a list", pa.types.is_fixed_size_list),
    ("a list", pa.types.is_list_view),
)


def _kind(type: pa.DataType) -> str | None:
    return next((name for name, holds in _KINDS if holds(type)), None)


def slices_of(
    paths: Sequence[Path],
    interval: OffsetInterval,
    watermarks: Sequence[Watermark],
    before: Timestamp | None,
    vocab: Vocabulary,
    desk: Desk,
) -> tuple[SliceFile, ...]:
    """The records of `interval`, in files by offset, each with the watermark that it came behind.

    A watermark has the system time of its block, as all records of its slice do: those with an
    earlier one held when the slice came. `before` held before all of them.
    """
    found = sorted(_slices(paths, interval, vocab, desk), key=lambda each: each.first)
    records, expected = sum(each.records for each in found), interval.end - interval.start + 1
    if records != expected:
        raise malformed(
            f"the slices hold {records} records with offsets {interval.start} to {interval.end}, "
            f"and {expected} are expected"
        )
    return tuple(
        SliceFile(each.path, _promised(each.system_time, watermarks, before)) for each in found
    )


class _Slice(Value):
    path: Path
    first: int
    records: int
    system_time: int


def _slices(
    paths: Sequence[Path], interval: OffsetInterval, vocab: Vocabulary, desk: Desk
) -> Iterator[_Slice]:
    for path in paths:
        try:
            known = pq.read_table(path, columns=[vocab.offset, vocab.system_time])
            offsets = known[vocab.offset].combine_chunks().cast(pa.int64()).to_numpy()
            times = pc.min(known[vocab.system_time].cast(pa.timestamp("ms", "UTC"), safe=False))
            wanted = (offsets >= interval.start) & (offsets <= interval.end)
            if not wanted.any():
                continue
            in_order = bool(np.all(offsets[:-1] < offsets[1:]))
            if in_order and wanted.all():
                file = desk.readable(path)
            else:
                file = desk.another()
                table = pq.read_table(path).filter(pa.array(wanted))
                pq.write_table(table.sort_by(vocab.offset), file)
        except (OSError, pa.ArrowException, KeyError) as error:
            raise unreadable(path, error) from None
        yield _Slice(file, int(offsets[wanted].min()), int(wanted.sum()), times.value)


def _promised(
    system_time: int, watermarks: Sequence[Watermark], before: Timestamp | None
) -> Timestamp | None:
    earlier = [each.event_time for each in watermarks if each.system_time.millis < system_time]
    return max((*earlier, *([before] if before is not None else [])), default=None)
