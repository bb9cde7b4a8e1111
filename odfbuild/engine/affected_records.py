"""The records of inputs that a step may change the result of, in files of their own.

Where a query falls into parts by keys (`Parts`), only the parts of keys that new records have can
change. Their records are found by reading the columns of the keys, and copied as they stood before
the step and as they stand after it. Records of other keys do no harm: what they give is the same
before and after. Source: Gupta, Mumick, "Maintenance of Materialized Views".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import field, replace
from functools import reduce
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odfbuild.engine.contract import Extent, InputSlices, SliceFile, TransformTask
from odfbuild.engine.unread_corrections import NOTHING_UNREAD, Unread
from odfbuild.errors import PlanError
from odfbuild.records.by_key import RecordsByKey
from odfbuild.records.key_hash import Hashes, comparable_type, hash_rows
from odfbuild.sql.increments.parts import Parts, Reading, most_affected, pays
from odfbuild.store.merged_copies import NO_COPIES
from odfbuild.values import Value

_LAST = (1 << 62) - 1
"""An offset behind all records."""
MANY_RECORDS = 100_000
MANY_FILES = 64
"""So many that are not kept by key are looked through at most."""
FEW = 20
"""One of so many records that were looked at is affected, at most: else few steps are cheaper."""
_ENDINGS = 1 << 20
_LAST_BITS = np.uint64(_ENDINGS - 1)


class Affected(Value):
    """Inputs with the affected records alone, `before` the step and `after` it."""

    before: tuple[InputSlices, ...]
    after: tuple[InputSlices, ...]
    extent: Extent


def records_of(inputs: Sequence[InputSlices]) -> int:
    """How many records all inputs have."""
    return sum(map(_records, inputs))


def _records(each: InputSlices) -> int:
    """Offsets count from zero; where nothing is new, only files tell the last one."""
    if each.last is not None:
        return each.last + 1
    return sum(pq.read_metadata(file).num_rows for file in each.all_files())


def new_records_of(each: InputSlices) -> int:
    """How many new records an input has."""
    return 0 if each.first is None or each.last is None else each.last - each.first + 1


def is_worth_it(inputs: Sequence[InputSlices]) -> bool:
    """Whether it may pay to look for the affected records: there are many, and few of them new."""
    return pays(records_of(inputs), sum(map(new_records_of, inputs)))


def check_extent(task: TransformTask, extent: Extent | None, *, in_full: bool) -> None:
    """Raise `PlanError` E0385 where a step would be computed over more records than it may."""
    if task.most_records is None and not task.never_full:
        return
    total = records_of(task.inputs)
    records = total if in_full or extent is None else extent.records
    is_many = task.most_records is not None and records > task.most_records
    if not is_many and not (task.never_full and in_full and is_worth_it(task.inputs)):
        return
    which = f"all {total:,}" if in_full else f"{records:,} of {total:,}"
    raise PlanError(
        f"the step of '{task.dataset}' needs {which} records of its inputs, which is more than "
        "policies let it read",
        code="E0385",
        dataset=task.dataset,
        notes=tuple(filter(None, [extent.why if extent is not None else ""])),
        help=f"let it, this once: odfbuild apply --allow read:{task.dataset}",
    )


def affected(
    inputs: Sequence[InputSlices],
    parts: Parts,
    folder: Path,
    unread: Mapping[str, Unread] = NOTHING_UNREAD,
) -> Affected | None:
    """The affected records, in files in `folder`; `None` where these are too many.

    `unread` corrections, by alias of the input, affect none.
    """
    total = records_of(inputs)
    left = most_affected(total)
    conditions = _conditions(inputs, parts, unread)
    if conditions is None:
        return None
    before, after, found = [], [], 0
    for number, each in enumerate(inputs):
        if each.alias in parts.whole:
            found += _records(each)
            before.append(each)
            after.append(each)
            continue
        copies = _Copies(each, folder / str(number), left - found)
        if conditions[each.alias] and not copies.make(conditions[each.alias]):
            return None
        found += copies.records
        last = _LAST if each.last is None else each.last
        before.append(_of(each, copies.old, last if each.first is None else each.first - 1))
        after.append(_of(each, [*copies.old, *copies.new], last))
    if found > left:
        return None
    return Affected(tuple(before), tuple(after), Extent(found, total))


def records_like(
    each: InputSlices, keys: Sequence[str], files: Sequence[Path], folder: Path
) -> tuple[Path, ...]:
    """Files with those records of `each`, at least, that have the `keys` of a record in `files`."""
    kinds = ((name, _key_type(each.schema.field(name).type)) for name in keys)
    condition = _Condition(tuple((name, kind) for name, kind in kinds if kind is not None))
    total = _records(each)
    if not condition.values or each.copies.side_cars is None or total < MANY_RECORDS:
        return each.all_files()
    hashes = [condition.hashes_of(pq.read_table(file)) for file in files]
    copies = _Copies(each, folder, total)
    copies.make([replace(condition, hashes=np.unique(np.concatenate(hashes)))])
    return tuple(copies.old)


class _Condition(Value):
    """What affected records of a reading have: one of the values, and times near some of those.

    `values` are the columns of the key that are no times, with the types that they are compared in,
    and `hashes` those of the affected ones. `times` are columns with how near, in microseconds, and
    the times of the new records; both are sorted.
    """

    values: tuple[tuple[str, pa.DataType], ...]
    times: tuple[tuple[str, int, _Times], ...] = ()
    hashes: Hashes = field(default_factory=lambda: np.empty(0, np.uint64))

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns of the key."""
        return (*(name for name, _ in self.values), *(name for name, _, _ in self.times))

    @property
    def key(self) -> str:
        """By what affected records are found: hashes, or times where there are none."""
        return repr([(n, str(kind)) for n, kind in self.values] or self.times[0][0])

    def places_of(self, table: pa.Table) -> Hashes:
        """Where the records of `table` are among those that are kept by the key."""
        if self.values:
            return self.hashes_of(table)
        times = _times_in(table, self.times[0][0])
        return _as_places(pc.fill_null(times, _NO_TIME).to_numpy(zero_copy_only=False))

    def places(self) -> tuple[Hashes, Hashes]:
        """The lowest and the highest places of affected records, pairs of them."""
        if self.values:
            return self.hashes, self.hashes
        _, length, times = self.times[0]
        null = [np.array([_NO_TIME], np.int64)] if times.missing else []
        lowest, highest = times.sorted - length, times.sorted + length
        return (
            _as_places(np.concatenate([*null, lowest])),
            _as_places(np.concatenate([*null, highest])),
        )

    def hashes_of(self, table: pa.Table) -> Hashes:
        """Those of the values in `table`."""
        if not self.values:
            return np.zeros(table.num_rows, np.uint64)
        found = [_column(table, name, kind) for name, kind in self.values]
        return hash_rows(pa.table(found, names=[str(n) for n in range(len(found))]))

    def meets(self, table: pa.Table) -> npt.NDArray[np.bool_]:
        """Which records of `table` meet it."""
        found = _is_one_of(self.hashes_of(table), self.hashes)
        for name, length, times in self.times:
            found &= times.are_near(_times_in(table, name), length)
        return found


