"""Check Parquet sources, and rewrite them if they contain types that Spark cannot read.

UUIDs become text, times of day and timestamps keep microseconds, half floats become floats; what
Brotli compressed is compressed in another way.
Source: measured on Spark 4.3.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odfbuild.engine.contract import IngestTask
from odfbuild.engine.precision import micros_in
from odfbuild.errors import IngestError, Location
from odfbuild.records.uuids import is_uuid

_BATCH_ROWS = 65_536
_UNKNOWN_CODECS = {"BROTLI"}
"""For which Spark has no code."""


def readable_parquet(task: IngestTask) -> tuple[Path, pa.Schema]:
    """A file that Spark reads, and its schema, by streaming where a type has to change.

    Raises `IngestError` for what is no Parquet file, or ends early.
    """
    try:
        # As nanoseconds, times of 96 bits would leave the years 1677 to 2262 in silence.
        with pq.ParquetFile(task.file, coerce_int96_timestamp_unit="us") as file:
            found = file.schema_arrow
            if not found.names:
                raise _without_columns(task)
            schema = pa.schema([field.with_type(_readable(field.type)) for field in found])
            same = all(one.type == two.type for one, two in zip(schema, _plain(found), strict=True))
            if same and not _is_old_or_strange(file):
                return task.file, schema
            target = task.scratch / "readable.parquet"
            exact = _to_be_exact(task, found)
            with pq.ParquetWriter(target, schema) as writer:
                for batch in file.iter_batches(_BATCH_ROWS):
                    columns = [
                        _convert(column, field.type)
                        for column, field in zip(batch.columns, schema, strict=True)
                    ]
                    _refuse_nanoseconds(task, batch, columns, exact)
                    writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
            return target, _as_found(schema, found)
    except (pa.ArrowException, OSError) as error:
        raise IngestError(
            f"'{task.source_name}' is not a readable Parquet file: {error}",
            code="E0423",
            location=Location(task.source_name),
            dataset=task.dataset,
            help="check the file and the `prepare` steps before it",
        ) from None


def _as_found(schema: pa.Schema, found: pa.Schema) -> pa.Schema:
    """`schema`, of a file in which UUIDs are text, with columns of UUIDs as such."""
    return pa.schema(
        [
            field.with_type(pa.uuid()) if is_uuid(original.type) else field
            for field, original in zip(schema, found, strict=True)
        ]
    )


def _to_be_exact(task: IngestTask, found: pa.Schema) -> list[str]:
    """Columns of nanoseconds of which nothing says that fewer digits will do."""
    if task.read.schema is not None or task.read.ddl_schema:
        return []
    history = task.history_schema
    in_millis = set(history.names) - micros_in(history) if history is not None else set()
    in_millis.add(task.vocab.event_time)
    kinds = {field.name: field.type for field in found}
    return [
        name
        for name, kind in kinds.items()
        if (pa.types.is_timestamp(kind) and kind.unit == "ns" and name not in in_millis)
        or (pa.types.is_time(kind) and kind.unit == "ns")
    ]


def _refuse_nanoseconds(
    task: IngestTask, batch: pa.RecordBatch, columns: Sequence[pa.Array], exact: Sequence[str]
) -> None:
    for name in exact:
        number = batch.schema.names.index(name)
        if not batch.columns[number].equals(columns[number].cast(batch.columns[number].type)):
            raise IngestError(
                f"'{task.source_name}' has times with nanoseconds in column '{name}', and a "
                "dataset keeps microseconds",
                code="E0488",
                location=Location(task.source_name),
                dataset=task.dataset,
                help=f"declare the columns in `read.schema`, with `{name} TIMESTAMP(6)` to cut "
                "them, or write the file with microseconds or with whole numbers",
            )


def _without_columns(task: IngestTask) -> IngestError:
    return IngestError(
        f"'{task.source_name}' has no columns",
        code="E0423",
        location=Location(task.source_name),
        dataset=task.dataset,
        help="check the file and the `prepare` steps before it",
    )


def _is_old_or_strange(file: pq.ParquetFile) -> bool:
    """Whether columns are times of 96 bits, or compressed in a way that Spark does not know."""
    columns = range(file.metadata.num_columns)
    if any(file.schema.column(number).physical_type == "INT96" for number in columns):
        return True
    if not file.metadata.num_row_groups:
        return False
    group = file.metadata.row_group(0)
    return any(group.column(number).compression in _UNKNOWN_CODECS for number in columns)


def _readable(kind: pa.DataType) -> pa.DataType:
    """What Spark can read `kind` as; the physical layout of text does not matter to it."""
    return _unwrapped(kind, _readable_value)


def _readable_value(kind: pa.DataType) -> pa.DataType:
    t = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return pa.string() if kind.extension_name == "arrow.uuid" else _readable(kind.storage_type)
    if t.is_time(kind):
        return pa.time64("us")
    if t.is_timestamp(kind):
        return pa.timestamp("us", kind.tz) if kind.unit == "ns" else kind
    return pa.float32() if t.is_float16(kind) else kind


def _plain(schema: pa.Schema) -> pa.Schema:
    """`schema` without what is only Arrow's way to lay values out in memory."""
    return pa.schema([field.with_type(_unwrapped(field.type)) for field in schema])


def _unwrapped(
    kind: pa.DataType, value: Callable[[pa.DataType], pa.DataType] = lambda kind: kind
) -> pa.DataType:
    """`kind` in the plainest layout, with `value` for what it holds at last."""
    t = pa.types
    if t.is_dictionary(kind):
        return _unwrapped(kind.value_type, value)
    if t.is_large_string(kind) or t.is_string_view(kind):
        return pa.string()
    if t.is_large_binary(kind) or t.is_binary_view(kind):
        return pa.binary()
    if t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind):
        item = kind.value_field
        return pa.list_(item.with_type(_unwrapped(item.type, value)))
    if t.is_struct(kind):
        members = [member.with_type(_unwrapped(member.type, value)) for member in kind]
        return pa.struct(members)
    return value(kind)


def _convert(values: Any, target: pa.DataType) -> pa.Array:
    if isinstance(values.type, pa.BaseExtensionType):
        if values.type.extension_name == "arrow.uuid":
            texts = [
                None if v is None else str(uuid.UUID(bytes=v)) for v in values.storage.to_pylist()
            ]
            return pa.array(texts, pa.string())
        values = values.storage
    if pa.types.is_timestamp(values.type) and values.type != target:
        # A plain cast rounds toward zero, which moves instants before 1970 forward.
        values = pc.floor_temporal(values, unit="microsecond")
    return values.cast(target, safe=False)


def missing_column(task: IngestTask, name: str, found: Sequence[str]) -> IngestError:
    """The error for a declared column that the source has not."""
    close = get_close_matches(name, found, n=1)
    help = f"did you mean '{close[0]}'?" if close else "correct `read.schema` or the source"
    if task.on_schema_change == "fail" and not close:
        help += f"; `ingest.onSchemaChange: {{{task.dataset}: ignore}}` in odfbuild.yaml leaves "
        help += "missing columns empty where they may be"
    return IngestError(
        f"'{task.source_name}' has no column '{name}'",
        code="E0420",
        dataset=task.dataset,
        notes=(f"its columns are: {', '.join(found)}",),
        help=help,
    )
