"""Facts: records linked with the corrections and retractions that followed them.

A correction says that one record takes the place of another one, a retraction that a record was
never right. So the records of a dataset are facts, each with its latest form last. Reads data files
only, and of these only records that were retracted or that replaced others. Source: Open Data
Fabric, "Retractions and corrections"; RFC-015.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odfbuild.odf.operation import APPEND, CORRECT_FROM, CORRECT_TO, RETRACT
from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.values import Value

if TYPE_CHECKING:
    import pyarrow as pa

_TAKEN = (RETRACT, CORRECT_FROM)


class Form(Value):
    """What a fact said from a record on: values without system columns, `millis` of event time.

    `offset` is `None` for a record that came before those that were read.
    """

    offset: int | None
    millis: int
    values: dict[str, Any]


@dataclass(slots=True)
class Fact:
    """The forms of a fact in the order of the chain, and whether it was retracted in the end."""

    forms: list[Form] = field(default_factory=list)
    retracted: bool = False


class Facts(Value):
    """`moved` are facts that were corrected or retracted, and of the others those asked for.

    `still` are offsets of records that were appended and never retracted, with their event times,
    without those in `moved`.
    """

    moved: tuple[Fact, ...]
    still: pa.Table


def facts_in(files: Sequence[Path], vocab: Vocabulary) -> Facts:
    """What the records of data files, oldest first, say and became.

    A retracted record that is not among them is an earlier fact.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    tables = [_read(file, vocab) for file in files]
    taken = {_key(row, vocab) for table in tables for row in _rows(table, vocab, _TAKEN)}
    times = pa.array({key[0] for key in taken}, pa.int64())
    builder = _Builder(vocab)
    still = [pa.table({"offset": pa.array([], pa.int64()), "millis": pa.array([], pa.int64())})]
    for table in tables:
        # A record stays as it was unless one of its values and its time was taken back.
        suspect = pc.or_(
            pc.not_equal(table[vocab.operation_type], APPEND), pc.is_in(table[_MILLIS], times)
        )
        rows = table.filter(suspect).to_pylist()
        kept = builder.follow(rows, taken)
        calm = table.filter(pc.invert(suspect))
        for part in (calm, table.filter(pc.is_in(table[vocab.offset], pa.array(kept, pa.int64())))):
            still.append(part.select([vocab.offset, _MILLIS]).rename_columns(["offset", "millis"]))
    return Facts(tuple(builder.facts), pa.concat_tables(still))


def valid_at(facts: Facts, millis: int) -> pa.Array:
    """Offsets of the records that were true at a time, in milliseconds of event time.

    Of each fact it is the last form of that time or before; a retracted one was never true.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    moved = [
        next((f.offset for f in reversed(fact.forms) if f.millis <= millis), None)
        for fact in facts.moved
        if not fact.retracted
    ]
    still = facts.still.filter(pc.less_equal(facts.still["millis"], millis))["offset"]
    known = pa.array([offset for offset in moved if offset is not None], pa.int64())
    return pa.concat_arrays([*still.chunks, known])


def rows_at(
    files: Sequence[Path], vocab: Vocabulary, still: pa.Table, millis: int
) -> Iterator[Form]:
    """The records of `Facts.still` whose event time is `millis` or before."""
    import pyarrow.compute as pc

    early = still.filter(pc.less_equal(still["millis"], millis))
    if not early.num_rows:
        return
    for file in files:
        table = _read(file, vocab)
        wanted = pc.is_in(table[vocab.offset], early["offset"].combine_chunks())
        for row in table.filter(wanted).to_pylist():
            yield _form(row, vocab)


_MILLIS = "__odf_millis"


class _Builder:
    """Follows records in the order of the chain."""

    def __init__(self, vocab: Vocabulary) -> None:
        self._vocab = vocab
        self._open: dict[tuple[int, str], list[Fact]] = {}
        self.facts: list[Fact] = []

    def follow(self, rows: Sequence[dict[str, Any]], taken: set[tuple[int, str]]) -> list[int]:
        """Take in records; returns the offsets of those that nothing ever happened to."""
        calm = []
        at = 0
        while at < len(rows):
            row = rows[at]
            operation = row[self._vocab.operation_type]
            after = rows[at + 1] if at + 1 < len(rows) else None
            at += 1
            if operation == APPEND and _key(row, self._vocab) not in taken:
                calm.append(row[self._vocab.offset])
            elif operation in (APPEND, CORRECT_TO):
                self._say(self._begun(), row)
            elif operation == CORRECT_FROM and _follows(after, row, self._vocab):
                assert after is not None
                self._say(self._taken(row), after)
                at += 1
            else:
                self._taken(row).retracted = True
        return calm

    def _begun(self) -> Fact:
        fact = Fact()
        self.facts.append(fact)
        return fact

    def _taken(self, row: dict[str, Any]) -> Fact:
        """The newest fact that says what `row` takes back."""
        known = self._open.get(_key(row, self._vocab))
        if known:
            return known.pop()
        fact = self._begun()
        fact.forms.append(_form(row, self._vocab, before=True))
        return fact

    def _say(self, fact: Fact, row: dict[str, Any]) -> None:
        fact.forms.append(_form(row, self._vocab))
        self._open.setdefault(_key(row, self._vocab), []).append(fact)


def _follows(after: dict[str, Any] | None, row: dict[str, Any], vocab: Vocabulary) -> bool:
    return (
        after is not None
        and after[vocab.operation_type] == CORRECT_TO
        and after[vocab.offset] == row[vocab.offset] + 1
    )


def _form(row: dict[str, Any], vocab: Vocabulary, *, before: bool = False) -> Form:
    return Form(None if before else row[vocab.offset], row[_MILLIS], _values(row, vocab))


def _values(row: dict[str, Any], vocab: Vocabulary) -> dict[str, Any]:
    system = (vocab.offset, vocab.operation_type, vocab.system_time, _MILLIS)
    return {name: value for name, value in row.items() if name not in system}


def _key(row: dict[str, Any], vocab: Vocabulary) -> tuple[int, str]:
    """The same for records of the same values; a column that came later is null in older ones."""
    values = {name: value for name, value in _values(row, vocab).items() if value is not None}
    return row[_MILLIS], repr(sorted(values.items()))


def _rows(
    table: pa.Table, vocab: Vocabulary, operations: Iterable[int]
) -> Iterator[dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.compute as pc

    wanted = pa.array(list(operations), pa.int32())
    yield from table.filter(pc.is_in(table[vocab.operation_type], wanted)).to_pylist()


def _read(file: Path, vocab: Vocabulary) -> pa.Table:
    """A data file with the system columns in one form, and the event time in milliseconds."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(file)
    for name, kind in ((vocab.offset, pa.int64()), (vocab.operation_type, pa.int32())):
        at = table.schema.get_field_index(name)
        table = table.set_column(at, name, table[name].cast(kind))
    times = table[vocab.event_time].cast(pa.timestamp("ms")).cast(pa.int64())
    return table.append_column(_MILLIS, times)
