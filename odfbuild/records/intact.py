"""Checks of one data or checkpoint object against the block that refers to it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.errors import Code, IntegrityError
from odfbuild.odf.model import Checkpoint, DataSlice
from odfbuild.odf.multihash import SHA3_256, Multihash
from odfbuild.records.bounds import Excess, check_bounds
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.files import UnfitFile, is_file_inside, open_inside
from odfbuild.store.storage import ObjectKind
from odfbuild.values import Value

if TYPE_CHECKING:
    import pyarrow as pa

RESTORE = (
    "restore the file: from a backup, or from the clone that has it; if the dataset is published, "
    "remove the file: it is fetched again when it is needed"
)
_CHUNK = 1 << 20
_WRITTEN_OUT = 64 << 20
_MANY, _FEW = 1 << 16, 1 << 10
"""Rows that are read at once: of plain columns, and of such with lists."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with an object: a sentence without its subject, and a stable code."""

    code: str
    what: str


class Damage(Value):
    """What is wrong with an object of a dataset, as a sentence, and how to fix it."""

    code: str
    message: str
    help: str = RESTORE


def damage_of(
    store: DatasetStore, kind: ObjectKind, hash: Multihash, check: Callable[[], Fault | None]
) -> Damage | None:
    """What `check` finds wrong with an object, which comes from the storage if it is not here.

    Nothing is wrong with one that is not here, as its owner says.
    """
    try:
        if not store.has_object(kind, hash) and (kind, hash) in store.withdrawn():
            return None
        if store.storage is not None:
            store.bring(kind, hash)
        fault = check()
    except IntegrityError as error:
        return Damage(error.code, error.message, error.help or RESTORE)
    if fault is None:
        return None
    noun = "data" if kind == "data" else "checkpoint"
    return Damage(fault.code, f"{noun} object {hash} {fault.what}")


def check_checkpoint(path: Path, expected: Checkpoint) -> Fault | None:
    """Whether the checkpoint is there with the committed size and hash."""
    return _check_bytes(path, expected.size, expected.physical_hash)


def check_slice(
    path: Path, expected: DataSlice, offset_column: str, *, logical: bool = False
) -> Fault | None:
    """Whether the slice is there with the committed size, hash and offsets.

    `offset_column` is its name in the vocabulary in force; `logical` also recomputes the logical
    hash, which is implied by the physical one unless the writer was wrong.
    """
    fault = _check_bytes(path, expected.size, expected.physical_hash)
    if fault is not None:
        return fault
    try:
        fault = _check_offsets(path, expected, offset_column)
        if fault is None and logical:
            fault = _check_logical(path, expected)
    except Excess as error:
        fault = Fault("E0831", f"was not unpacked: {error}")
    except Exception as error:
        # Whatever a library makes of bytes that somebody else wrote: Thrift, codecs, text, memory.
        fault = Fault("E0815", f"is not a readable Parquet file: {_reason(error)}")
    return fault


def _reason(error: Exception) -> str:
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0][:200] if lines else ''}"


def _check_bytes(path: Path, size: int, hash: Multihash) -> Fault | None:
    digest = hashlib.sha3_256()
    found = 0
    try:
        if not is_file_inside(path):
            return Fault(Code.OBJECT_MISSING, "is missing")
        with os.fdopen(open_inside(str(path)), "rb", buffering=0) as file:
            found = os.fstat(file.fileno()).st_size
            if found == size:
                found = 0
                # No further than it should go: it may grow while it is read.
                while found <= size and (chunk := file.read(_CHUNK)):
                    digest.update(chunk)
                    found += len(chunk)
    except UnfitFile as error:
        return Fault("E0832", str(error))
    except OSError as error:
        return Fault(Code.OBJECT_MISSING, f"cannot be read: {error.strerror}")
    if found != size:
        return Fault("E0812", f"has {found} bytes; {size} were committed")
    actual = Multihash.of(SHA3_256, digest.digest())
    if actual != hash:
        return Fault("E0813", f"does not match its hash: its bytes hash to {actual}")
    return None


def _check_offsets(path: Path, expected: DataSlice, column: str) -> Fault | None:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    interval = expected.offset_interval
    next_offset = interval.start
    with pq.ParquetFile(path) as file:
        check_bounds(path, file.metadata)
        if column not in file.schema_arrow.names:
            return Fault("E0814", f"has no offset column '{column}'")
        kind = file.schema_arrow.field(column).type
        if not pa.types.is_integer(kind):
            return Fault("E0814", f"has offsets of type {kind}, which are not integers")
        if file.metadata.num_rows != interval.end - interval.start + 1:
            return Fault(
                "E0814",
                f"has {file.metadata.num_rows} records; "
                f"{interval.start} to {interval.end} were committed",
            )
        for batch in file.iter_batches(columns=[column]):
            offsets = batch.column(0).cast(pa.int64())
            if not len(offsets):
                continue
            low, high = offsets[0].as_py(), offsets[-1].as_py()
            steps = pc.unique(pc.pairwise_diff(offsets)).drop_null().to_pylist()
            if (
                offsets.null_count
                or low != next_offset
                or high != next_offset + len(offsets) - 1
                or steps not in ([], [1])
            ):
                return Fault("E0814", f"has offsets out of order: {next_offset} was due")
            next_offset = high + 1
    if next_offset != interval.end + 1:
        return Fault(
            "E0814",
            f"ends at offset {next_offset - 1}; {interval.start} to {interval.end} were committed",
        )
    return None


def _check_logical(path: Path, expected: DataSlice) -> Fault | None:
    import pyarrow.parquet as pq

    from odfbuild.odf.digest import LogicalHasher, UnsupportedType

    try:
        with pq.ParquetFile(path) as file:
            schema, metadata = file.schema_arrow, file.metadata
        names = _repeated_text(schema, check_bounds(path, metadata).dictionaries)
        hasher = LogicalHasher(schema)
        nested = any(column.path != column.name for column in metadata.schema)
        with pq.ParquetFile(path, read_dictionary=names) as file:
            for batch in file.iter_batches(_FEW if nested else _MANY):
                for piece in _pieces(batch, schema, names):
                    hasher.update(piece)
        actual = hasher.finish()
    except UnsupportedType as error:
        return Fault("E0816", f"has no logical hash: {error}")
    if actual != expected.logical_hash:
        return Fault(
            "E0816",
            f"contains other records than were committed: its logical hash is {actual}, "
            f"the block says {expected.logical_hash}",
        )
    return None


def _repeated_text(schema: pa.Schema, repeated: Collection[str]) -> list[str]:
    """Columns of text or bytes whose values are in a dictionary."""
    import pyarrow as pa

    t = pa.types
    return [
        field.name
        for field in schema
        if field.name in repeated and (t.is_string(field.type) or t.is_binary(field.type))
    ]


def _pieces(batch: pa.RecordBatch, schema: pa.Schema, names: list[str]) -> Iterator[pa.RecordBatch]:
    """A batch in parts, in which the columns that are kept as dictionaries are written out.

    So small that a long value which is repeated in each row does not take all memory.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    longest = sum(
        pc.max(pc.binary_length(batch.column(name).dictionary)).as_py() or 0 for name in names
    )
    rows = max(1, _WRITTEN_OUT // (longest + 1))
    for start in range(0, batch.num_rows, rows):
        part = batch.slice(start, rows)
        columns = [
            column.dictionary_decode() if name in names else column
            for name, column in zip(batch.schema.names, part.columns, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)
