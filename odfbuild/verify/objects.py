"""Checks of one data or checkpoint object against the block that refers to it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from odfbuild.odf.model import Checkpoint, DataSlice
from odfbuild.odf.multihash import SHA3_256, Multihash

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with an object: a sentence without its subject, and a stable code."""

    code: str
    what: str


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
    fault = _check_offsets(path, expected, offset_column)
    if fault is None and logical:
        fault = _check_logical(path, expected)
    return fault


def _check_bytes(path: Path, size: int, hash: Multihash) -> Fault | None:
    digest = hashlib.sha3_256()
    found = 0
    try:
        with path.open("rb", buffering=0) as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
                found += len(chunk)
    except FileNotFoundError:
        return Fault("E0811", "is missing")
    except OSError as error:
        return Fault("E0811", f"cannot be read: {error.strerror}")
    if found != size:
        return Fault("E0812", f"has {found} bytes; {size} were committed")
    actual = Multihash.of(SHA3_256, digest.digest())
    if actual != hash:
        return Fault("E0813", f"is not what was committed: its bytes hash to {actual}")
    return None


def _check_offsets(path: Path, expected: DataSlice, column: str) -> Fault | None:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    interval = expected.offset_interval
    next_offset = interval.start
    try:
        with pq.ParquetFile(path) as file:
            if column not in file.schema_arrow.names:
                return Fault("E0814", f"has no offset column '{column}'")
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
    except pa.ArrowException as error:
        return Fault("E0815", f"is not a readable Parquet file: {error}")
    if next_offset != interval.end + 1:
        return Fault(
            "E0814",
            f"ends at offset {next_offset - 1}; {interval.start} to {interval.end} were committed",
        )
    return None


def _check_logical(path: Path, expected: DataSlice) -> Fault | None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from odfbuild.odf.digest import LogicalHasher

    try:
        with pq.ParquetFile(path) as file:
            hasher = LogicalHasher(file.schema_arrow)
            for batch in file.iter_batches():
                hasher.update(batch)
            actual = hasher.finish()
    except (pa.ArrowException, ValueError) as error:
        return Fault("E0816", f"has no logical hash: {error}")
    if actual != expected.logical_hash:
        return Fault(
            "E0816",
            f"holds other records than were committed: its logical hash is {actual}, "
            f"the block says {expected.logical_hash}",
        )
    return None
