"""The next state of a dataset, from the present one and new partitions of one of its tables.

Index files and empty files of other tables are written on the way; they have no name before the
metadata file is replaced, so a process can be killed anywhere.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from odfbuild.errors import TableError
from odfbuild.exchange.tables.kartothek.files import NewPartition, empty
from odfbuild.records.kartothek import index as indices
from odfbuild.records.kartothek import names, schema
from odfbuild.records.kartothek.dataset import Kartothek
from odfbuild.records.kartothek.index import Index
from odfbuild.records.kartothek.metadata import Embedded, Files, Metadata, digest
from odfbuild.records.kartothek.notes import Notes, TableNote, noted, owner, part
from odfbuild.store.place import Place, Unconditional

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Layout:
    """How a table is laid out in its dataset; `common` is the schema of `_common_metadata`."""

    uuid: str
    table: str
    keys: tuple[str, ...]
    indices: tuple[str, ...]
    common: pa.Schema


@dataclass(frozen=True, slots=True)
class Change:
    """What a commit does to one table: labels that go, partitions that come, and its pin."""

    removed: frozenset[str]
    added: Sequence[NewPartition]
    pin: str


def neighbours(before: Kartothek | None, layout: Layout) -> Mapping[str, pa.Schema]:
    """Schemas of the other tables of the dataset; `TableError` where ours cannot join them."""
    if before is None:
        return {}
    others = {each: before.schema(each) for each in before.tables if each != layout.table}
    foreign = sorted(set(others) - set(before.notes.tables))
    if foreign:
        raise _not_together(layout, f"odfbuild did not publish its tables {', '.join(foreign)}")
    keys = before.keys
    if others and before.partitions and keys != layout.keys:
        theirs = ", ".join(keys) or "nothing"
        raise _not_together(layout, f"its other tables are partitioned by {theirs}")
    for table, known in others.items():
        for each in known:
            if (
                each.name in layout.common.names
                and layout.common.field(each.name).type != each.type
            ):
                ours = layout.common.field(each.name).type
                why = f"column {each.name!r} is {ours} here, and {each.type} in table {table!r}"
                raise _not_together(layout, why)
    return others


def indexed_columns(
    before: Kartothek | None, layout: Layout, others: Iterable[str]
) -> tuple[str, ...]:
    """Columns of the table for which the dataset has indices: all tables share them."""
    theirs = [
        column
        for each in others
        if before is not None
        for column in before.notes.tables[each].indices
        if column in layout.common.names and column not in layout.keys
    ]
    return tuple(dict.fromkeys([*layout.indices, *theirs]))


def next_state(
    place: Place,
    before: Kartothek | None,
    layout: Layout,
    others: Mapping[str, pa.Schema],
    change: Change,
    now: dt.datetime,
) -> tuple[Metadata, Notes]:
    """The metadata after the change, all files of which are there, and the notes in it."""
    kept, joined = _kept(before, layout, change.removed)
    added = {each.label: each for each in change.added}
    partitions: dict[str, Files] = {
        **kept,
        **{
            label: {
                table: each.file
                if table == layout.table
                else names.data_file(layout.uuid, table, label)
                for table in sorted([layout.table, *others])
            }
            for label, each in added.items()
        },
    }
    _write_empty(place, layout, others, [*added], joined)
    metadata = Metadata(
        layout.uuid,
        partitions,
        layout.keys,
        _indices(place, before, layout, others, change, kept, now),
        before.metadata.user if before else {"creation_time": now.replace(tzinfo=None).isoformat()},
    )
    tables = {
        table: note
        for table, note in (before.notes.tables if before else {}).items()
        if table != layout.table
    }
    own = digest(part(partitions, layout.table).items())
    tables[layout.table] = TableNote(change.pin, schema.encode(layout.common), layout.indices, own)
    notes = Notes(tables, now)
    return noted(metadata, notes), notes


def write_schema(place: Place, before: Kartothek | None, layout: Layout, *, anew: bool) -> None:
    """Replace `_common_metadata` where the schema is another one, or all is written `anew`."""
    data = schema.encode(layout.common)
    if anew or before is None or before.notes.schema(layout.table) != data:
        place.write(names.schema_file(layout.uuid, layout.table), data)


def swap(place: Place, name: str, expected: bytes | None, new: bytes) -> bool:
    """Replace a file that nobody else replaced, as strictly as the store can."""
    try:
        return place.swap(name, expected, new)
    except Unconditional:
        # kartothek has no more than that on any store
        if place.read(name, 1 << 32) != expected:
            return False
        place.write(name, new)
        return True


def _kept(
    before: Kartothek | None, layout: Layout, removed: frozenset[str]
) -> tuple[dict[str, Files], list[str]]:
    """Partitions that stay, and those of them which our table is not in yet."""
    kept = {
        label: files
        for label, files in (before.partitions if before else {}).items()
        if label not in removed
    }
    joined = [label for label, files in kept.items() if layout.table not in files]
    for label in joined:
        own = names.data_file(layout.uuid, layout.table, label)
        kept[label] = dict(sorted({**kept[label], layout.table: own}.items()))
    return kept, joined


def _write_empty(
    place: Place,
    layout: Layout,
    others: Mapping[str, pa.Schema],
    added: Sequence[str],
    joined: Sequence[str],
) -> None:
    """In partitions of one table the other tables have no rows."""
    for table, known, labels in (
        *((table, known, added) for table, known in others.items()),
        (layout.table, layout.common, joined),
    ):
        data = empty(schema.stored(known, layout.keys)) if labels else b""
        for label in labels:
            place.write(names.data_file(layout.uuid, table, label), data)


def _indices(
    place: Place,
    before: Kartothek | None,
    layout: Layout,
    others: Mapping[str, pa.Schema],
    change: Change,
    kept: Mapping[str, Files],
    now: dt.datetime,
) -> dict[str, str | Embedded]:
    """The index of each column, written anew where it changes."""
    made: dict[str, str | Embedded] = {}
    known = {**others, layout.table: layout.common}
    theirs = [column for each in others if before for column in before.notes.tables[each].indices]
    for column in sorted({*layout.indices, *theirs}):
        kind = next(each.field(column).type for each in known.values() if column in each.names)
        index = before.index(column, kind) if before and before.notes.is_ours and kept else None
        if index is None:
            index = _built(before, column, kind, known, kept)
        added = [
            (each.label, each.values[column]) for each in change.added if column in each.values
        ]
        made[column] = _write_index(place, layout.uuid, index.updated(change.removed, added), now)
    return made


def _built(
    before: Kartothek | None,
    column: str,
    kind: pa.DataType,
    known: Mapping[str, pa.Schema],
    kept: Mapping[str, Files],
) -> Index:
    """An index of partitions that stay, from their data files."""
    import pyarrow as pa

    index = Index.empty(column, kind)
    if before is None:
        return index
    wanted = pa.schema([pa.field(column, kind)])
    owners = ((label, owner(label)) for label in kept)
    rows = (
        (label, before.rows(before.partition(label, table), wanted).column(column))
        for label, table in owners
        if table is not None and column in known[table].names
    )
    return index.updated((), ((label, each.combine_chunks().unique()) for label, each in rows))


def _write_index(place: Place, uuid: str, index: Index, now: dt.datetime) -> str:
    """Write an index under a name that nobody else has."""
    data = indices.encode(index)
    while not swap(place, name := names.index_file(uuid, index.column, now), None, data):
        now += dt.timedelta(microseconds=1)
    return name


def _not_together(layout: Layout, why: str) -> TableError:
    return TableError(
        f"table {layout.table!r} cannot be in the kartothek dataset {layout.uuid!r}: {why}",
        code="E1344",
        notes=(
            "tables of one dataset have the same partition columns, and columns of one name "
            "have one type",
        ),
        help="give the table another `group`, or another `name`, in `tables:`",
    )