_NO_TIME = -(1 << 63)


def _as_places(times: npt.NDArray[np.int64]) -> Hashes:
    """Microseconds as numbers in the same order that are not negative."""
    return times.astype(np.int64).view(np.uint64) ^ np.uint64(1 << 63)


class _Times(Value):
    """Times in microseconds, sorted, and whether some are missing."""

    sorted: npt.NDArray[np.int64]
    missing: bool

    def are_near(self, times: pa.Array, length: int) -> npt.NDArray[np.bool_]:
        """Which of `times` are at most `length` away from one of these; nulls are near nulls."""
        values = pc.fill_null(times, 0).to_numpy(zero_copy_only=False)
        after = np.searchsorted(self.sorted, values - length)
        within = after < np.searchsorted(self.sorted, values + length, "right")
        is_null = times.is_null().to_numpy(zero_copy_only=False)
        found: npt.NDArray[np.bool_] = np.where(is_null, self.missing, within)
        return found


def _conditions(
    inputs: Sequence[InputSlices], parts: Parts, unread: Mapping[str, Unread]
) -> Mapping[str, Sequence[_Condition]] | None:
    """What affected records of each input have, by its alias; `None`: keys cannot be compared."""
    by_alias = {each.alias: each for each in inputs}
    found: dict[str, list[_Condition]] = {alias: [] for alias in by_alias}
    for space in parts.spaces:
        conditions = _of_space(by_alias, space, unread)
        if conditions is None:
            return None
        for reading, condition in zip(space, conditions, strict=True):
            found[reading.alias].append(condition)
    return found


