"""Datasets as views of DuckDB."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from odfbuild.errors import missing_extra
from odfbuild.odf.operation import APPEND, CORRECT_TO
from odfbuild.records.slice_file import has_floating, may_hide_nan

if TYPE_CHECKING:
    import duckdb

    from odfbuild.records.stored import Stored

_KEPT = "odfbuild_retracted"
"""The schema of tables with the offsets of retracted records."""
_LENT = "__odf_lent"
"""What Arrow data is called while DuckDB takes it over."""


def connect(database: str = ":memory:", **config: Any) -> duckdb.DuckDBPyConnection:
    """A connection in which times are in UTC, as in chains; E0903 where DuckDB is missing.

    So it is where pytz is missing: DuckDB makes Python's times with it, and does not require it.
    """
    absent = missing_extra("duckdb", "DuckDB queries, and states after retractions,")
    try:
        import duckdb
    except ModuleNotFoundError:
        raise absent from None
    if find_spec("pytz") is None:
        raise absent

    made = duckdb.connect(database, config={"autoinstall_known_extensions": False, **config})
    made.execute("SET TimeZone = 'UTC'")
    return made


def create_view(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    stored: Stored,
    expressions: Sequence[str],
    left_out: pa.Array | None,
) -> None:
    """Make a view `name` of these columns of `stored`, or SQL expressions of its columns.

    With `left_out`, offsets, it has no retractions and not these records; the offsets become a
    table of the same name beside.
    """
    rule = ""
    if left_out is not None:
        kept = f"{_KEPT}.{quote(name)}"
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {_KEPT}")
        connection.register(_LENT, pa.table({"offset": left_out}))
        connection.execute(f"CREATE OR REPLACE TABLE {kept} AS FROM {_LENT}")
        connection.unregister(_LENT)
        rule = (
            f" WHERE {quote(stored.vocab.operation_type)} IN ({APPEND}, {CORRECT_TO})"
            f' AND {quote(stored.vocab.offset)} NOT IN (SELECT "offset" FROM {kept})'
        )
    connection.execute(
        f"CREATE OR REPLACE VIEW {quote(name)} AS SELECT {', '.join(expressions)}"
        f" FROM ({history_sql(stored, connection)}){rule}"
    )


def history_sql(stored: Stored, connection: duckdb.DuckDBPyConnection) -> str:
    """All records as the text of a query, in the types of the schema, whatever files have."""
    return files_sql(stored.files, stored.schema, connection)


def files_sql(
    files: Sequence[Path], schema: pa.Schema, connection: duckdb.DuckDBPyConnection
) -> str:
    """The records of Parquet files as the text of a query, in the types of a schema."""
    connection.register(_LENT, pa.RecordBatchReader.from_batches(schema, []))
    described = connection.execute(f"DESCRIBE {_LENT}").fetchall()
    connection.unregister(_LENT)
    footers = list(map(pq.read_metadata, files))
    layouts = [footer.schema.to_arrow_schema() for footer in footers]
    there = {name for layout in layouts for name in layout.names}
    hiding = any(
        has_floating(layout) and may_hide_nan(file, footer)
        for file, footer, layout in zip(files, footers, layouts, strict=True)
    )
    guarded = [each.name for each in schema if hiding and has_floating(pa.schema([each]))]
    columns = ", ".join(
        f"CAST({_read(name, guarded) if name in there else 'NULL'} AS {kind}) AS {quote(name)}"
        for name, kind, *_ in described
    )
    if not files:
        return f"SELECT {columns} WHERE false"
    names = ", ".join(map(literal, map(str, files)))
    same = len({str(layout.remove_metadata()) for layout in layouts}) == 1
    by_name = "" if same else ", union_by_name = true"
    return f"SELECT {columns} FROM read_parquet([{names}]{by_name}, hive_partitioning = false)"


def _read(name: str, guarded: Sequence[str]) -> str:
    """A column as it is; where statistics may hide NaN, so that DuckDB cannot reason about it."""
    column = quote(name)
    return f"CASE WHEN hash({column}) IS NOT NULL THEN {column} END" if name in guarded else column


def quote(name: str) -> str:
    """A name for use in SQL text of DuckDB."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Text as a value in SQL text of DuckDB."""
    return "'" + text.replace("'", "''") + "'"
