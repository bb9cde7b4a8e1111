"""Columns of every type that a read step can declare, from each format, in DDL and ODF schemas."""

import base64
import json
from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfbuild.engine.slice import dataset_schema, write_slice
from odfbuild.errors import IngestError, QueryError
from odfbuild.ingest.count import count_records
from odfbuild.odf.model import ReadStepCsv, ReadStepNdJson, ReadStepParquet
from odfbuild.odf.schema.arrow_schema import to_odf
from odfbuild.odf.schema.ddl import parse_ddl
from odfbuild.odf.timestamp import Timestamp
from odfbuild.odf.vocabulary import Vocabulary
from tests.ingest.run_ingest import ingest

pytestmark = pytest.mark.spark

FLAT = {
    "bo BOOLEAN": (True, "true"),
    "ti TINYINT": (-128, "-128"),
    "si SMALLINT": (32767, "32767"),
    "it INT": (-(2**31), "-2147483648"),
    "bi BIGINT": (2**63 - 1, "9223372036854775807"),
    "tu TINYINT UNSIGNED": (255, "255"),
    "su SMALLINT UNSIGNED": (65535, "65535"),
    "iu INT UNSIGNED": (2**32 - 1, "4294967295"),
    "bu BIGINT UNSIGNED": (2**64 - 1, "18446744073709551615"),
    "fl FLOAT": (1.5, "1.5"),
    "do DOUBLE": (1e-300, "1e-300"),
    "dc DECIMAL(38,10)": (Decimal("1234567890123456789012345678.0123456789"),) * 2,
    "da DATE": (date(9999, 12, 31), "9999-12-31"),
    "tm TIME": (time(23, 59, 59, 123456), "23:59:59.123456"),
    "ts TIMESTAMP": (datetime(1, 1, 1, tzinfo=UTC), "0001-01-01T00:00:00Z"),
    "tz TIMESTAMP(3)": (datetime(2026, 1, 1, 6, 30, tzinfo=UTC), "2026-01-01T12:00:00+05:30"),
    "st STRING": ("it's \u65e5\u672c", "it's \u65e5\u672c"),
    "rq STRING NOT NULL": ("r", "r"),
}
NESTED = {
    "ar ARRAY<INT>": ([1, None, 3], [1, None, 3]),
    "aa STRING[]": (["a", ""], ["a", ""]),
    "ro STRUCT<a: INT, b: ARRAY<STRING>>": ({"a": 1, "b": ["x"]},) * 2,
    "al ARRAY<ARRAY<DATE>>": ([[date(2026, 1, 2)], None], [["2026-01-02"], None]),
}


def _name(column):
    return column.split()[0]


def _expected(columns):
    return {_name(column): value for column, (value, _) in columns.items()}


def _line(columns):
    shown = {}
    for column, (_, text) in columns.items():
        bare = _name(column) in ("bo", "dc") or (isinstance(text, str) and text[-1].isdigit())
        temporal = _name(column) in ("da", "tm", "ts", "tz")
        shown[_name(column)] = text if not bare or temporal else f"\0{text}\0"
    return json.dumps(shown).replace('"\\u0000', "").replace('\\u0000"', "")


def _steps(kind, columns, **options):
    """The read step with its columns in DDL, and as ODF schema."""
    ddl = kind(ddl_schema=tuple(columns), **options)
    return ddl, replace(ddl, ddl_schema=None, schema=to_odf(parse_ddl(tuple(columns))))


def _read(engine, folder, file, step, **more):
    """Records and schema as they are committed, not as the engine gives them."""
    folder.mkdir()
    result, _ = ingest(engine, folder, file, step, **more)
    vocab = Vocabulary()
    schema = dataset_schema(result.schema, vocab)
    target = folder / "slice.parquet"
    time = Timestamp.parse("2026-01-01T00:00:00Z")
    write_slice(
        result,
        dataset="x",
        schema=schema,
        vocab=vocab,
        first_offset=0,
        system_time=time,
        target=target,
    )
    found = pq.read_table(target)
    return found.schema, [dict(list(row.items())[4:]) for row in found.to_pylist()]


def _check(engine, tmp_path, file, steps, columns, nulls=True):
    declared = parse_ddl(tuple(columns))
    for number, step in enumerate(steps):
        schema, rows = _read(engine, tmp_path / str(number), file, step)
        for field in declared:
            assert schema.field(field.name).type == field.type, field.name
            assert schema.field(field.name).nullable == field.nullable, field.name
        assert rows[0] == _expected(columns)
        if nulls:
            assert {k: v for k, v in rows[1].items() if v is not None} == {"rq": "r"}


def test_every_type_is_read_from_json(spark_engine, tmp_path):
    columns = FLAT | NESTED
    file = tmp_path / "x.ndjson"
    file.write_text(_line(columns) + '\n{"rq": "r"}\n', "utf-8")
    _check(spark_engine, tmp_path, file, _steps(ReadStepNdJson, columns), columns)


def test_every_type_that_a_cell_can_hold_is_read_from_csv(spark_engine, tmp_path):
    names = [_name(column) for column in FLAT]
    cells = [str(text) for _, text in FLAT.values()]
    nulls = ["r" if name == "rq" else "" for name in names]
    file = tmp_path / "x.csv"
    file.write_text("\n".join(",".join(row) for row in (names, cells, nulls)), "utf-8")
    _check(spark_engine, tmp_path, file, _steps(ReadStepCsv, FLAT, header=True), FLAT)


