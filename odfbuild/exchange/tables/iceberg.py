"""Tables in the format Apache Iceberg, through `pyiceberg`, which writes all its metadata.

One snapshot is one publication; it carries the pin in its summary. The catalogue moves to it only
from the state that was expected. Data files are written here, because the library takes null for an
empty list within lists of structs; what the metadata says of them is the library's.
"""

from __future__ import annotations

import datetime as dt
import itertools
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.expressions import AlwaysTrue, And, BooleanExpression, In, IsNull, Or, Reference
from pyiceberg.io.pyarrow import (
    MetricModeTypes,
    MetricsMode,
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
    schema_to_pyarrow,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionFieldValue, PartitionKey
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table import Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation, Snapshot
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record

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
from odfbuild.exchange.tables.open_types import ICEBERG, converted
from odfbuild.exchange.tables.storage_options import for_iceberg
from odfbuild.records.slice_file import with_statistics
from odfbuild.store.files import folder_lock, make_folder
from odfbuild.store.remote import scheme_of

_DEFAULT = "default"
"""What PyIceberg calls a catalogue without a name, and everybody the first namespace."""
_CONFLICTS = (CommitFailedException, TableAlreadyExistsError)
_READ_ROWS = 65_536
_IN_A_LIST = 1_000
"""Files that a snapshot adds at most: they are one list, which the library writes anew as a whole
when one of them goes. What has more is several snapshots, which become visible at once."""


def open_table(spec: TableSpec) -> IcebergFormat:
    """The table that `spec` describes."""
    return IcebergFormat(spec)


class IcebergFormat:
    """One table of Iceberg in its catalogue."""

    def __init__(self, spec: TableSpec) -> None:
        self._spec = spec
        self._schema = ICEBERG.schema(spec.schema)
        settings = dict(spec.table.catalogue)
        self._identifier = (settings.pop("namespace", _DEFAULT), spec.table.name)
        self._catalogue = self._open_catalogue(settings)
        address = spec.table.address
        folder = scheme_of(address) is None
        self._address = f"file://{address}" if folder else address.replace("az://", "abfs://", 1)

    def read_state(self) -> TableState | None:
        """The current snapshot; `TableError` E1365 where it cannot be read."""
        table = self._load()
        return None if table is None else _state(table)

    def content_of(self, state: TableState, keys: Sequence[Key] | None) -> Iterator[pa.RecordBatch]:
        """The records of these partitions, file by file."""
        table = self._expected(state)
        for each in self._files(table, keys):
            try:
                file = table.io.new_input(each.file_path).open()
            except FileNotFoundError:
                told = f"{each.file_path} is not there"
                raise damaged(self._spec.table, told) from None
            with file:
                for batch in pq.ParquetFile(file).iter_batches(_READ_ROWS):
                    yield converted(batch, self._spec.schema)

    def commit(
        self,
        expected: TableState | None,
        pin: TablePin,
        replaced: Sequence[Key] | None,
        content: Iterable[Touched],
    ) -> TableState:
        """Add one snapshot, together with the layout where all is replaced."""
        table = None if expected is None else self._expected(expected)
        try:
            made = self._begin(table)
            gone = [] if table is None else self._files(table, replaced)
            summary = {PIN: pin.to_text()}
            if table is not None and replaced is None:
                # Files go while their columns are there; both snapshots become visible at once.
                with made.update_snapshot(snapshot_properties=summary).overwrite() as snapshot:
                    _delete(snapshot, gone)
                gone = []
                self._lay_out(made)
            files = self._written(made, content)
            several: list[DataFile] | None = None
            while several is None or len(several) == _IN_A_LIST:
                several = list(itertools.islice(files, _IN_A_LIST))
                with made.update_snapshot(snapshot_properties=summary).overwrite() as snapshot:
                    _delete(snapshot, gone)
                    for file in several:
                        snapshot.append_data_file(file)
                gone = []
            return _state(made.commit_transaction())
        except _CONFLICTS:
            raise TableMoved from None

    def collect(self, keep: dt.timedelta, *, dry_run: bool = False) -> Garbage:
        """Forget snapshots that no reader within `keep` had, and remove what none needs then."""
        table = self._load()
        if table is None:
            return Garbage()
        until = dt.datetime.now(dt.UTC) - keep
        old = _outdated(table, until)
        if old and not dry_run:
            table.maintenance.expire_snapshots().by_ids(old).commit()
            table.refresh()
        kept = [each for each in table.metadata.snapshots if each.snapshot_id not in old]
        needed = set(_needed(table, kept))
        files = {
            name: size
            for name, size in _files_below(self._spec.table.address, until)
            if name not in needed
        }
        if not dry_run:
            for name in files:
                table.io.delete(f"{self._address}/{name}")
        return Garbage(tuple(sorted(files)), sum(files.values()))

    def missing(self, state: TableState) -> Iterator[str]:
        """Data files that are not there, or of another size."""
        table = self._expected(state)
        for each in self._files(table, None):
            found = table.io.new_input(each.file_path)
            if not found.exists() or len(found) != each.file_size_in_bytes:
                yield _below(each.file_path, table.location())

    # --- The catalogue ---

    def _open_catalogue(self, settings: dict[str, str]) -> Catalog:
        location = self._spec.table.location
        if not settings:
            if scheme_of(location) is not None:
                raise TableError(
                    f"the table '{self._spec.table.name}' needs a catalogue: that of SQLite is a "
                    f"local file, and {location} is a store of objects",
                    code="E1366",
                    help="name a catalogue in odfbuild.yaml, such as `catalogue: {type: rest, uri: "
                    "…}`, or a file of SQLite: `catalogue: {uri: sqlite:///lake.db}`",
                )
            make_folder(Path(location))
            settings = {"uri": f"sqlite:///{location}/iceberg.db"}
        with ExitStack() as stack:
            stack.enter_context(self._told())
            if not self._spec.table.catalogue:
                # Of two processes that make its tables at once, the library lets one fail.
                stack.enter_context(folder_lock(Path(location)))
            return load_catalog(
                settings.pop("name", _DEFAULT), **{**for_iceberg(location), **settings}
            )

    def _load(self) -> IcebergTable | None:
        try:
            with self._told():
                return self._catalogue.load_table(self._identifier)
        except (NoSuchTableError, NoSuchNamespaceError):
            return None
        except TableError:
            if self._is_removed():
                return None
            raise

    def _is_removed(self) -> bool:
        """Whether the folder of the table is gone, and our own catalogue beside it is not."""
        return not self._spec.table.catalogue and not Path(self._spec.table.address).exists()

    def _expected(self, state: TableState) -> IcebergTable:
        table = self._load()
        if table is None or table.metadata_location != state.token:
            raise TableMoved
        return table

    def _told(self) -> _Told:
        return _Told(self._spec)

    # --- Layout ---

    def _begin(self, table: IcebergTable | None) -> Transaction:
        if table is not None:
            return table.transaction()
        namespace = self._identifier[0]
        try:
            self._catalogue.create_namespace_if_not_exists(namespace)
        except Exception:
            if not self._catalogue.namespace_exists(namespace):
                raise
            # Another process made it at the same moment.
        if self._is_removed() and self._identifier in self._catalogue.list_tables(namespace):
            self._catalogue.drop_table(self._identifier)
        properties = {
            # Another commit means that what was computed may be out of date.
            "commit.retry.num-retries": "0",
            "write.target-file-size-bytes": str(self._spec.table.target_file_size),
            "write.metadata.delete-after-commit.enabled": "true",
            **{f"write.metadata.metrics.column.{each}": "none" for each in self._spec.personal},
        }
        made = self._catalogue.create_table_transaction(
            self._identifier, self._schema, location=self._address, properties=properties
        )
        self._partition(made)
        return made

    def _lay_out(self, made: Transaction) -> None:
        """Give an empty table the columns and partitions of today, all of them new to Iceberg."""
        with made.update_spec() as spec:
            for field in made.table_metadata.spec().fields:
                spec.remove_field(field.name)
        with made.update_schema(allow_incompatible_changes=True) as schema:
            for column in made.table_metadata.schema().fields:
                schema.delete_column((column.name,))
        with made.update_schema() as schema:
            schema.union_by_name(self._schema)
        self._partition(made)

    def _partition(self, made: Transaction) -> None:
        schema = made.table_metadata.schema()
        with made.update_spec() as spec:
            for column in self._spec.table.partition_by:
                # A column of the name may come again later with another type, which is another
                # field for Iceberg, and its partitions have to have another name, too.
                number = schema.find_field(column).field_id
                spec.add_field(column, IdentityTransform(), f"{column}_{number}")

    # --- Files ---

    def _files(self, table: IcebergTable, keys: Sequence[Key] | None) -> list[DataFile]:
        if keys is not None and not keys:
            return []
        chosen = self._any_of(keys) if keys and self._spec.table.partition_by else AlwaysTrue()
        scan = table.scan(row_filter=chosen)
        with self._told():
            return [task.file for task in scan.plan_files()]

    def _written(self, made: Transaction, content: Iterable[Touched]) -> Iterator[DataFile]:
        """Write the partitions one after the other, each in files of about the target size."""
        metadata, io = made.table_metadata, made._table.io
        arrow = schema_to_pyarrow(metadata.schema())
        run = uuid.uuid4()
        numbers = itertools.count()
        for touched in content:
            key = self._partition_key(metadata, touched.key)
            batches = iter(touched.batches)
            while (first := next(batches, None)) is not None:
                name = f"{metadata.location}/data/{run}-{next(numbers):05}.parquet"
                about: list[pq.FileMetaData] = []
                with (
                    io.new_output(name).create() as sink,
                    pq.ParquetWriter(
                        sink,
                        arrow,
                        metadata_collector=about,
                        write_statistics=with_statistics(arrow),
                    ) as file,
                ):
                    for batch in itertools.chain([first], batches):
                        file.write_batch(converted(batch, arrow))
                        if sink.tell() >= self._spec.table.target_file_size:
                            break
                size = len(io.new_input(name))
                yield _data_file(metadata, name, size, key.partition, about[0])

    def _partition_key(self, metadata: TableMetadata, key: Key) -> PartitionKey:
        spec = metadata.spec()
        values = [
            PartitionFieldValue(field, self._kept(column, value))
            for field, column, value in zip(
                spec.fields, self._spec.table.partition_by, key, strict=True
            )
        ]
        return PartitionKey(values, spec, metadata.schema())

    # --- Partitions ---

    def _any_of(self, keys: Sequence[Key]) -> BooleanExpression:
        """What is true for the records of these keys alone."""
        columns = self._spec.table.partition_by
        return _either(_both(map(self._one_of, columns, values)) for values in grouped(keys))

    def _one_of(self, column: str, values: Sequence[Any]) -> BooleanExpression:
        term = Reference(column)
        kept = [self._kept(column, each) for each in values if each is not None]
        given = [each.isoformat() if isinstance(each, dt.date) else each for each in kept]
        # Their parameters are hidden from mypy by those of the models that they are.
        found: list[BooleanExpression] = [In(term, given)] if given else []  # type: ignore[call-arg,arg-type]
        if len(given) < len(values):
            found.append(IsNull(term))  # type: ignore[call-arg]
        return _either(found)

    def _kept(self, column: str, value: Any) -> Any:
        """A value of a key as the table has it: large integers are decimals there."""
        is_decimal = pa.types.is_decimal(self._schema.field(column).type)
        return Decimal(value) if is_decimal and value is not None else value


class _Told:
    """Turns errors of catalogues and of metadata into those of this project."""

    def __init__(self, spec: TableSpec) -> None:
        self._spec = spec

    def __enter__(self) -> None:
        """Nothing to begin."""

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        known = (*_CONFLICTS, NoSuchTableError, NoSuchNamespaceError, TableError)
        if not isinstance(error, Exception) or isinstance(error, known):
            return
        said = str(error).partition("\n")[0] or type(error).__name__
        raise TableError(
            f"the table '{self._spec.table.name}' cannot be read from its catalogue: {said}",
            code="E1365",
            help="the table is as it was; check `catalogue` and `location` in odfbuild.yaml, and "
            "that the files at the location are complete",
        ) from None


def _delete(snapshot: Any, files: Iterable[DataFile]) -> None:
    for each in files:
        snapshot.delete_data_file(each)


def _data_file(
    metadata: TableMetadata, name: str, size: int, partition: Record, about: pq.FileMetaData
) -> DataFile:
    """What the table says of a file that was written."""
    schema = metadata.schema()
    told = with_statistics(schema_to_pyarrow(schema))
    planned = compute_statistics_plan(schema, metadata.properties)
    silent = MetricsMode(MetricModeTypes.NONE)
    statistics = data_file_statistics_from_parquet_metadata(
        parquet_metadata=about,
        stats_columns={
            number: replace(each, mode=silent)
            if isinstance(told, list) and each.column_name not in told
            else each
            for number, each in planned.items()
        },
        parquet_column_mapping=parquet_path_to_id_mapping(schema),
    )
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=name,
        file_format=FileFormat.PARQUET,
        partition=partition,
        file_size_in_bytes=size,
        sort_order_id=None,
        spec_id=metadata.default_spec_id,
        equality_ids=None,
        key_metadata=None,
        **statistics.to_serialized_dict(),
    )


