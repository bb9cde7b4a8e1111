"""Tables in the format Delta Lake, through `deltalake`, which writes and reads all its files.

One commit of Delta is one publication. It carries the pin in its commit information, and it fails
where another commit came first: the library is told not to try again. A commit of somebody else
that left the records alone, such as an optimisation, does not count as a change.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from queue import Full, Queue
from threading import Event, Thread
from typing import Any
from urllib.parse import unquote

import deltalake
import pyarrow as pa
import pyarrow.dataset as ds
from deltalake.exceptions import CommitFailedError

from odfbuild.errors import TableError
from odfbuild.exchange.tables.contract import (
    PIN,
    Garbage,
    Key,
    TableMoved,
    TablePin,
    TableSpec,
    TableState,
    Touched,
    grouped,
)
from odfbuild.exchange.tables.faults import damaged
from odfbuild.exchange.tables.open_types import DELTA, converted
from odfbuild.exchange.tables.storage_options import for_delta
from odfbuild.records.slice_file import with_statistics
from odfbuild.store.place import Place
from odfbuild.store.storage import open_place

_HARMLESS = ("VACUUM START", "VACUUM END", "OPTIMIZE", "SET TBLPROPERTIES")
"""Operations that change no records."""
_ROWS = 32_768
"""In a row group: one of each partition that is being written is in memory."""
_AHEAD = 4
"""Batches that are made before they are asked for."""
_Check = Callable[[Iterable[Key]], None]
_EMPTY = ("", "__HIVE_DEFAULT_PARTITION__")
"""Text that a partition of Delta cannot stand for: it reads it as null."""


def open_table(spec: TableSpec) -> DeltaFormat:
    """The table that `spec` describes."""
    return DeltaFormat(spec)


class DeltaFormat:
    """One table of Delta Lake."""

    def __init__(self, spec: TableSpec) -> None:
        self._spec = spec
        self._options = for_delta(spec.table.address)
        self._address = spec.table.address.replace("abfs://", "az://", 1)
        self._schema = DELTA.schema(spec.schema)
        self._read: deltalake.DeltaTable | None = None

    def read_state(self) -> TableState | None:
        """The newest version; `TableError` E1362 where its log cannot be read."""
        self._read = self._open()
        return None if self._read is None else self._state(self._read)

    def content_of(self, state: TableState, keys: Sequence[Key] | None) -> Iterator[pa.RecordBatch]:
        """The records of these partitions, whose files are chosen by their keys."""
        if keys is not None and not keys:
            return iter(())
        chosen = self._predicate(keys) if keys is not None else None
        # Files are chosen now: while the content is read, the library writes by the same table.
        found = self._at(state).to_pyarrow_dataset(file_pruning_predicate=chosen or None)
        return self._batches(found)

    def _batches(self, found: ds.Dataset) -> Iterator[pa.RecordBatch]:
        try:
            for batch in found.to_batches(batch_readahead=2, fragment_readahead=1):
                if batch.num_rows:
                    yield converted(batch, self._spec.schema)
        except FileNotFoundError as error:
            raise damaged(self._spec.table, f"a data file is not there: {error}") from None

    def commit(
        self,
        expected: TableState | None,
        pin: TablePin,
        replaced: Sequence[Key] | None,
        content: Iterable[Touched],
    ) -> TableState:
        """Write one version; partitions are chosen by a predicate over their columns."""
        table = self._newest(expected)
        if table is None:
            self._refuse_foreign_files()
        if replaced is not None:
            self._check_keys(replaced)
        stream = _Content(self._schema, content, self._check_keys)
        try:
            with stream as batches:
                deltalake.write_deltalake(
                    self._address if table is None else table,
                    batches,
                    storage_options=self._options,
                    target_file_size=self._spec.table.target_file_size,
                    writer_properties=_writer(self._schema),
                    commit_properties=self._properties(pin),
                    **self._mode(table is None, replaced),
                )
        except Exception as error:  # the library's errors have no class in common
            if stream.error is not None:
                raise stream.error from None
            if _is_conflict(error):
                raise TableMoved from None
            raise self._failed(error) from None
        made = table or self._open()
        if made is None:
            raise TableMoved
        self._read = made
        return self._state(made)

    def collect(self, keep: dt.timedelta, *, dry_run: bool = False) -> Garbage:
        """Remove data files that no version within `keep` names, and older entries of the log."""
        table = self._open()
        if table is None:
            return Garbage()
        hours = math.ceil(keep / dt.timedelta(hours=1))
        rule: dict[str, Any] = {"retention_hours": hours, "enforce_retention_duration": False}
        place = self._place()
        # The library also lists what an earlier call removed.
        sizes = {name: place.size(name) for name in table.vacuum(dry_run=True, full=True, **rule)}
        there = {name: size for name, size in sizes.items() if size is not None}
        found = Garbage(tuple(sorted(there)), sum(there.values()))
        if dry_run or not there:
            return found
        state = self._state(table)
        properties = self._properties(state.pin) if state.pin and not state.changed_by else None
        table.vacuum(dry_run=False, full=True, commit_properties=properties, **rule)
        return found

    def missing(self, state: TableState) -> Iterator[str]:
        """Data files that are not there, or of another size."""
        table = self._at(state)
        place = self._place()
        actions = pa.table(table.get_add_actions()).select(["path", "size_bytes"])
        for path, size in zip(*(column.to_pylist() for column in actions.columns), strict=True):
            name = unquote(path)
            if place.size(name) != size:
                yield name

    # --- The library ---

    def _at(self, state: TableState) -> deltalake.DeltaTable:
        """The version of `state`; it is kept, because loading it reads the names of all files."""
        if self._read is None or str(self._read.version()) != state.token:
            self._read = deltalake.DeltaTable(
                self._address, version=int(state.token), storage_options=self._options
            )
        return self._read

    def _open(self) -> deltalake.DeltaTable | None:
        try:
            if not deltalake.DeltaTable.is_deltatable(self._address, self._options):
                return None
            return deltalake.DeltaTable(self._address, storage_options=self._options)
        except Exception as error:  # the library's errors have no class in common
            raise self._failed(error) from None

    def _newest(self, expected: TableState | None) -> deltalake.DeltaTable | None:
        """The newest version, which is the one of `expected`; `TableMoved` where it is not."""
        if expected is None:
            if self._open() is not None:
                raise TableMoved
            return None
        table = self._at(expected)
        try:
            table.update_incremental()
        except Exception as error:  # the library's errors have no class in common
            raise self._failed(error) from None
        if str(table.version()) != expected.token:
            raise TableMoved
        return table

    def _failed(self, error: Exception) -> TableError:
        return TableError(
            f"the table '{self._spec.table.name}' at {self._spec.table.address} cannot be read or "
            f"written: {_words(error)}",
            code="E1362",
            help="the table is as it was; correct what the message says, or remove the table's "
            "folder and run `odfbuild apply`, which writes it anew",
        )

    def _properties(self, pin: TablePin) -> deltalake.CommitProperties:
        return deltalake.CommitProperties(
            custom_metadata={PIN: pin.to_text()}, max_commit_retries=0
        )

    def _mode(self, is_new: bool, replaced: Sequence[Key] | None) -> dict[str, Any]:
        layout = {"partition_by": list(self._spec.table.partition_by)}
        if is_new:
            keep = f"interval {math.ceil(self._spec.table.keep.total_seconds())} seconds"
            configuration = {
                "delta.logRetentionDuration": keep,
                "delta.deletedFileRetentionDuration": keep,
            }
            if self._spec.personal:
                names = [
                    name for name in self._spec.schema.names if name not in self._spec.personal
                ]
                quoted = (f"`{name.replace('`', '``')}`" for name in names)
                configuration["delta.dataSkippingStatsColumns"] = ",".join(quoted)
            return {"mode": "error", "configuration": configuration, **layout}
        if replaced is None:
            return {"mode": "overwrite", "schema_mode": "overwrite", **layout}
        if not replaced:
            return {"mode": "append"}
        predicate = self._predicate(replaced)
        return {"mode": "overwrite"} | ({"predicate": predicate} if predicate else {})

    def _place(self) -> Place:
        return open_place(self._spec.table.address, Path())

    # --- States ---

    def _state(self, table: deltalake.DeltaTable) -> TableState:
        actions = pa.table(table.get_add_actions())
        columns = table.metadata().partition_columns
        keys = (
            len(
                actions.select(["partition"])
                .flatten()
                .group_by([f"partition.{each}" for each in columns])
                .aggregate([])
            )
            if columns
            else min(1, actions.num_rows)
        )
        pin, changed_by = self._pin(table)
        records = actions["num_records"]
        return TableState(
            token=str(table.version()),
            pin=pin,
            changed_by=changed_by,
            partitions=keys,
            files=actions.num_rows,
            records=None if records.null_count else sum(records.to_pylist()),
            bytes=sum(actions["size_bytes"].to_pylist()),
        )

    def _pin(self, table: deltalake.DeltaTable) -> tuple[TablePin | None, str | None]:
        """The pin of the newest version that has one, and what was done after it."""
        changed_by = None
        for entry in _newest_first(table):
            pin = TablePin.from_text(entry.get(PIN))
            if pin is not None:
                return pin, changed_by
            if changed_by is None and entry.get("operation") not in _HARMLESS:
                changed_by = _told(entry)
        return None, changed_by or "odfbuild never wrote it"

    def _refuse_foreign_files(self) -> None:
        """A vacuum would take files for left-overs that were here before the table."""
        place = self._place()
        foreign = [
            name
            for name in place.list()
            if not name.startswith(("part-", "_delta_log/"))
            and not any(name.startswith(f"{each}=") for each in self._spec.table.partition_by[:1])
        ]
        if foreign:
            raise TableError(
                f"{self._spec.table.address} holds other files, such as '{foreign[0]}', so no "
                "table is made there",
                code="E1363",
                help="give the table a folder of its own: change `location` or `name` in "
                "odfbuild.yaml, or move the files",
            )

    # --- Partitions ---

    def _check_keys(self, keys: Iterable[Key]) -> None:
        for key in keys:
            for column, value in zip(self._spec.table.partition_by, key, strict=True):
                if value in _EMPTY:
                    raise TableError(
                        f"a record has the value '{value}' in the partition column '{column}', "
                        "which Delta cannot tell from null",
                        code="E1364",
                        help=f"remove '{column}' from `partitionBy` in odfbuild.yaml, or replace "
                        "such values in the dataset",
                    )

    def _predicate(self, keys: Sequence[Key]) -> str:
        """The text that Delta chooses partitions by; empty for a table without such columns."""
        columns = self._spec.table.partition_by
        if not columns:
            return ""
        return " OR ".join(
            "("
            + " AND ".join(
                _is_one_of(column, values) for column, values in zip(columns, group, strict=True)
            )
            + ")"
            for group in grouped(keys)
        )


def _writer(schema: pa.Schema) -> deltalake.WriterProperties:
    """How data files are written; the log takes its statistics from them.

    None of floating numbers, as in slices: NaN would be left out.
    """
    told = with_statistics(schema)
    silent, telling = (
        deltalake.ColumnProperties(statistics_enabled=each) for each in ("NONE", "PAGE")
    )
    return deltalake.WriterProperties(
        max_row_group_size=_ROWS,
        compression="SNAPPY",
        default_column_properties=silent if isinstance(told, list) else None,
        column_properties=dict.fromkeys(told, telling) if isinstance(told, list) else None,
    )


def _is_one_of(column: str, values: Sequence[Any]) -> str:
    name = '"' + column.replace('"', '""') + '"'
    given = [_literal(each) for each in values if each is not None]
    found = [f"{name} IN ({', '.join(given)})"] if given else []
    if len(given) < len(values):
        found.append(f"{name} IS NULL")
    return f"({' OR '.join(found)})"


def _literal(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int() | float():
            return repr(value)
        case dt.datetime():
            return f"'{value.isoformat(sep=' ')}'"
        case dt.date():
            return f"DATE '{value.isoformat()}'"
        case _:
            return "'" + str(value).replace("'", "''") + "'"


def _words(error: Exception) -> str:
    """What the library says, without the addresses in its own code that follow."""
    lines = takewhile(lambda line: not line.strip().startswith("0:"), str(error).splitlines())
    return " ".join(line.strip() for line in lines) or type(error).__name__


def _is_conflict(error: Exception) -> bool:
    return isinstance(error, CommitFailedError) or "already exists at" in str(error)


class _Content:
    """Content as a stream of the format's types; `error` is what went wrong while it was read.

    It is made in a thread of its own: where the library asks for what it writes, it cannot read
    another table, and new content is made of what the table has.
    """

    def __init__(self, schema: pa.Schema, content: Iterable[Touched], check: _Check) -> None:
        self._schema = schema
        self._content = content
        self._check = check
        self._made: Queue[pa.RecordBatch | None] = Queue(_AHEAD)
        self._ended = Event()
        self._thread = Thread(target=self._make, daemon=True)
        self.error: BaseException | None = None

    def __enter__(self) -> pa.RecordBatchReader:
        self._thread.start()
        return pa.RecordBatchReader.from_batches(self._schema, self._taken())

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _taken(self) -> Iterator[pa.RecordBatch]:
        while (batch := self._made.get()) is not None:
            yield batch
        if self.error is not None:
            raise self.error

    def _make(self) -> None:
        try:
            for touched in self._content:
                self._check([touched.key])
                for batch in touched.batches:
                    if not self._give(converted(batch, self._schema)):
                        return
        except BaseException as error:
            self.error = error
        self._give(None)

    def _give(self, batch: pa.RecordBatch | None) -> bool:
        """Hand a batch over as soon as there is room; false when nobody takes it any more."""
        while not self._ended.is_set():
            with suppress(Full):
                self._made.put(batch, timeout=0.1)
                return True
        return False


def _newest_first(table: deltalake.DeltaTable) -> Iterator[Mapping[str, Any]]:
    """What commits say of themselves; asks for more of them as they are needed."""
    seen, limit = 0, 1
    while True:
        entries = table.history(limit)
        yield from entries[seen:]
        if len(entries) < limit:
            return
        seen, limit = len(entries), limit * 8


def _told(entry: Mapping[str, Any]) -> str:
    by = entry.get("engineInfo") or entry.get("clientVersion") or "another program"
    what = str(entry.get("operation", "a commit"))
    moment = entry.get("timestamp")
    at = (
        f" at {dt.datetime.fromtimestamp(moment / 1000, dt.UTC):%Y-%m-%d %H:%M:%S} UTC"
        if isinstance(moment, int)
        else ""
    )
    return f"{what} by {by}{at}"