def _of_space(
    inputs: Mapping[str, InputSlices], space: Sequence[Reading], unread: Mapping[str, Unread]
) -> Sequence[_Condition] | None:
    """The condition for each reading of a space; `None` where no column can be compared."""
    values: list[list[tuple[str, pa.DataType]]] = [[] for _ in space]
    cut: list[tuple[int, tuple[str, ...]]] = []
    for columns in zip(*(reading.columns for reading in space), strict=True):
        types = [
            inputs[reading.alias].schema.field(column.name).type
            for reading, column in zip(space, columns, strict=True)
        ]
        kinds = {_key_type(kind) for kind in types}
        length = max(column.length for column in columns)
        if length and all(map(_is_time, types)):
            # In two columns, times of one key are as far apart as both lengths together.
            names = tuple(column.name for column in columns)
            cut.append((length * min(2, len(space)), names))
        elif not length and len(kinds) == 1 and None not in kinds:
            [kind] = kinds
            for found, column in zip(values, columns, strict=True):
                found.append((column.name, kind))
    if not cut and not all(values):
        return None
    plain = [_Condition(tuple(found)) for found in values]
    hashes: list[Hashes] = [np.empty(0, np.uint64)]
    times: list[list[pa.Array]] = [[] for _ in cut]
    for number, (reading, condition) in enumerate(zip(space, plain, strict=True)):
        wanted = [*condition.columns, *(names[number] for _, names in cut)]
        for table in _new_records(inputs[reading.alias], wanted, unread.get(reading.alias)):
            hashes.append(condition.hashes_of(table))
            for new, (_, names) in zip(times, cut, strict=True):
                new.append(_times_in(table, names[number]))
    near = [(length, names, _sorted(new)) for (length, names), new in zip(cut, times, strict=True)]
    return [
        replace(
            condition,
            times=tuple((names[number], length, new) for length, names, new in near),
            hashes=np.unique(np.concatenate(hashes)),
        )
        for number, condition in enumerate(plain)
    ]


def _key_type(kind: pa.DataType) -> pa.DataType | None:
    if pa.types.is_integer(kind) and kind != pa.uint64():
        return pa.int64()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", "UTC") if kind.unit != "ns" else None
    return comparable_type(kind)


_NANOS = pa.timestamp("ns", "UTC")


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_date32(kind) or pa.types.is_timestamp(kind)) and kind != _NANOS


def _column(table: pa.Table, name: str, kind: pa.DataType) -> pa.ChunkedArray:
    """A column that a file does not have is null in all its records."""
    if name not in table.column_names:
        return pa.chunked_array([pa.nulls(table.num_rows, kind)])
    return table[name].cast(kind)


def _times_in(table: pa.Table, name: str) -> pa.Array:
    """Microseconds since 1970."""
    return _column(table, name, pa.timestamp("us", "UTC")).cast(pa.int64()).combine_chunks()


def _sorted(times: Sequence[pa.Array]) -> _Times:
    values = [each.drop_null().to_numpy() for each in times]
    joined = np.concatenate(values) if values else np.empty(0, np.int64)
    return _Times(np.unique(joined), any(each.null_count for each in times))


def _is_one_of(hashes: Hashes, wanted: Hashes) -> npt.NDArray[np.bool_]:
    """Most are none of the `wanted` ones, which their last bits tell faster than a search."""
    endings = np.zeros(_ENDINGS, bool)
    endings[wanted & _LAST_BITS] = True
    found: npt.NDArray[np.bool_] = endings[hashes & _LAST_BITS]
    rows = np.flatnonzero(found)
    places = np.minimum(np.searchsorted(wanted, hashes[rows]), len(wanted) - 1)
    found[rows] = wanted[places] == hashes[rows]
    return found


def _offsets(table: pa.Table, each: InputSlices) -> npt.NDArray[np.int64]:
    found: npt.NDArray[np.int64] = table[each.vocab.offset].cast(pa.int64()).to_numpy()
    return found


def _new_records(
    each: InputSlices, columns: Sequence[str], unread: Unread | None
) -> Iterator[pa.Table]:
    """These columns, at least, of the new records, as far as files have them."""
    for file in each.files:
        known = unread if unread is not None and file.name in unread.files else None
        more = (known.operation, *known.columns) if known is not None else ()
        with pq.ParquetFile(file, memory_map=True) as source:
            names = dict.fromkeys((*columns, *more, each.vocab.offset))
            wanted = [name for name in names if name in source.schema_arrow.names]
            for group in range(source.num_row_groups):
                table = source.read_row_group(group, columns=wanted)
                table = table.filter(pa.array(_offsets(table, each) >= (each.first or 0)))
                yield table if known is None else known.left_out(table)


