"""Read slices: plainly, or with a condition that decides which parts of files are read at all.

PyArrow's machinery for conditions loads pandas where that is installed, which takes longer than to
read the first records: so what has no condition is read without it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from odfbuild.errors import IntegrityError, OdfbuildError, RecordsError
from odfbuild.records.bounds import Claims, Excess, check_bounds
from odfbuild.records.claimed import (
    has_dictionary,
    long_dictionaries,
    rows_at_once,
    rows_written_out,
    written_out,
)
from odfbuild.records.slice_file import may_hide_nan
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
            for batch in _plain(each, stored, names, rows, None):
                yield from written_out(batch, _shown(stored, names), each.store.name)
        return
    for each in _that_may_fit(stored, condition):
        yield from _filtered(each, _fragment(each), stored, names, condition, rows)


def read_backwards(
    stored: Stored, names: Sequence[str], condition: pc.Expression | None
) -> Iterator[Iterator[pa.RecordBatch]]:
    """The same by row groups, the newest first; records of each in order of offset.

    Each has to be read before the next one is asked for. Long text may be in dictionaries still;
    `written_out` ends that.
    """
    if condition is None:
        for each in reversed(stored.slices):
            for group in reversed(range(_groups(each))):
                yield _plain(each, stored, names, BATCH_ROWS, group)
        return
    for each in reversed(_that_may_fit(stored, condition)):
        with _opened(each) as file:
            told = None if may_hide_nan(path_of(each), file.metadata) else condition
        groups = _fragment(each).split_by_row_group(told, stored.schema)
        for part in reversed(groups):
            yield _filtered(each, part, stored, names, condition, BATCH_ROWS)


def type_of(stored: Stored, condition: pc.Expression) -> pa.DataType:
    """What a condition gives; errors of PyArrow where it does not fit the columns."""
    return _dataset(stored, []).scanner(columns={"": condition}).projected_schema.types[0]


def _shown(stored: Stored, names: Sequence[str]) -> pa.Schema:
    return pa.schema([stored.schema.field(name) for name in names])


def _groups(each: CommittedSlice) -> int:
    with _opened(each) as file:
        return int(file.num_row_groups)


def _plain(
    each: CommittedSlice, stored: Stored, names: Sequence[str], rows: int, group: int | None
) -> Iterator[pa.RecordBatch]:
    """Batches of a slice, or of a row group of it, with long text in dictionaries."""
    shown = _shown(stored, names)
    with _opened(each) as file:
        there = [name for name in names if name in file.schema_arrow.names]
        groups = range(file.num_row_groups) if group is None else [group]
        claims = _claims(each, file, groups, there)
    rows = rows_at_once(claims, rows)
    # Without any column, batches have no rows.
    read = there or [stored.vocab.offset]
    with _opened(each, long_dictionaries(claims, rows)) as file:
        for batch in _told(each, file.iter_batches(rows, row_groups=list(groups), columns=read)):
            if there == list(names) and batch.schema.equals(shown):
                yield batch
                continue
            arrays = [
                _cast(each, batch.column(field.name), field.type)
                if field.name in there
                else pa.nulls(batch.num_rows, field.type)
                for field in shown
            ]
            made = pa.RecordBatch.from_arrays(arrays, names=list(names)) if arrays else None
            yield batch.select([]) if made is None else made


def _cast(each: CommittedSlice, column: pa.Array, kind: pa.DataType) -> pa.Array:
    """A column of a slice in its type; long text stays in dictionaries."""
    try:
        return column if has_dictionary(column.type) else column.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise damage(each, "E0815", "cannot be read", _first_line(error)) from None


def _filtered(
    each: CommittedSlice,
    fragment: ds.Fragment,
    stored: Stored,
    names: Sequence[str],
    condition: pc.Expression,
    rows: int,
) -> Iterator[pa.RecordBatch]:
    with _opened(each) as file:
        groups = [group.id for group in fragment.row_groups]
        # Conditions may be about any column, and about text that is no dictionary.
        rows = rows_written_out(_claims(each, file, groups, None), rows)
        hides = may_hide_nan(path_of(each), file.metadata)
    how = {"batch_size": rows, "batch_readahead": 2, "use_threads": rows == BATCH_ROWS}
    chosen = {"schema": stored.schema, "columns": list(names), "filter": condition}
    if hides:  # records are asked, not the statistics of the file
        import pyarrow.dataset as ds

        whole = fragment.to_batches(stored.schema, **how)
        scanner = ds.Scanner.from_batches(whole, **chosen, **how)
    else:
        scanner = fragment.scanner(**chosen, **how)
    try:
        for batch in scanner.to_batches():
            if batch.num_rows:
                yield batch
    except pa.ArrowMemoryError:
        raise _no_memory(each) from None
    except Exception as error:
        for group in groups:
            for _ in _plain(each, stored, stored.schema.names, rows, group):
                pass  # what is wrong with the file is told here
        raise RecordsError(
            f"the filter fails on a record of '{each.store.name}'",
            code="E1202",
            dataset=each.store.name,
            notes=(_first_line(error),),
            help="leave out the records that it is not for, or use another expression",
        ) from None


def _claims(
    each: CommittedSlice,
    file: pq.ParquetFile,
    groups: Iterable[int],
    names: Collection[str] | None,
) -> Claims:
    """What a slice claims; `IntegrityError` E0831 when that cannot be."""
    try:
        return check_bounds(path_of(each), file.metadata, groups, names)
    except Excess as error:
        raise damage(each, "E0831", f"was not unpacked: {error}") from None
    except Exception as error:  # whatever a library makes of bytes that somebody else wrote
        raise damage(each, "E0815", "cannot be read", _first_line(error)) from None


def _told(each: CommittedSlice, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches of a slice; what is wrong with its bytes is an error with a code."""
    try:
        yield from batches
    except pa.ArrowMemoryError:
        raise _no_memory(each) from None
    except Exception as error:  # as in `_claims`
        raise damage(each, "E0815", "cannot be read", _first_line(error)) from None


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _no_memory(each: CommittedSlice) -> RecordsError:
    return RecordsError(
        "the records take more memory than this machine has",
        code="E1210",
        dataset=each.store.name,
        help="ask for fewer records, or for fewer columns",
    )


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
    with _opened(each) as file:
        _claims(each, file, (), ())
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


def _opened(each: CommittedSlice, dictionaries: Sequence[str] = ()) -> pq.ParquetFile:
    """The file of a slice; `IntegrityError` E0815 when it is no Parquet file."""
    try:
        # Pages are read as they are needed, not all of a row group at once.
        return pq.ParquetFile(
            each.file,
            read_dictionary=dictionaries or None,
            buffer_size=_BUFFER,
            pre_buffer=False,
        )
    except OdfbuildError:
        raise
    except Exception as error:  # as in `_claims`
        raise damage(each, "E0815", "is no Parquet file", _first_line(error)) from None


def damage(each: CommittedSlice, code: str, what: str, *notes: str) -> IntegrityError:
    """The error for a slice of which `what` is wrong, a sentence without its subject."""
    return IntegrityError(
        f"data object {each.data.physical_hash} of '{each.store.name}' {what}",
        code=code,
        dataset=each.store.name,
        notes=(f"file: {path_of(each)}", *notes),
        help="restore it from a copy; `odfbuild verify --integrity` finds all damaged objects",
    )
