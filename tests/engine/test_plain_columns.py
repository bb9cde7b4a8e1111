"""Text as columns: the same records as the reader of few records has, or none at all."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfbuild.engine.contract import Engine
from odfbuild.engine.spark.reading.plain_columns import columns_of
from odfbuild.engine.spark.reading.plain_records import plain_records
from odfbuild.engine.spark.reading.plain_text import Unclear
from odfbuild.odf.model import ReadStepCsv, ReadStepNdJson
from tests.ingest.run_ingest import ingest

COLUMNS = pa.schema(
    [
        ("text", pa.string()),
        ("flag", pa.bool_()),
        ("small", pa.int16()),
        ("large", pa.int64()),
        ("number", pa.float64()),
        ("day", pa.date32()),
        ("time", pa.timestamp("ms", "UTC")),
        ("price", pa.decimal128(6, 2)),
    ]
)
JSON = pa.schema([field for field in COLUMNS if field.name != "price"])
CELLS = {
    "text": [
        "",
        "a",
        "ä\u2028b",
        " a",
        "a\t",
        "\u00a0",
        '"a"',
        "a\\",
        "NULL",
        '"a,b"',
        '"a ""b"""',
        '""',
        '"a\nb"',
        '"a',
        'a"b',
        '"a"b',
        '""""',
        '"\u00e9"',
    ],
    "flag": ["", "true", "false", "True", "1"],
    "small": ["", "0", '"5"', '""', "-1", "32767", "32768", "01", "-0", "1.0", "٣"],
    "large": ["", "999999999999999999", "1000000000000000000", "+1"],
    "number": ["", "0", "-0", "-0.0", "1.25", "0.1234567", "1e3", "-1.5", "12345678"],
    "day": ["", "2024-02-29", "2023-02-29", "1599-01-01", "2024-1-1"],
    "time": [
        "",
        "2024-01-01T00:00:00Z",
        "2024-01-01 00:00:00.125",
        "2024-01-01T24:00:00",
        "2024-01-01T23:59:60Z",
        "2024-01-01",
        "2024-01-01T00:00:00+01:00",
    ],
    "price": ["", "1.25", "1.2", "9999.99", "10000", "1.255", "-0", "-1"],
}
PLAIN = {name: cells[:2] for name, cells in CELLS.items()}
ROWS = st.lists(
    st.tuples(*(st.sampled_from([*PLAIN[name] * 12, *CELLS[name]]) for name in COLUMNS.names)),
    min_size=1,
    max_size=5,
)


def found(text: bytes, read: Any, columns: pa.Schema) -> pa.Table | None:
    try:
        return pa.Table.from_batches(columns_of(text, read, columns))
    except Unclear:
        return None


def expected(text: bytes, read: Any, columns: pa.Schema, folder: Path) -> pa.Table | None:
    file = folder / "data"
    file.write_bytes(text)
    return plain_records(cast("Any", SimpleNamespace(file=file, read=read)), columns)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("plain")


@given(rows=ROWS, end=st.sampled_from(["\n", "\r\n", "\r"]), ends=st.booleans())
def test_lines_of_csv_have_the_records_that_few_lines_have(
    rows: list[tuple[str, ...]], end: str, ends: bool, folder: Path
) -> None:
    read = ReadStepCsv(escape=None)
    text = (end.join(",".join(row) for row in rows) + end * ends).encode()
    assert found(text, read, COLUMNS) == expected(text, read, COLUMNS, folder)


@given(
    rows=st.lists(
        st.sampled_from(
            [
                '{"text": "a", "large": 1}',
                '{"text": "a b", "number": 1.5, "time": "2024-01-01T00:00:00Z"}',
                '{"flag": true}',
                '{"large": 1.0}',
                '{"text": "a", "text": "b"}',
                '{"other": 1}',
                '{"text": "\\u0041"}',
                "[]",
            ]
        ),
        min_size=1,
        max_size=3,
    )
)
def test_lines_of_json_have_the_records_that_few_lines_have(rows: list[str], folder: Path) -> None:
    text = "\n".join(rows).encode()
    assert found(text, ReadStepNdJson(), JSON) == expected(text, ReadStepNdJson(), JSON, folder)


def test_all_forms_are_read() -> None:
    text = ",".join(cells[1] for cells in CELLS.values()).encode()
    table = found(text, ReadStepCsv(escape=None), COLUMNS)
    assert table is not None
    assert table.num_rows == 1


def test_text_is_read_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odfbuild.engine.spark.reading.plain_columns._BLOCK", 10)
    columns = pa.schema([("number", pa.int64())])
    text = b"".join(b"%d\n" % number for number in range(100))
    batches = [*columns_of(text, ReadStepCsv(escape=None), columns)]
    assert len(batches) > 5
    assert pa.Table.from_batches(batches)["number"].to_pylist() == [*range(100)]


QUOTED = [
    "a",
    '"a, b"',
    '"say ""hi"""',
    '""""',
    '""""""',
    '""',
    "",
    '"\u00e9;\t|"',
    '"NULL"',
    "NULL",
]


@pytest.mark.spark
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_quoted_values_are_what_spark_reads(end: str, tmp_path: Path, spark_engine: Engine) -> None:
    names = [f"{number}.5" for number in range(len(QUOTED))]
    text = "".join(f'"{name}",{cell},"1"{end}' for name, cell in zip(names, QUOTED, strict=True))
    columns = pa.schema([("name", pa.string()), ("text", pa.string()), ("number", pa.int64())])
    table = found(text.encode(), ReadStepCsv(), columns)
    assert table is not None
    file = tmp_path / "data.csv"
    file.write_text(text, newline="")
    # Floating numbers of four bytes are left to Spark.
    read = ReadStepCsv(ddl_schema=("name FLOAT", "text STRING", "number BIGINT"))
    _, rows = ingest(spark_engine, tmp_path, file, read)
    assert [(str(r["name"]), r["text"], r["number"]) for r in rows.to_pylist()] == [
        tuple(row.values()) for row in table.to_pylist()
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('"a\nb",1\n', "does not end in its line"),
        ('x,"1\n', "does not end in its line"),
        ('a"b"c,1\n', "a quote within a value"),
        ('"a"b"",1\n', "a quote within a value"),
        ('"a" ,1\n', "a quote within a value"),
        ('"a";"1"\n', "a quote within a value"),
        ("a\rb,1\n", "carriage return"),
        ("a\\b,1\n", "backslash"),
    ],
)
def test_other_quotes_and_ends_of_lines_are_left_to_spark(text: str, why: str) -> None:
    columns = pa.schema([("text", pa.string()), ("number", pa.int64())])
    with pytest.raises(Unclear, match=why):
        [*columns_of(text.encode(), ReadStepCsv(), columns)]
