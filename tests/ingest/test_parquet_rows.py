"""Counts of Parquet files come from their footers, whoever wrote them."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfbuild.ingest.parquet_rows import rows_of

TABLES = {
    "many": pa.table({"n": range(70_000)}),
    "none": pa.table({"n": pa.array([], pa.int8())}),
    "nested": pa.table({"a": ["x"], "b": [[1, 2]], "c": [{"x": 1, "y": None}]}),
    "typed": pa.table(
        {
            "t": pa.array([1, 2], pa.timestamp("ms", "UTC")),
            "d": pa.array([1, 2], pa.decimal128(5, 2)),
            "u": pa.array([1, 2], pa.uint8()),
            "m": pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int8())),
        }
    ),
    "wide": pa.table({f"c{n}": [n] for n in range(300)}),
}


def written(table: pa.Table, **how: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, **how)
    return file.getvalue()


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("how", [{}, {"row_group_size": 1000, "version": "1.0"}], ids=str)
def test_the_footer_says_how_many(name: str, how: dict[str, Any]) -> None:
    table = TABLES[name]
    assert rows_of(io.BytesIO(written(table, **how))) == table.num_rows


WHOLE = written(TABLES["typed"])


@given(st.integers(0, len(WHOLE) - 1), st.binary(max_size=9))
def test_a_broken_file_is_counted_or_not_and_nothing_else(at: int, bytes_: bytes) -> None:
    broken = WHOLE[:at] + bytes_ + WHOLE[at + len(bytes_) :]
    found = rows_of(io.BytesIO(broken))
    assert found is None or found >= 0
    rows_of(io.BytesIO(WHOLE[:at]))


@pytest.mark.parametrize("text", [b"", b"PAR1", b"no Parquet at all", b"\xff" * 64 + b"PAR1"])
def test_other_files_have_no_count(text: bytes) -> None:
    assert rows_of(io.BytesIO(text)) is None