def test_every_type_is_read_from_parquet(spark_engine, tmp_path):
    columns = FLAT | NESTED | {"by BINARY": (b"\0\xff", None)}
    declared = parse_ddl(tuple(columns))
    file = tmp_path / "x.parquet"
    pq.write_table(pa.Table.from_pylist([_expected(columns)], schema=declared), file)
    steps = _steps(ReadStepParquet, columns)
    _check(spark_engine, tmp_path, file, steps, columns, nulls=False)
    _, rows = _read(spark_engine, tmp_path / "as-it-is", file, ReadStepParquet())
    assert rows == [_expected(columns)]


def test_binary_is_read_from_base64_in_json(spark_engine, tmp_path):
    file = tmp_path / "x.ndjson"
    file.write_text(json.dumps({"by": base64.b64encode(b"\0\xff").decode()}) + "\n", "utf-8")
    _, rows = _read(spark_engine, tmp_path / "0", file, ReadStepNdJson(ddl_schema=("by BINARY",)))
    assert rows == [{"by": b"\0\xff"}]


@pytest.mark.parametrize("column", ["x ARRAY<STRUCT<a: INT>>", "x MAP<STRING, INT>"])
def test_types_that_no_dataset_can_hold_are_refused(spark_engine, tmp_path, column):
    file = tmp_path / "x.ndjson"
    file.write_text('{"x": null}\n', "utf-8")
    with pytest.raises(QueryError) as caught:
        _read(spark_engine, tmp_path / "0", file, ReadStepNdJson(ddl_schema=(column,)))
    assert caught.value.code in ("E0512", "E0530")
    assert caught.value.help


def test_numbers_and_objects_enter_text_as_they_are_written(spark_engine, tmp_path):
    file = tmp_path / "x.ndjson"
    file.write_text('{"a": 1.50, "b": {"z": 1, "y": [ 12345678901234567890.10 ]}}\n', "utf-8")
    step = ReadStepNdJson(ddl_schema=("a STRING", "b STRING"))
    _, rows = _read(spark_engine, tmp_path / "0", file, step)
    assert rows == [{"a": "1.50", "b": '{"z": 1, "y": [ 12345678901234567890.10 ]}'}]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_of_csv_end_as_on_any_system_and_a_mark_may_stand_in_front(
    spark_engine, tmp_path, end
):
    file = tmp_path / "x.csv"
    file.write_bytes(b"\xef\xbb\xbf" + end.join(["a,b", "1,x", "2,y", ""]).encode())
    for number, step in enumerate(
        (
            ReadStepCsv(header=True, ddl_schema=("a BIGINT", "b STRING")),
            ReadStepCsv(header=True, infer_schema=True),
        )
    ):
        _, rows = _read(spark_engine, tmp_path / str(number), file, step)
        assert rows == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]


@pytest.mark.parametrize("more", [{}, {"line_breaks": True}])
def test_a_row_of_empty_cells_is_a_record_whatever_separates_them(spark_engine, tmp_path, more):
    lines = ["a|b|c", "||", "1|2|3", "", "  ||", " ", "|| "]
    step = ReadStepCsv(header=True, ddl_schema=("a STRING", "b STRING", "c STRING"))
    for number, separator in enumerate("|\t"):
        file = tmp_path / f"{number}.csv"
        file.write_text("\n".join(lines).replace("|", separator))
        _, rows = _read(
            spark_engine, tmp_path / str(number), file, replace(step, separator=separator), **more
        )
        found = [tuple(row.values()) for row in rows]
        empty = (None, None, None)
        assert found == [empty, ("1", "2", "3"), ("  ", None, None), (None, None, " ")]
        assert count_records((), replace(step, separator=separator), str(file)) == len(found)


# --- Conversions of what no ODF schema fixes ---


def test_columns_called_like_system_columns_get_an_underscore(spark_engine, tmp_path):
    file = tmp_path / "x.csv"
    file.write_text("offset,op,system_time,a\n1,2,3,4\n", "utf-8")
    _, rows = _read(spark_engine, tmp_path / "0", file, ReadStepCsv(header=True))
    assert rows == [{"_offset": "1", "_op": "2", "_system_time": "3", "a": "4"}]
    file.write_text("offset,_offset\n1,2\n", "utf-8")
    with pytest.raises(IngestError) as caught:
        _read(spark_engine, tmp_path / "1", file, ReadStepCsv(header=True))
    assert "two columns called '_offset'" in caught.value.message


def test_declared_columns_have_names_of_their_own_whatever_their_case(spark_engine, tmp_path):
    file = tmp_path / "x.csv"
    file.write_text("a,A\n1,2\n", "utf-8")
    step = ReadStepCsv(header=True, ddl_schema=("a INT", "A INT"))
    with pytest.raises(IngestError) as caught:
        _read(spark_engine, tmp_path / "0", file, step)
    assert caught.value.code == "E0420"
    assert "`read.schema` of" in caught.value.message
    assert "two columns called 'A'" in caught.value.message


@pytest.mark.parametrize(
    ("column", "text"),
    [
        ("event_time STRING", "2026-01-01T03:00:00+03:00"),
        ("event_time BIGINT", "1767225600"),
        ("event_time INT", "1767225600"),
        ("event_time TIMESTAMP", "2026-01-01 00:00:00"),
    ],
)
def test_event_times_in_text_and_numbers_become_times(spark_engine, tmp_path, column, text):
    file = tmp_path / "x.csv"
    file.write_text(f"event_time\n{text}\n", "utf-8")
    step = ReadStepCsv(header=True, ddl_schema=(column,))
    _, table = ingest(spark_engine, tmp_path, file, step)
    found = table.column("event_time").cast(pa.timestamp("ms", "UTC")).to_pylist()
    assert found == [datetime(2026, 1, 1, tzinfo=UTC)]
