"""Records of a dataset: `tail`, `sql`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odfbuild.odf.records import records_to_data
from odfbuild.report.forms.table import render_table

if TYPE_CHECKING:
    import pyarrow as pa


def render_records(table: pa.Table, op_column: str = "op") -> str:
    """Records as a table in the order of columns; numbers are flush right."""
    import pyarrow as pa

    right = frozenset(
        index
        for index, field in enumerate(table.schema)
        if pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
    )
    rows = [[_text(value) for value in row.values()] for row in records_to_data(table, op_column)]
    return render_table(table.column_names, rows, right)


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)