# --- States ---


def _state(table: IcebergTable) -> TableState:
    snapshot = table.current_snapshot()
    pin, changed_by = _pin(table, snapshot)
    summary = {} if snapshot is None or snapshot.summary is None else snapshot.summary
    files, records, size = (
        None if (value := summary.get(name)) is None else int(value)
        for name in ("total-data-files", "total-records", "total-files-size")
    )
    return TableState(
        token=table.metadata_location,
        pin=pin,
        changed_by=changed_by,
        files=files,
        records=records,
        bytes=size,
    )


def _pin(table: IcebergTable, snapshot: Snapshot | None) -> tuple[TablePin | None, str | None]:
    """The pin of the newest snapshot that has one, and what was done after it."""
    changed_by = None
    while snapshot is not None and snapshot.summary is not None:
        pin = TablePin.from_text(snapshot.summary.get(PIN))
        if pin is not None:
            return pin, changed_by
        if changed_by is None and snapshot.summary.operation is not Operation.REPLACE:
            moment = dt.datetime.fromtimestamp(snapshot.timestamp_ms / 1000, dt.UTC)
            by = snapshot.summary.get("engine-name") or "another program"
            what = snapshot.summary.operation.value
            changed_by = f"{what} by {by} at {moment:%Y-%m-%d %H:%M:%S} UTC"
        parent = snapshot.parent_snapshot_id
        snapshot = None if parent is None else table.snapshot_by_id(parent)
    return None, changed_by or "odfbuild never wrote it"


