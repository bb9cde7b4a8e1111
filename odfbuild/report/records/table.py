"""Records of a dataset: `tail`, `sql`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odfbuild.odf.records import records_to_data
from odfbuild.report.forms.table import render_table

if TYPE_CHECKING:
    import pyarrow as pa


def render_records(table: pa.Table, op_column: str = "op") -> str:
    """Records as a table in the order of columns; numbers are flush right."""
    rows = cells(table, op_column)
    return render_table(table.column_names, rows, numeric_columns(table.schema))


def cells(table: pa.Table, op_column: str = "op") -> list[list[str]]:
    """The values of records as text."""
    return [[_text(value) for value in row.values()] for row in records_to_data(table, op_column)]


def numeric_columns(schema: pa.Schema) -> frozenset[int]:
    """Which columns are flush right."""
    import pyarrow as pa

    return frozenset(
        index
        for index, field in enumerate(schema)
        if pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
    )


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)
