"""Merge small slices of a dataset into copies that are read faster.

Slices that came since are merged when they are many, and copies with those before them when they
have grown to a good part of these: so a record is written a few times at most, however many slices
there are. `merged_copies` says what a copy is.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from odfbuild.fallbacks import falling_back
from odfbuild.records.segments import pieces, records_in
from odfbuild.records.slice_file import with_statistics
from odfbuild.store.committed import Committed, CommittedSlice
from odfbuild.store.disposable import prepare_cache_folder
from odfbuild.store.merged_copies import Notes, copies_folder
from odfbuild.store.side_cars import SideCar, SideCarFolder

MANY = 64
"""Slices since the last copy, from which on it is worth making another one."""
SMALL = 256 << 10
"""Bytes of a slice that is read about as fast as opened; larger ones are left alone."""
LARGEST = 64 << 20
"""Bytes of slices in one copy, so that the rest is never written again."""
_SPARED = 24 * 3600
"""Seconds for which a copy that another one replaced stays, for those who still read it."""
_PAIR = 2


def keep_merged(committed: Committed) -> None:
    """Merge the small slices that came since, if they are many; for the holder of the claim.

    Whatever prevents that costs readers time, and nothing else.
    """
    if committed.side_cars is None or committed.head is None:
        return
    with falling_back(__name__, "small slices stay apart", OSError, pa.ArrowException):
        _catch_up(committed, copies_folder(committed.side_cars))


def _catch_up(committed: Committed, folder: SideCarFolder) -> None:
    assert committed.head is not None
    kept, slices = committed.behind(folder)
    if len(slices) < MANY:
        return
    files = list(kept.files) if kept else []
    prepare_cache_folder(folder.folder)
    for run in _runs(slices):
        made = _merged(folder, _notes(run), [_path(each) for each in run])
        while made is not None:
            files.append(made)
            made = _joined(folder, files)
    stay = {each.name for each in files}
    for each in kept.files if kept else ():
        if each.name not in stay:
            os.utime(folder.path(each))  # from now on it is spared
    folder.save(committed.head, files, spared=_SPARED)


def _runs(slices: Sequence[CommittedSlice]) -> Iterator[list[CommittedSlice]]:
    """Small slices in a row that are here and laid out alike, as many as one copy may hold."""
    run: list[CommittedSlice] = []
    total = 0
    layout: pq.ParquetFile | None = None
    for each in slices:
        opened = _opened(_path(each)) if each.data.size <= SMALL else None
        total += each.data.size
        if run and not (opened and layout and _are_alike(opened, layout) and total <= LARGEST):
            if len(run) > 1:
                yield run
            run, total = [], each.data.size
        if opened is not None:
            layout = opened
            run.append(each)
    if len(run) > 1:
        yield run


def _joined(folder: SideCarFolder, files: list[SideCar]) -> SideCar | None:
    """The last two of `files` as one, which takes their place; `None` where they stay apart."""
    if len(files) < _PAIR:
        return None
    older, newer = files[-_PAIR:]
    grown = older.records < 2 * newer.records and older.size + newer.size <= LARGEST
    (before, start, last), (after, first, end) = older.notes, newer.notes
    if not grown or last + 1 != first:
        return None
    made = _merged(folder, ((*before, *after), start, end), [*map(folder.path, (older, newer))])
    if made is not None:
        del files[-_PAIR:]
    return made


def _notes(run: Sequence[CommittedSlice]) -> Notes:
    names = tuple(str(each.data.physical_hash) for each in run)
    first, last = run[0].data.offset_interval, run[-1].data.offset_interval
    return names, first.start, last.end


def _merged(folder: SideCarFolder, notes: Notes, files: Sequence[Path]) -> SideCar | None:
    """A new file with the records of `files`; `None` unless it is laid out exactly as they are."""
    name = f"{secrets.token_hex(8)}.parquet"
    layout = pq.ParquetFile(files[0])
    rows = 0
    with pq.ParquetWriter(
        folder.folder / name,
        layout.schema_arrow,
        write_statistics=with_statistics(layout.schema_arrow),
    ) as writer:
        for table in pieces(records_in(files)):
            writer.write_table(table.replace_schema_metadata(layout.schema_arrow.metadata))
            rows += table.num_rows
    made = pq.ParquetFile(folder.folder / name)
    if rows != notes[2] - notes[1] + 1 or not _are_alike(made, layout):
        (folder.folder / name).unlink()
        return None
    return folder.describe(name, rows, notes)


def _opened(file: Path) -> pq.ParquetFile | None:
    return pq.ParquetFile(file) if file.exists() else None


def _are_alike(one: pq.ParquetFile, other: pq.ParquetFile) -> bool:
    """Whether engines see the same columns, types and attributes in two files."""
    return bool(
        one.schema.equals(other.schema)
        and one.schema_arrow.equals(other.schema_arrow, check_metadata=True)
    )


def _path(each: CommittedSlice) -> Path:
    return each.store.object_path("data", each.data.physical_hash)
