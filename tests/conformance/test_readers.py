"""Family `readers`: a read step over a file, through Spark."""

import base64
import json
from datetime import UTC, date, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfbuild.errors import IngestError
from odfbuild.odf.model import (
    ReadStepCsv,
    ReadStepEsriShapefile,
    ReadStepGeoJson,
    ReadStepJson,
    ReadStepNdGeoJson,
    ReadStepNdJson,
    ReadStepParquet,
)
from odfbuild.odf.yaml_form import from_data
from tests.conformance.vectors import cases
from tests.ingest.run_ingest import ingest

pytestmark = pytest.mark.spark

STEPS = {
    step.KIND: step
    for step in (
        ReadStepCsv,
        ReadStepEsriShapefile,
        ReadStepGeoJson,
        ReadStepJson,
        ReadStepNdGeoJson,
        ReadStepNdJson,
        ReadStepParquet,
    )
}
HONOURED = {"nullValue"}
"""Options that the reference refuses and we do not (docs/compatibility.md)."""
TYPES = {
    "string": pa.string(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint64": pa.uint64(),
    "float64": pa.float64(),
    "date": pa.date32(),
    "timestamp[ms, UTC]": pa.timestamp("ms", "UTC"),
}


def _source(case, folder):
    file = folder / "source"
    if "input_parquet" in case:
        table = case["input_parquet"]
        fields = [pa.field(f["name"], TYPES[f["type"]], f["optional"]) for f in table["schema"]]
        columns = [
            pa.array([_from_json(row[i], field.type) for row in table["rows"]], field.type)
            for i, field in enumerate(fields)
        ]
        pq.write_table(pa.table(columns, schema=pa.schema(fields)), file)
    elif "input_zip_base64" in case:
        file.write_bytes(base64.b64decode(case["input_zip_base64"]))
    else:
        file.write_text(case["input_text"], "utf-8")
    return file


def _from_json(value, kind):
    return datetime.fromisoformat(value) if pa.types.is_timestamp(kind) and value else value


def _to_json(value):
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, str) and value.startswith('{"coordinates":'):
        return json.loads(value)
    return value.isoformat() if isinstance(value, date) else value


# Cases over a file of the reference that is not part of the vectors cannot be run; the synthetic
# archives take the same ways.
CASES = [one for one in cases("readers") if "input_file" not in (one.values[0] or {})]


@pytest.mark.parametrize("case", CASES)
def test_a_read_step_reads_what_the_reference_reads(case, spark_engine, tmp_path):
    read = from_data(STEPS[case["read"]["kind"]], case["read"])
    error = case.get("expected_error")
    if error and error.get("option") in HONOURED:
        error = None
    source = _source(case, tmp_path)
    if error:
        with pytest.raises(IngestError) as caught:
            ingest(spark_engine, tmp_path, source, read)
        assert caught.value.help
        if "option" in error:
            assert error["option"] in caught.value.message
        return
    result, table = ingest(spark_engine, tmp_path, source, read)
    expected = case.get("expected")
    if expected is None:
        return
    for field in expected["schema"]:
        found = result.schema.field(field["name"])
        assert found.type == TYPES[field["type"]]
        if field["name"] != "event_time":
            assert found.nullable == field["optional"]
    names = [field["name"] for field in expected["schema"]]
    rows = [[_to_json(row[name]) for name in names] for row in table.to_pylist()]
    wanted = [[_to_json(value) for value in row] for row in expected["rows"]]
    assert rows == wanted
