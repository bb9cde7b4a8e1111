"""What an engine wrote, checked before anything of it is committed.

Source: Open Data Fabric, "Coordinator Contract", "Common data schema"; what peers rely on.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odfbuild.engine.contract import Told, TransformResult, TransformTask
from odfbuild.engine.process.accused import Accused
from odfbuild.engine.process.files import StepFiles
from odfbuild.odf.model import OffsetInterval
from odfbuild.odf.model.messages import TransformResponseSuccess
from odfbuild.odf.operation import APPEND, CORRECT_FROM, CORRECT_TO
from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.sql.mode import BY_CHECKPOINT

_MILLIS = pa.timestamp("ms", "UTC")
_FILES, _OFFSETS, _SYSTEM, _COLUMNS, _CHECKPOINT = "E1441", "E1442", "E1443", "E1444", "E1445"


def checked_result(
    task: TransformTask, answer: TransformResponseSuccess, files: StepFiles, accused: Accused
) -> TransformResult:
    """The result of a step, taken out of the engine's reach; `EngineError` if it cannot be so."""
    data = _taken(files.data, files.folder / "data.parquet", accused, _FILES)
    checkpoint = _taken(files.new_checkpoint, files.folder / "checkpoint", accused, _CHECKPOINT)
    interval = answer.new_offset_interval
    schema = None
    if data is not None:
        schema = _checked_file(data, interval, task, accused)
    elif interval is not None:
        what = f"it says that it made the records {_text(interval)}, and wrote no file of them"
        raise accused.broken(what, _FILES)
    return TransformResult(
        parts=(data,) if data is not None and interval is not None else (),
        schema=schema,
        choice=BY_CHECKPOINT,
        read=frozenset(file for each in files.slices for file in each),
        told=Told(answer.new_watermark, checkpoint),
    )


def other_columns(committed: pa.Schema, found: pa.Schema) -> tuple[str, ...]:
    """How the columns of a result differ from the committed ones; types and order count."""
    before = [(each.name, each.type) for each in committed]
    after = [(each.name, each.type) for each in found]
    if before == after:
        return ()
    return tuple(
        f"{which}: {', '.join(f'{name} {kind}' for name, kind in columns)}"
        for which, columns in (("the dataset has", before), ("the result has", after))
    )


# --- Files ---


def _taken(file: Path, target: Path, accused: Accused, code: str) -> Path | None:
    """A copy of a file that the engine can no longer change; `None` where it wrote none."""
    try:
        # Not blocking: what lies there may be a pipe.
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        why = "is a link" if file.is_symlink() else f"cannot be read: {error.strerror}"
        raise accused.broken(f"{file.name} {why}", code) from None
    found = os.fstat(descriptor)
    wrong = ""
    if not stat.S_ISREG(found.st_mode):
        wrong = "is not a plain file"
    elif found.st_nlink > 1:
        wrong = "is also a file outside of its folder"
    if wrong:
        os.close(descriptor)
        raise accused.broken(f"{file.name} {wrong}", code)
    # Opened once, and never by its name again, which may mean another file by then.
    with open(descriptor, "rb") as source, target.open("wb") as copy:  # noqa: PTH123
        shutil.copyfileobj(source, copy, 1 << 20)
    return target


# --- Records ---


def _checked_file(
    data: Path, interval: OffsetInterval | None, task: TransformTask, accused: Accused
) -> pa.Schema:
    try:
        with pq.ParquetFile(data) as file:
            schema = _checked_columns(file.schema_arrow, task.vocab, accused)
            _check_interval(interval, file.metadata.num_rows, task.first_offset, accused)
            rows = _Rows(task, accused)
            # All of it, so that a damaged page is found here, and is the engine's fault.
            for batch in file.iter_batches():
                rows.check(batch)
            rows.finish()
            return schema
    except (pa.ArrowException, OSError) as error:
        raise accused.broken(f"its data file cannot be read: {error}", _FILES) from None


_SYSTEM_COLUMNS = ("offset", "operation_type", "system_time", "event_time")


def _checked_columns(found: pa.Schema, vocab: Vocabulary, accused: Accused) -> pa.Schema:
    """The columns of the result without those of the coordinator, event time among them."""
    names = found.names
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise accused.broken(f"column '{twice[0]}' is there twice", _COLUMNS, _listed(found))
    for role in _SYSTEM_COLUMNS:
        name = getattr(vocab, role)
        if name not in names:
            raise accused.broken(f"there is no column '{name}'", _COLUMNS, _listed(found))
        kind = found.field(name).type
        right, wanted = _fits(role, kind)
        if not right:
            what = f"column '{name}' is {kind}, and has to be {wanted}"
            raise accused.broken(what, _SYSTEM, _listed(found))
    return pa.schema(
        [
            pa.field(each.name, _plain_type(each.type), each.nullable)
            for each in found
            if each.name not in (vocab.offset, vocab.operation_type, vocab.system_time)
        ]
    )


