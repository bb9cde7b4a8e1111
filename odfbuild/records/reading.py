"""Read slices: plainly, or with a condition that decides which parts of files are read at all.

PyArrow's machinery for conditions loads pandas where that is installed, which takes longer than to
read the first records: so what has no condition is read without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from odfbuild.errors import IntegrityError
from odfbuild.records.stored import Stored, path_of

if TYPE_CHECKING:
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

    from odfbuild.store.committed import CommittedSlice

BATCH_ROWS = 65_536
_BUFFER = 1 << 20


def read(
    stored: Stored, names: Sequence[str], condition: pc.Expression | None, rows: int = BATCH_ROWS
) -> Iterator[pa.RecordBatch]:
    """Batches of at most `rows` records, in order of offset; a file is fetched at its turn."""
    if condition is None:
        for each in stored.slices:
            with _opened(each) as file:
                yield from _plain(file, stored, names, rows, None)
        return
    for each in _that_may_fit(stored, condition):
        yield from _filtered(_fragment(each), stored, names, condition, rows)


def read_backwards(
    stored: Stored, names: Sequence[str], condition: pc.Expression | None
) -> Iterator[Iterator[pa.RecordBatch]]:
    """The same by row groups, the newest first; records of each in order of offset.

    Each has to be read before the next one is asked for.
    """
    if condition is None:
        for each in reversed(stored.slices):
            with _opened(each) as file:
                for group in reversed(range(file.num_row_groups)):
                    yield _plain(file, stored, names, BATCH_ROWS, [group])
        return
    for each in reversed(_that_may_fit(stored, condition)):
        groups = _fragment(each).split_by_row_group(condition, stored.schema)
        for part in reversed(groups):
            yield _filtered(part, stored, names, condition, BATCH_ROWS)


def type_of(stored: Stored, condition: pc.Expression) -> pa.DataType:
    """What a condition gives; errors of PyArrow where it does not fit the columns."""
    return _dataset(stored, []).scanner(columns={"": condition}).projected_schema.types[0]


def _plain(
    file: pq.ParquetFile, stored: Stored, names: Sequence[str], rows: int, groups: list[int] | None
) -> Iterator[pa.RecordBatch]:
    shown = pa.schema([stored.schema.field(name) for name in names])
    there = [name for name in names if name in file.schema_arrow.names]
    # Without any column, batches have no rows.
    read = there or [stored.vocab.offset]
    for batch in file.iter_batches(rows, row_groups=groups, columns=read):
        if there == list(names) and batch.schema.equals(shown):
            yield batch
            continue
        arrays = [
            batch.column(field.name).cast(field.type)
            if field.name in there
            else pa.nulls(batch.num_rows, field.type)
            for field in shown
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=shown) if arrays else batch.select([])


def _filtered(
    fragment: ds.Fragment,
    stored: Stored,
    names: Sequence[str],
    condition: pc.Expression,
    rows: int,
) -> Iterator[pa.RecordBatch]:
    for batch in fragment.to_batches(
        schema=stored.schema,
        columns=list(names),
        filter=condition,
        batch_size=rows,
        batch_readahead=2,
        use_threads=rows == BATCH_ROWS,
    ):
        if batch.num_rows:
            yield batch


def _that_may_fit(stored: Stored, condition: pc.Expression) -> list[CommittedSlice]:
    """The slices whose offsets may fulfil a condition."""
    import pyarrow.compute as pc

    layout, disk = _layout()
    offset = pc.field(stored.vocab.offset)
    slices = {str(path_of(each)): each for each in stored.slices}
    fragments = [
        layout.make_fragment(
            file,
            disk,
            partition_expression=(offset >= each.data.offset_interval.start)
            & (offset <= each.data.offset_interval.end),
        )
        for file, each in slices.items()
    ]
    return [slices[each.path] for each in _dataset(stored, fragments).get_fragments(condition)]


def _fragment(each: CommittedSlice) -> ds.Fragment:
    with _opened(each):
        layout, disk = _layout()
        return layout.make_fragment(str(path_of(each)), disk)


def _dataset(stored: Stored, fragments: Sequence[ds.Fragment]) -> ds.FileSystemDataset:
    import pyarrow.dataset as ds

    layout, disk = _layout()
    return ds.FileSystemDataset(fragments, stored.schema, layout, disk)


def _layout() -> tuple[Any, Any]:
    """How files are read, and where from."""
    import pyarrow.dataset as ds
    from pyarrow.fs import LocalFileSystem

    # The pages of a row group are read as they are needed, not all before the first batch.
    options = ds.ParquetFragmentScanOptions(use_buffered_stream=True, pre_buffer=False)
    return ds.ParquetFileFormat(default_fragment_scan_options=options), LocalFileSystem()


def _opened(each: CommittedSlice) -> pq.ParquetFile:
    """The file of a slice; `IntegrityError` E0815 when it is no Parquet file."""
    try:
        # Pages are read as they are needed, not all of a row group at once.
        return pq.ParquetFile(each.file, buffer_size=_BUFFER, pre_buffer=False)
    except (pa.ArrowInvalid, OSError) as error:
        raise IntegrityError(
            f"data object {each.data.physical_hash} of '{each.store.name}' is no Parquet file",
            code="E0815",
            dataset=each.store.name,
            notes=(f"file: {path_of(each)}", str(error).splitlines()[0]),
            help="restore it from a copy; `odfbuild verify --integrity` finds all damaged objects",
        ) from None
