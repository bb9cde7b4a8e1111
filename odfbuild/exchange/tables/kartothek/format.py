"""Published tables in kartothek: the interface of `table/contract.py`.

A commit writes data files, then indices, then `_common_metadata` if the schema is another one, then
the metadata file by compare-and-swap. Until then readers have the old state. Files and indices have
new names in every commit, so nothing that a reader uses is overwritten, `_common_metadata` apart.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.errors import InSettings, TableError
from odfbuild.exchange.tables.contract import (
    Garbage,
    Key,
    TableMoved,
    TablePin,
    TableSpec,
    TableState,
    Touched,
)
from odfbuild.exchange.tables.kartothek import garbage
from odfbuild.exchange.tables.kartothek.commit import (
    Change,
    Layout,
    indexed_columns,
    neighbours,
    next_state,
    swap,
    write_schema,
)
from odfbuild.exchange.tables.kartothek.files import DataWriter, NewPartition
from odfbuild.records.kartothek import metadata as metadata_form
from odfbuild.records.kartothek import names, schema
from odfbuild.records.kartothek.dataset import (
    DEFAULT_TABLE,
    Found,
    Kartothek,
    find_metadata,
    opened,
)
from odfbuild.records.kartothek.metadata import digest
from odfbuild.store.bucket import Bucket
from odfbuild.store.place import Folder, Place
from odfbuild.store.remote import scheme_of

if TYPE_CHECKING:
    import pyarrow as pa

_OTHERS = "another program changed its partitions"
_NEVER = "odfbuild did not write it"


def open_table(spec: TableSpec) -> KartothekTable:
    """The table that odfbuild.yaml declares; `TableError` where kartothek cannot have it."""
    table = spec.table
    location = table.location
    place: Place = Bucket.at(location) if scheme_of(location) else Folder(Path(location))
    try:
        uuid = names.uuid_of(table.group or table.name)
        own = DEFAULT_TABLE if table.group is None else names.table_of(table.name)
    except TableError as error:
        key = "name" if table.group is None else "group"
        raise error.at(InSettings.of(*table.says(key))) from None
    return KartothekTable(place, uuid, own, spec)


class KartothekTable:
    """One table of a dataset of kartothek."""

    def __init__(self, place: Place, uuid: str, table: str, spec: TableSpec) -> None:
        self._place = place
        self._uuid = uuid
        self._table = table
        self._spec = spec
        self._keys = spec.table.partition_by
        self._stored = schema.stored(spec.schema, self._keys)
        self._read: Kartothek | None = None
        self._told_of: tuple[Kartothek, TableState | None] | None = None
        self._check()

    def read_state(self) -> TableState | None:
        """The present state of this table."""
        present = self._dataset()
        return None if present is None else self._told(present)

    def content_of(self, state: TableState, keys: Sequence[Key] | None) -> Iterator[pa.RecordBatch]:
        """Records of partitions, in the types of the dataset."""
        present = self._expected(state)
        if present is None:
            return
        for label in self._labels(present, keys):
            rows = present.rows(present.partition(label, self._table), self._layout.common)
            yield from _as_recorded(rows, self._spec.schema).to_batches()

    def commit(
        self,
        expected: TableState | None,
        pin: TablePin,
        replaced: Sequence[Key] | None,
        content: Iterable[Touched],
    ) -> TableState:
        """One new state."""
        before = self._expected(expected)
        if before is None:
            self._check_vacant()
        added = list(self._written(before, content))
        while True:
            removed = frozenset(() if before is None else self._labels(before, replaced))
            change = Change(removed, added, pin.to_text())
            after = self._swapped(before, change, anew=replaced is None)
            if after is not None:
                self._read = after
                told = self._told(after)
                assert told is not None
                return told
            # another table of the dataset may have moved; `TableMoved` if it was this one
            before = self._expected(expected)

    def collect(self, keep: dt.timedelta, *, dry_run: bool = False) -> Garbage:
        """Remove what no state needs that was current within `keep`."""
        state = self._dataset()
        if state is None:
            return Garbage()
        found = garbage.unneeded(
            garbage.candidates(self._place, self._uuid, state.tables),
            garbage.named_files(state),
            garbage.read_notes(self._place, self._uuid),
            None if state.notes.committed is None else state.notes.committed.timestamp(),
            time.time(),
            keep.total_seconds(),
        )
        if not dry_run:
            garbage.write_notes(self._place, self._uuid, found.noted)
            for each in found.remove:
                self._place.remove(each.name)
        return Garbage(
            tuple(each.name.removeprefix(f"{self._uuid}/") for each in found.remove),
            sum(each.bytes for each in found.remove),
        )

    def missing(self, state: TableState) -> Iterator[str]:
        """Files that the state names and that are not there, or empty."""
        present = self._expected(state)
        if present is not None:
            there = {each.name for each in self._place.files(self._uuid) if each.bytes}
            schema_name = names.schema_file(self._uuid, self._table)
            needed = garbage.named_files(present) | {schema_name}
            yield from sorted(each.removeprefix(f"{self._uuid}/") for each in needed - there)

    @cached_property
    def _layout(self) -> Layout:
        common = schema.common(schema.stored(self._spec.schema, ()), self._keys)
        return Layout(self._uuid, self._table, self._keys, self._spec.table.indices, common)

    def _check(self) -> None:
        """Refuse columns whose types kartothek cannot have where they are."""
        for setting, columns in (("partitionBy", self._keys), ("indices", self._layout.indices)):
            for number, column in enumerate(columns):
                kind = self._layout.common.field(column).type
                try:
                    if setting == "partitionBy":
                        schema.check_key(column, kind)
                    else:
                        schema.check_index(column, kind, self._keys)
                except TableError as error:
                    place = InSettings.of(*self._spec.table.says(setting), number)
                    raise error.at(place) from None

    def _dataset(self) -> Kartothek | None:
        """The present state of the dataset, decoded once."""
        found = find_metadata(self._place, self._uuid)
        if found is None:
            return None
        if self._read is None or self._read.found != found:
            self._read = opened(self._place, self._uuid, found)
        return self._read

    def _expected(self, state: TableState | None) -> Kartothek | None:
        """The present state of the dataset, if the table is as it was."""
        present = self._dataset()
        told = None if present is None else self._told(present)
        if (told and told.token) != (state and state.token):
            raise TableMoved(f"{self._uuid}: {self._table}")
        return present

    def _told(self, present: Kartothek) -> TableState | None:
        """The state of the table in the dataset, told once for each state of the dataset."""
        if self._told_of is None or self._told_of[0] is not present:
            self._told_of = (present, self._tell(present))
        return self._told_of[1]

    def _tell(self, present: Kartothek) -> TableState | None:
        note = present.notes.tables.get(self._table)
        if note is None and self._table not in present.tables:
            return None
        own = present.part(self._table)
        alone = present.tables == (self._table,)
        # What is told of the whole dataset is told of its only table.
        state = note.part if note and alone and present.notes.is_ours else digest(own.items())
        changed = _NEVER if note is None else _OTHERS if note.part != state else None
        pin = "" if note is None else note.pin
        return TableState(
            token=hashlib.sha256(f"{state}{pin}".encode()).hexdigest(),
            pin=TablePin.from_text(pin),
            changed_by=changed,
            partitions=len({label.rpartition("/")[0] for label in own}),
            files=len(own),
        )

    def _labels(self, present: Kartothek, keys: Sequence[Key] | None) -> list[str]:
        """Labels of the table, of all partitions or of those with these keys."""
        own = present.part(self._table)
        if keys is None:
            return list(own)
        # kartothek has no partitions of nulls
        known = [key for key in keys if None not in key]
        folders = {names.label(list(zip(self._keys, key, strict=True)), "") for key in known}
        return [label for label in own if label[: label.rfind("/") + 1] in folders]

    def _written(
        self, before: Kartothek | None, content: Iterable[Touched]
    ) -> Iterator[NewPartition]:
        others = neighbours(before, self._layout)
        writer = DataWriter(
            self._place,
            self._uuid,
            self._table,
            self._keys,
            self._stored,
            indexed_columns(before, self._layout, others),
            self._spec.table.target_file_size,
            self._spec.scratch,
        )
        for each in content:
            yield from writer.written(each.key, each.batches)

    def _swapped(self, before: Kartothek | None, change: Change, *, anew: bool) -> Kartothek | None:
        """The state after the change; `None` where another program was faster."""
        now = dt.datetime.now(dt.UTC)
        others = neighbours(before, self._layout)
        metadata, notes = next_state(self._place, before, self._layout, others, change, now)
        self._check_there(change.added)
        write_schema(self._place, before, self._layout, anew=anew)
        form = names.FORMS[0] if before is None else before.found.form
        data = metadata_form.encode(metadata, form)
        name = names.metadata_file(self._uuid, form)
        if not swap(self._place, name, None if before is None else before.found.data, data):
            return None
        return Kartothek(self._place, metadata, Found(data, form), notes)

    def _check_there(self, added: Iterable[NewPartition]) -> None:
        """kartothek's garbage collection removes files of writers that have not committed yet."""
        lost = [each.file for each in added if self._place.size(each.file) is None]
        if lost:
            raise TableError(
                f"{lost[0]} was removed while the table was written",
                code="E1343",
                notes=("the garbage collection of kartothek has no grace period",),
                help="run the command again when no other program collects garbage there",
            )

    def _check_vacant(self) -> None:
        """A new dataset must not mix with files that something else keeps under its name."""
        own = f"{self._uuid}/{names.OWN}/"
        for each in self._place.files(self._uuid):
            kinds = (names.DATA_SUFFIX, "/_common_metadata")
            if not each.name.endswith(kinds) and not each.name.startswith(own):
                raise TableError(
                    f"{each.name} is in the way: it is no file of kartothek",
                    code="E1345",
                    notes=(f"the table would be written to {self._place.address}/{self._uuid}",),
                    help="move the file elsewhere, or change `name` or `location` in `tables:`",
                    location=InSettings.of(*self._spec.table.says("location")),
                )


def _as_recorded(rows: pa.Table, wanted: pa.Schema) -> pa.Table:
    """Rows with the columns and types of the dataset; times without a zone are those of UTC."""
    import pyarrow as pa
    from pyarrow import types

    def column(field: pa.Field) -> pa.ChunkedArray:
        found = rows.column(field.name)
        if types.is_timestamp(field.type) and field.type.tz is not None:
            found = found.cast(pa.timestamp("us", field.type.tz))
        return found.cast(field.type)

    return pa.Table.from_arrays([column(each) for each in wanted], schema=wanted)