class _Copies:
    """Files of the affected records of an input: `old` ones, and `new` ones; `most` in all."""

    def __init__(self, each: InputSlices, folder: Path, most: int) -> None:
        self._each = each
        self._folder = folder
        self._most = most
        self._writers: dict[tuple[bool, str], pq.ParquetWriter] = {}
        self.old: list[Path] = []
        self.new: list[Path] = []
        self.records = 0
        self._looked_at = 0

    def make(self, conditions: Sequence[_Condition]) -> bool:
        """Copy what meets any of the conditions; `False` where it is more than `most`."""
        each = self._each
        self._folder.mkdir()
        keys = dict.fromkeys(name for condition in conditions for name in condition.columns)
        slices = [*dict.fromkeys(one.path for one in (*each.earlier(), *each.slices))]
        places = {condition.key: condition.places_of for condition in conditions}
        side_cars, cuts = each.copies.side_cars, each.last is not None
        kept = RecordsByKey(side_cars, places, slices, cuts=cuts) if side_cars else None
        held = kept.held if kept else ()
        rest = each.copies.instead_of([file for file in slices if file.name not in held])
        with ExitStack() as opened:
            found = all(self._find(kept, conditions, opened)) if kept else True
            found = found and all(self._copy(file, [*keys], conditions, opened) for file in rest)
        if kept and found and worth_keeping(self.records, self._looked_at, len(rest), bool(held)):
            kept.keep()
        return found

    def _find(
        self, kept: RecordsByKey, conditions: Sequence[_Condition], opened: ExitStack
    ) -> Iterator[bool]:
        """Copy what is kept by keys, as `make` does."""
        for number, condition in enumerate(conditions):
            for rows in kept.find(condition.key, *condition.places()):
                mask = condition.meets(rows) & self._is_wanted(rows)
                for other in conditions[:number]:  # what meets that is copied already
                    mask &= ~other.meets(rows)
                yield self._count(mask)
                self._write(rows.filter(pa.array(mask)), opened)

    def _copy(
        self, file: Path, keys: Sequence[str], conditions: Sequence[_Condition], opened: ExitStack
    ) -> bool:
        with pq.ParquetFile(file, memory_map=True) as source:
            names = [n for n in (*keys, self._each.vocab.offset) if n in source.schema_arrow.names]
            for group in range(source.num_row_groups):
                table = source.read_row_group(group, columns=names)
                self._looked_at += table.num_rows
                masks = (condition.meets(table) for condition in conditions)
                mask = reduce(np.logical_or, masks) & self._is_wanted(table)
                if not self._count(mask):
                    return False
                if mask.any():
                    self._write(source.read_row_group(group).filter(pa.array(mask)), opened)
        return True

    def _is_wanted(self, table: pa.Table) -> npt.NDArray[np.bool_]:
        """Which records are not behind the last one."""
        last = _LAST if self._each.last is None else self._each.last
        return _offsets(table, self._each) <= last

    def _count(self, mask: npt.NDArray[np.bool_]) -> bool:
        self.records += int(np.count_nonzero(mask))
        return self.records <= self._most

    def _write(self, rows: pa.Table, opened: ExitStack) -> None:
        """Few files: Spark plans each one apart."""
        if not rows.num_rows:
            return
        rows = rows.replace_schema_metadata(None)
        first = _LAST if self._each.first is None else self._each.first
        is_new = _offsets(rows, self._each) >= first
        for new, files in ((False, self.old), (True, self.new)):
            half = rows.filter(pa.array(is_new == new))
            layout = (new, str(rows.schema))
            if half.num_rows and layout not in self._writers:
                files.append(self._folder / f"{'new' if new else 'old'}-{len(files)}.parquet")
                # Java cannot read all that Arrow writes with LZ4.
                writer = pq.ParquetWriter(files[-1], rows.schema, compression="snappy")
                self._writers[layout] = opened.enter_context(writer)
            if half.num_rows:
                self._writers[layout].write_table(half)


def worth_keeping(found: int, looked_at: int, files: int, is_kept: bool) -> bool:
    """Whether to keep records by key, after so many were looked at to find few of them.

    Then a step costs what it finds, and keeping them costs what some ten steps did.
    """
    if found * FEW > looked_at and not is_kept:
        return False
    return looked_at >= MANY_RECORDS or (is_kept and files >= MANY_FILES)


def _of(each: InputSlices, files: Sequence[Path], last: int) -> InputSlices:
    """The input as it is when `files` hold all of its records, up to the offset `last`."""
    slices = tuple(SliceFile(file) for file in files)
    return replace(
        each,
        slices=slices,
        first=0 if slices else None,
        last=last if slices else None,
        earlier=lambda: (),
        copies=NO_COPIES,
    )
