"""The file of a slice: written batch by batch, and hashed on the way."""

from __future__ import annotations

import contextlib
import hashlib
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from odfbuild.odf.multihash import SHA3_256, Multihash
from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.records.footer import check_footer
from odfbuild.records.pipeline import Worker
from odfbuild.records.thrift import Excess

_READ_BYTES = 1 << 20


def has_floating(schema: pa.Schema) -> bool:
    """Whether there are floating numbers in any column, also within nested ones."""
    return any(re.search("float|double", str(kind)) for kind in schema.types)


def with_statistics(schema: pa.Schema) -> bool | list[str]:
    """The columns whose least and greatest values a file tells: `True` for all.

    Not floating numbers: NaN would be left out, and readers for which it is greater than all others
    (DuckDB, Spark) would pass over it.
    """
    if not has_floating(schema):
        return True
    return [f.name for f in schema if not has_floating(pa.schema([f]))]


def may_hide_nan(path: Path, file: pq.FileMetaData) -> bool:
    """Whether a file tells the least and the greatest of floating numbers, as others write them.

    Of a footer that PyArrow cannot be asked about, nobody can tell.
    """
    try:
        check_footer(path, file)
    except Excess:
        return True
    return any(
        column.physical_type in ("FLOAT", "DOUBLE") and column.is_stats_set
        for group in map(file.row_group, range(file.num_row_groups))
        for column in map(group.column, range(group.num_columns))
    )


class SliceFile:
    """A new Parquet file with records of `schema`.

    Records are encoded in one thread. Another one hashes what became of those before, which it
    reads again: a file object of Python would have to be asked for each page. Up to `ahead` batches
    wait for each of them; 0: neither has a thread.
    """

    def __init__(self, path: Path, schema: pa.Schema, vocab: Vocabulary, ahead: int) -> None:
        self._sink = pa.OSFile(str(path), "wb")
        text = [column.name for column in schema if pa.types.is_string(column.type)]
        self._writer = pq.ParquetWriter(
            self._sink,
            schema,
            compression="snappy",
            # Offsets and measures never repeat enough for a dictionary to pay; not DELTA, because
            # an engine among the peers cannot read it.
            use_dictionary=[vocab.operation_type, vocab.system_time, *text],
            write_statistics=with_statistics(schema),
        )
        self._written = path.open("rb", buffering=0)
        self._hasher = hashlib.sha3_256()
        self._hashing = Worker(self._hash, ahead)
        self._writing = Worker(self._write, ahead)

    def give(self, batch: pa.RecordBatch) -> None:
        """Append records; what goes wrong with them is raised by one of the calls that follow."""
        self._writing.give(batch)

    def finish(self) -> tuple[Multihash, int]:
        """End the file; returns its physical hash and its size in bytes."""
        self._writing.finish()
        self._writer.close()
        size = self._sink.tell()
        self._sink.close()
        self._hashing.give(size)
        self._hashing.finish()
        return Multihash.of(SHA3_256, self._hasher.digest()), size

    def close(self) -> None:
        """Let go of the file, finished or not; harmless when done twice."""
        self._writing.stop()
        self._hashing.stop()
        # Only of a file that was not finished, because something went wrong before.
        with contextlib.suppress(OSError, pa.ArrowException):
            self._writer.close()
        with contextlib.suppress(OSError):
            self._sink.close()
        self._written.close()

    def _write(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch)
        self._hashing.give(self._sink.tell())

    def _hash(self, end: int) -> None:
        """Hash what was written up to the byte `end`."""
        while missing := end - self._written.tell():
            block = self._written.read(min(missing, _READ_BYTES))
            if not block:
                raise OSError(f"{self._written.name} got shorter while it was written")
            self._hasher.update(block)
