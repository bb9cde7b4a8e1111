"""Part of an input, as `--sample` and `--since` ask for it, in files of its own.

A sample takes records by a hash of their key, or of all their columns where a dataset has no key:
it is the same on every machine, all records of a key are in it or none, and datasets with the same
key have the same ones. `--since` takes records by event time. A correction may lose one of its two
halves, so those that stay become a retraction and a new record.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.engine.contract import InputSlices, SliceFile
from odfbuild.odf.operation import APPEND, CORRECT_FROM, CORRECT_TO, RETRACT
from odfbuild.odf.timestamp import Timestamp
from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.store.merged_copies import NO_COPIES

if TYPE_CHECKING:
    import pyarrow as pa

    from odfbuild.store.branches import Limit

_ALL = 1 << 64


def part_of(slices: InputSlices, limit: Limit, key: Sequence[str], folder: Path) -> InputSlices:
    """The records of an input that a limit lets through; files are written into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)

    def limited(files: Iterable[SliceFile]) -> tuple[SliceFile, ...]:
        found = []
        for each in files:
            target = folder / each.path.name
            if _write(each.path, target, limit, key, slices.vocab):
                found.append(replace(each, path=target))
        return tuple(found)

    new = limited(slices.slices)
    return replace(
        slices,
        slices=new,
        first=slices.first if new else None,
        last=slices.last if new else None,
        earlier=cache(lambda: limited(slices.earlier())),
        copies=NO_COPIES,
    )


def _write(source: Path, target: Path, limit: Limit, key: Sequence[str], vocab: Vocabulary) -> bool:
    """Copy the records that stay, batch by batch; whether there are any."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if target.exists():
        return int(pq.read_metadata(target).num_rows) > 0
    read = pq.ParquetFile(source)
    found = 0
    with pq.ParquetWriter(target, read.schema_arrow) as writer:
        for batch in read.iter_batches():
            table = pa.Table.from_batches([batch])
            table = _in_halves(table.filter(_kept(table, limit, key, vocab)), vocab)
            found += table.num_rows
            writer.write_table(table)
    return found > 0


def _kept(table: pa.Table, limit: Limit, key: Sequence[str], vocab: Vocabulary) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    kept = pa.array([True] * table.num_rows, pa.bool_())
    if limit.since is not None:
        millis = Timestamp.parse(limit.since).millis
        times = table[vocab.event_time].cast(pa.timestamp("ms", "UTC")).cast(pa.int64())
        kept = pc.and_(kept, pc.greater_equal(times, millis).combine_chunks())
    if limit.sample is not None:
        kept = pc.and_(kept, pa.array(_sampled(table, limit.fraction, key, vocab)))
    return kept


def _sampled(table: pa.Table, fraction: float, key: Sequence[str], vocab: Vocabulary) -> object:
    import pyarrow as pa

    from odfbuild.records.key_hash import comparable_type, hash_rows
    from odfbuild.records.uuids import is_uuid

    own = (vocab.offset, vocab.operation_type, vocab.system_time)
    names = [name for name in (key or table.column_names) if name not in own]
    columns = {}
    for name in names:
        column = table[name]
        if is_uuid(column.type):
            column = column.cast(column.type.storage_type).cast(pa.large_binary())
        kind = comparable_type(column.type)
        if kind is not None:
            columns[name] = column.cast(kind)
    hashes = hash_rows(pa.table(columns))
    return hashes < min(_ALL - 1, int(fraction * _ALL))


def _in_halves(table: pa.Table, vocab: Vocabulary) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    place = table.schema.get_field_index(vocab.operation_type)
    operations = table.column(place)
    for half, alone in ((CORRECT_FROM, RETRACT), (CORRECT_TO, APPEND)):
        replaced = pa.scalar(alone, operations.type)
        operations = pc.if_else(pc.equal(operations, half), replaced, operations)
    return table.set_column(place, table.schema.field(place), operations)
