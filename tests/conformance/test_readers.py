"""Family `readers`: a read step over a file, through Spark."""

import base64
import codecs
import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfbuild.errors import IngestError
from odfbuild.odf.model import ReadStep
from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.odf.yaml_form import from_data
from tests.conformance.arrow_values import type_of
from tests.conformance.vectors import cases
from tests.ingest.run_ingest import ingest

pytestmark = pytest.mark.spark

HONOURED = {"nullValue", "encoding"}
"""Options that the reference refuses and we do not (docs/compatibility.md)."""
TYPES = {"string": pa.string(), "date": pa.date32()}
NOBODYS = Vocabulary("@offset", "@op", "@system_time", "@event_time")
"""System columns that no file has: what becomes of theirs is for `writer_scenarios` to say."""


def _type(spec: Any) -> pa.DataType:
    return TYPES[spec] if isinstance(spec, str) and spec in TYPES else type_of(spec)


def _source(case, folder):
    file = folder / "source"
    if "input_parquet" in case:
        table = case["input_parquet"]
        fields = [pa.field(f["name"], _type(f["type"]), f["optional"]) for f in table["schema"]]
        columns = [
            pa.array([_from_json(row[i], field.type) for row in table["rows"]], field.type)
            for i, field in enumerate(fields)
        ]
        pq.write_table(pa.table(columns, schema=pa.schema(fields)), file)
    elif "input_zip_base64" in case:
        file.write_bytes(base64.b64decode(case["input_zip_base64"]))
    else:
        encoding = case["read"].get("encoding") if _is_honoured(case) else None
        file.write_bytes(case["input_text"].encode(encoding or "utf-8"))
    return file


def _is_honoured(case):
    option = case.get("expected_error", {}).get("option")
    if option == "encoding":
        try:
            codecs.lookup(case["read"]["encoding"])
        except LookupError:
            return False
    return option in HONOURED


def _from_json(value, kind):
    if value is None:
        return None
    if pa.types.is_timestamp(kind):
        return datetime.fromisoformat(value)
    if pa.types.is_date(kind):
        return date.fromisoformat(value)
    return Decimal(value) if pa.types.is_decimal(kind) else value


def _to_json(value):
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, str) and value.startswith('{"coordinates":'):
        return json.loads(value)
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    return value.hex() if isinstance(value, bytes) else value


# Cases over a file of the reference that is not part of the vectors cannot be run; the synthetic
# archives take the same ways.
CASES = [one for one in cases("readers") if "input_file" not in (one.values[0] or {})]


@pytest.mark.parametrize("case", CASES)
def test_a_read_step_reads_what_the_reference_reads(case, spark_engine, tmp_path):
    read = from_data(ReadStep, case["read"])
    error = None if _is_honoured(case) else case.get("expected_error")
    source = _source(case, tmp_path)
    if error:
        with pytest.raises(IngestError) as caught:
            ingest(spark_engine, tmp_path, source, read, vocab=NOBODYS)
        assert caught.value.help
        if "option" in error:
            assert error["option"] in caught.value.message
        return
    result, table = ingest(spark_engine, tmp_path, source, read, vocab=NOBODYS)
    expected = case.get("expected")
    if expected is None:
        return
    for field in expected["schema"]:
        found = result.schema.field(field["name"])
        # The reference cannot write what it infers from nulls alone; to us that is text.
        assert found.type == (pa.string() if field["type"] == "null" else _type(field["type"]))
        assert found.nullable == field["optional"]
    names = [field["name"] for field in expected["schema"]]
    rows = [
        [_to_json(row[name]) for name in names] for row in table.cast(result.schema).to_pylist()
    ]
    wanted = [[_to_json(value) for value in row] for row in expected["rows"]]
    assert rows == wanted