def _fits(role: str, kind: Any) -> tuple[bool, str]:
    is_utc = pa.types.is_timestamp(kind) and kind.tz in ("UTC", "+00:00", "Etc/UTC")
    if role in ("offset", "operation_type"):
        return pa.types.is_integer(kind), "a whole number"
    if role == "system_time":
        return is_utc, "a timestamp in UTC"
    return is_utc or pa.types.is_date(kind), "a timestamp in UTC or a date"


def _plain_type(kind: Any) -> Any:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _listed(schema: pa.Schema) -> str:
    return f"its columns: {', '.join(f'{each.name} {each.type}' for each in schema)}"


def _check_interval(
    interval: OffsetInterval | None, rows: int, first: int, accused: Accused
) -> None:
    if interval is None:
        if rows:
            raise accused.broken(f"it wrote {rows} records, and says that it made none", _OFFSETS)
        return
    if interval.end < interval.start:
        what = f"the records {_text(interval)} end before they begin"
    elif interval.start != first:
        what = f"its records begin at offset {interval.start}, and have to begin at {first}"
    elif rows != interval.end - interval.start + 1:
        what = f"it says that it made the records {_text(interval)}, and wrote {rows}"
    else:
        return
    raise accused.broken(what, _OFFSETS)


def _text(interval: OffsetInterval) -> str:
    return f"{interval.start} to {interval.end}"


@dataclass(slots=True)
class _Rows:
    """Looks at system columns, batch after batch."""

    task: TransformTask
    accused: Accused
    done: int = 0
    last_operation: int = APPEND

    def check(self, batch: pa.RecordBatch) -> None:
        """Raise the error about the first record that is wrong."""
        vocab, first = self.task.vocab, self.task.first_offset + self.done
        expected = pa.array(range(first, first + batch.num_rows), pa.int64())
        offsets = self._without_nulls(batch, vocab.offset).cast(pa.int64())
        for row in _first_other(offsets, expected):
            what = f"record {first + row} has offset {offsets[row]}"
            raise self.accused.broken(what, _OFFSETS)
        times = pc.floor_temporal(self._without_nulls(batch, vocab.system_time), unit="millisecond")
        moment = self.task.system_time.millis if self.task.system_time else 0
        for row in _first_other(times.cast(_MILLIS), pa.scalar(moment, _MILLIS)):
            what = f"record {first + row} has another '{vocab.system_time}' than the step"
            raise self.accused.broken(what, _SYSTEM)
        self._without_nulls(batch, vocab.event_time)
        self._operations(self._without_nulls(batch, vocab.operation_type), first)
        self.done += batch.num_rows

    def finish(self) -> None:
        """Raise the error about a correction without its second half."""
        if self.last_operation == CORRECT_FROM:
            last = self.task.first_offset + self.done - 1
            self._operation(last, "begins a correction, and none follows that ends it")

    def _without_nulls(self, batch: pa.RecordBatch, name: str) -> pa.Array:
        column = batch.column(name)
        if column.null_count:
            row = pc.index(pc.is_null(column), True).as_py()
            what = f"record {self.task.first_offset + self.done + row} has no value in '{name}'"
            raise self.accused.broken(what, _SYSTEM)
        return column

    def _operations(self, column: pa.Array, first: int) -> None:
        values = column.to_pylist() if _is_mixed(column) else [APPEND] * min(1, len(column))
        for row, operation in enumerate(values):
            if not APPEND <= operation <= CORRECT_TO:
                self._operation(first + row, f"has operation {operation}, which is none")
            if (operation == CORRECT_TO) != (self.last_operation == CORRECT_FROM):
                self._operation(first + row, "does not pair the two halves of a correction")
            self.last_operation = operation

    def _operation(self, offset: int, what: str) -> None:
        raise self.accused.broken(f"record {offset} {what}", _SYSTEM)


def _is_mixed(column: pa.Array) -> bool:
    """Whether there is anything but appended records, which are most of all."""
    return bool(pc.any(pc.not_equal(column, pa.scalar(APPEND, column.type))).as_py())


def _first_other(found: pa.Array, wanted: pa.Array | pa.Scalar) -> Iterator[int]:
    """The first row in which values are not those that are wanted, if there is one."""
    row = pc.index(pc.not_equal(found, wanted), True).as_py()
    if row >= 0:
        yield row