def _outdated(table: IcebergTable, until: dt.datetime) -> list[int]:
    """Snapshots that had a successor at `until`, so that no reader since began with them."""
    current = table.current_snapshot()
    replaced_at = {
        each.parent_snapshot_id: each.timestamp_ms
        for each in table.metadata.snapshots
        if each.parent_snapshot_id is not None
    }
    return [
        number
        for number, moment in replaced_at.items()
        if moment < until.timestamp() * 1000
        and table.snapshot_by_id(number) is not None
        and (current is None or number != current.snapshot_id)
    ]


def _needed(table: IcebergTable, snapshots: Iterable[Snapshot]) -> Iterator[str]:
    """Names below the table's address of all files that these snapshots, or the metadata, name."""
    location = table.location()
    yield _below(table.metadata_location, location)
    for earlier in table.metadata.metadata_log:
        yield _below(earlier.metadata_file, location)
    seen: set[str] = set()
    for snapshot in snapshots:
        yield _below(snapshot.manifest_list, location)
        for manifest in snapshot.manifests(table.io):
            if manifest.manifest_path in seen:
                continue
            seen.add(manifest.manifest_path)
            yield _below(manifest.manifest_path, location)
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
                yield _below(entry.data_file.file_path, location)


def _below(path: str, location: str) -> str:
    return path.removeprefix(f"{location.rstrip('/')}/")


def _files_below(address: str, until: dt.datetime) -> Iterator[tuple[str, int]]:
    """Files of the table's two folders that were last changed before `until`, and their sizes."""
    import fsspec

    from odfbuild.store.remote import connect

    scheme = scheme_of(address)
    store = fsspec.filesystem("file") if scheme is None else connect(scheme)
    root = address if scheme is None else address.partition("://")[2]
    for folder in ("data", "metadata"):
        for path in store.find(f"{root}/{folder}"):
            if store.modified(path).astimezone(dt.UTC) <= until:
                yield _below(path, root), store.size(path)


# --- Conditions ---


def _either(conditions: Iterable[BooleanExpression]) -> BooleanExpression:
    first, *others = conditions
    return Or(first, *others) if others else first


def _both(conditions: Iterable[BooleanExpression]) -> BooleanExpression:
    first, *others = conditions
    return And(first, *others) if others else first
