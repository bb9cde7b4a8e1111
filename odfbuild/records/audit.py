"""Run checks on records without an engine, in one pass over their data files.

A record that is retracted or corrected takes its counterpart away; for checks of single records
only what is appended or what a correction puts in place counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odfbuild.errors import CheckError, InSettings
from odfbuild.odf.operation import APPEND, CORRECT_TO
from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.records.checks import (
    AcceptedValues,
    Asked,
    Check,
    KAnonymous,
    NotNull,
    Relationship,
    RowCount,
    Sql,
    Unique,
)
from odfbuild.records.uuids import is_uuid, to_text
from odfbuild.values import Value
from odfbuild.wording import count

_BATCH_ROWS = 131_072
_SIZES = 5
"""The number of sizes of groups that a message names."""
_PUT_IN_PLACE = (APPEND, CORRECT_TO)
"""Operations that leave a record: append, and the new side of a correction."""

Lookup = Callable[[Relationship], pa.Array]
"""All values of the column that a relationship refers to."""

Query = Callable[[Sql], tuple[int, str]]
"""How many records a query finds, and the first of them as text."""


class Violation(Value):
    """A check that records do not keep to: how many of them, and an example.

    `path` is where it is declared, below `checks` of odfbuild.yaml.
    """

    check: Check
    warn: bool
    count: int
    example: str
    path: tuple[str | int, ...] = ()

    def without_example(self) -> Violation:
        """The same without values of a record."""
        return replace(self, example="")

    def __str__(self) -> str:
        records = count(self.count, "record")
        if isinstance(self.check, KAnonymous):
            return f"{self.check}: {records} in groups that are too small: {self.example}"
        what = records if not isinstance(self.check, RowCount) else f"there are {records}"
        return f"{self.check}: {what}{f', such as {self.example}' if self.example else ''}"


def audit(
    dataset: str,
    files: Sequence[Path],
    vocab: Vocabulary,
    asked: Sequence[Asked],
    lookup: Lookup,
    query: Query,
    earlier: Sequence[Path] = (),
) -> tuple[Violation, ...]:
    """Violations of checks by the records in data files of a dataset.

    Checks of the state also look at `earlier`, the files of the records before these. Raises
    `CheckError` E0541 for a column that is not there.
    """
    direct = [each for each in asked if not isinstance(each.check, Sql)]
    names = _columns(dataset, files, direct)
    counters = []
    for each in direct:
        with _declared(each):
            counters.append(_counter(each.check, vocab, lookup))
    columns = list(dict.fromkeys((vocab.operation_type, vocab.offset, *names)))
    of_state = [each for each in counters if isinstance(each, _Groups)]
    for part, asking in ((earlier, of_state), (files, counters)):
        for batch in _batches(part, columns) if asking else ():
            in_place = _in_place(batch, vocab)
            for counter in asking:
                counter.take(batch, in_place)
    found = [(each, *counter.result()) for each, counter in zip(direct, counters, strict=True)]
    for each in asked:
        if isinstance(each.check, Sql):
            with _declared(each):
                found.append((each, *query(each.check)))
    return tuple(
        Violation(each.check, each.warn, count, example, each.path)
        for each, count, example in found
        if count
    )


def values_in_state(files: Sequence[Path], column: str, vocab: Vocabulary) -> pa.Array:
    """What a column holds in the records that data files amount to, each value once."""
    counted = _Counted((column,))
    for batch in _batches(files, [vocab.operation_type, column]):
        counted.take(batch, _in_place(batch, vocab))
    if not counted.parts:
        return pa.nulls(0)
    merged = counted._merged()
    return merged.filter(pc.greater(merged["weight"], 0))[column].combine_chunks()


def _in_place(batch: pa.RecordBatch, vocab: Vocabulary) -> pa.Array:
    """Which records are not taken away again."""
    operations = batch.column(vocab.operation_type).cast(pa.int32())
    return pc.is_in(operations, value_set=pa.array(_PUT_IN_PLACE, pa.int32()))


@contextmanager
def _declared(asked: Asked) -> Iterator[None]:
    """Let errors about a check know where it is declared."""
    try:
        yield
    except CheckError as error:
        raise error.or_at(InSettings.of("checks", *asked.path)) from None


def _columns(dataset: str, files: Sequence[Path], asked: Sequence[Asked]) -> list[str]:
    """Columns that checks look at; all of them must be there."""
    wanted: list[str] = []
    known: list[str] = pq.read_schema(files[-1]).names if files else []
    for each in asked:
        check = each.check
        if isinstance(check, Unique | KAnonymous):
            columns: Sequence[str | None] = check.columns
        else:
            columns = (getattr(check, "column", None),)
        with _declared(each):
            for column in filter(None, columns):
                if files and column not in known:
                    raise no_such_column(dataset, column, known, check)
                wanted.append(column)
    return wanted


def no_such_column(dataset: str, column: str, known: Sequence[str], check: Check) -> CheckError:
    """The error for a check of a column that a dataset does not have."""
    from difflib import get_close_matches

    close = get_close_matches(column, known, n=1)
    return CheckError(
        f"'{dataset}' has no column '{column}', which a check asks for",
        code="E0541",
        dataset=dataset,
        notes=(f"check: {check}",),
        help=f"did you mean '{close[0]}'?" if close else f"it has: {', '.join(known)}",
    )


def _batches(files: Sequence[Path], columns: list[str]) -> Iterator[pa.RecordBatch]:
    for path in files:
        with pq.ParquetFile(path, pre_buffer=False) as file:
            present = set(file.schema_arrow.names)
            found = [column for column in columns if column in present]
            for batch in file.iter_batches(_BATCH_ROWS, columns=found):
                # A column that came later is empty in the records before it.
                arrays = {column: pa.nulls(batch.num_rows) for column in columns}
                arrays |= dict(
                    zip(batch.schema.names, map(_comparable, batch.columns), strict=True)
                )
                yield pa.RecordBatch.from_pydict(arrays)


def _comparable(values: pa.Array) -> pa.Array:
    """Values that are equal where Spark says so: a zero without sign; UUIDs are text."""
    if is_uuid(values.type):
        return to_text(values)
    return pc.add(values, 0) if pa.types.is_floating(values.type) else values


def _counter(check: Check, vocab: Vocabulary, lookup: Lookup) -> _Counter:
    match check:
        case Unique(columns):
            return _Distinct(columns)
        case KAnonymous(columns, k):
            return _Groups(columns, k)
        case RowCount():
            return _Rows(check)
        case NotNull(column):
            return _Each(column, vocab, pc.is_null)
        case AcceptedValues(column, accepted):
            return _Each(column, vocab, lambda values: _outside(values, _typed(accepted, values)))
        case Relationship(column):
            keys = lookup(check)
            return _Each(column, vocab, lambda values: _outside(values, _cast(keys, values)))
    raise AssertionError(f"not a check of records: {check}")


def _outside(values: pa.Array, allowed: pa.Array) -> pa.Array:
    return pc.and_(pc.is_valid(values), pc.invert(pc.is_in(values, value_set=allowed)))


def _cast(keys: pa.Array, values: pa.Array) -> pa.Array:
    try:
        return keys.cast(values.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return _typed(keys.to_pylist(), values)


def _typed(accepted: Sequence[Any], values: pa.Array) -> pa.Array:
    """Accepted values in the type of the column; what does not fit into it is never met."""
    fitting = []
    for value in accepted:
        try:
            fitting.append(pa.scalar(value).cast(values.type).as_py())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            continue
    return pa.array(fitting, values.type)


class _Counter(Protocol):
    """Counts violations of one check, batch by batch."""

    def take(self, batch: pa.RecordBatch, in_place: pa.Array) -> None:
        """Look at some records; `in_place` are those that are not taken away again."""

    def result(self) -> tuple[int, str]:
        """How many violations there are, and an example."""
        ...


@dataclass
class _Each:
    """Records whose value in a column is wrong by itself."""

    column: str
    vocab: Vocabulary
    is_wrong: Callable[[pa.Array], pa.Array]
    count: int = 0
    example: str = ""

    def take(self, batch: pa.RecordBatch, in_place: pa.Array) -> None:
        values = batch.column(self.column)
        wrong = pc.and_(in_place, self.is_wrong(values))
        number = pc.sum(wrong).as_py() or 0
        if number and not self.count:
            first = pc.index(wrong, True).as_py()
            offset = batch.column(self.vocab.offset)[first].as_py()
            value = values[first].as_py()
            self.example = f"offset {offset}" + ("" if value is None else f", {value!r}")
        self.count += number

    def result(self) -> tuple[int, str]:
        return self.count, self.example


@dataclass
class _Rows:
    """The number of records."""

    check: RowCount
    count: int = 0

    def take(self, batch: pa.RecordBatch, in_place: pa.Array) -> None:
        self.count += pc.sum(in_place).as_py() or 0

    def result(self) -> tuple[int, str]:
        least, most = self.check.least or 0, self.check.most
        fits = least <= self.count and (most is None or self.count <= most)
        # Also no record at all can be too few: the number of violations is never nought then.
        return (0, "") if fits else (max(1, self.count), "")


@dataclass
class _Counted:
    """How many records have the same values in some columns, once those taken away are."""

    columns: tuple[str, ...]
    parts: list[pa.Table] = field(default_factory=list)

    def take(self, batch: pa.RecordBatch, in_place: pa.Array) -> None:
        keys = pa.Table.from_batches([batch.select(list(self.columns))])
        weight = pc.if_else(in_place, pa.scalar(1, pa.int64()), pa.scalar(-1, pa.int64()))
        self.parts.append(self._summed(self._considered(keys.append_column("weight", weight))))

    def _considered(self, table: pa.Table) -> pa.Table:
        return table

    def _summed(self, table: pa.Table) -> pa.Table:
        summed = table.group_by(list(self.columns)).aggregate([("weight", "sum")])
        return summed.rename_columns([*self.columns, "weight"])

    def _merged(self) -> pa.Table:
        return self._summed(pa.concat_tables(self.parts, promote_options="permissive"))


class _Groups(_Counted):
    """Groups of fewer than `k` records. Says how large they are, not what they are."""

    def __init__(self, columns: tuple[str, ...], k: int) -> None:
        super().__init__(columns)
        self.k = k

    def result(self) -> tuple[int, str]:
        if not self.parts:
            return 0, ""
        sizes = self._merged()["weight"]
        small = sizes.filter(pc.and_(pc.greater(sizes, 0), pc.less(sizes, self.k)))
        if not len(small):
            return 0, ""
        counted = sorted(
            (each["values"], each["counts"]) for each in small.value_counts().to_pylist()
        )
        said = [f"{count(groups, 'group')} of {count(size, 'record')}" for size, groups in counted]
        more = [f"{count(len(said) - _SIZES, 'other size')}"] if len(said) > _SIZES else []
        return int(pc.sum(small).as_py()), ", ".join([*said[:_SIZES], *more])


class _Distinct(_Counted):
    """Values that more than one record has."""

    def _considered(self, table: pa.Table) -> pa.Table:
        return table.drop_null()

    def result(self) -> tuple[int, str]:
        if not self.parts:
            return 0, ""
        merged = self._merged()
        repeated = merged.filter(pc.greater(merged["weight"], 1))
        if not repeated.num_rows:
            return 0, ""
        first = repeated.slice(0, 1).to_pylist()[0]
        example = ", ".join(f"{column} {first[column]!r}" for column in self.columns)
        return int(pc.sum(repeated["weight"]).as_py()), example
