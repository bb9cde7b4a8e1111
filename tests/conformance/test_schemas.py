import re
from dataclasses import asdict, replace
from typing import Any

import pyarrow as pa
import pytest

from odfbuild.odf.model import DataField, DataSchema
from odfbuild.odf.schema.arrow_schema import (
    InvalidAttributeError,
    Layouts,
    UnsupportedSchemaError,
    encoding_of,
    from_odf,
    to_odf,
)
from odfbuild.odf.schema.compare import Difference, compare, diff, strip_encoding
from odfbuild.odf.schema.ddl import DdlError, parse_ddl
from odfbuild.odf.yaml_form import from_data
from tests.conformance.arrow_values import type_of
from tests.conformance.vectors import cases


def schema_of(data: Any) -> DataSchema:
    return from_data(DataSchema, data)


@pytest.mark.parametrize("case", cases("schemas", "compare"))
def test_schemas_compare_as_in_the_reference(case: dict[str, Any]) -> None:
    found = compare(schema_of(case["left"]), schema_of(case["right"]), **case["options"])
    if {"quirk", "order"} <= set(case["features"]):
        # The reference does not see a changed type once the order differs; we do.
        assert found.value == "NonEquivalent"
    else:
        assert found.value == case["expected"]


@pytest.mark.parametrize("case", cases("schemas", "superset"))
def test_supersets_are_those_of_the_reference(case: dict[str, Any]) -> None:
    left, right = schema_of(case["left"]), schema_of(case["right"])
    options = case["options"]
    names = {field.name for field in right.fields}
    kept = [field for field in left.fields if field.name in names]
    if not options.get("ignore_order"):
        kept = list(left.fields[: len(right.fields)])
    found = compare(replace(left, fields=tuple(kept)), right, **options)
    assert (found.value != "NonEquivalent") is case["expected"]


def plain(difference: Difference) -> dict[str, Any]:
    data = {k: v for k, v in asdict(difference).items() if v not in (None, ())}
    data.pop("optional")
    if difference.inner:
        data["inner"] = [plain(each) for each in difference.inner]
    return data


@pytest.mark.parametrize("case", cases("schemas", "diff"))
def test_differences_are_those_of_the_reference(case: dict[str, Any]) -> None:
    found = [plain(each) for each in diff(schema_of(case["left"]), schema_of(case["right"]))]
    assert found == case["expected"]


@pytest.mark.parametrize("case", cases("schemas", "arrow"))
def test_arrow_types_map_as_in_the_reference(case: dict[str, Any]) -> None:
    spec, expected = case["arrow"], case["expected"]
    is_interval = spec["type"] == "interval"
    kind = pa.month_day_nano_interval() if is_interval else type_of(spec["type"])
    schema = pa.schema([pa.field("x", kind, nullable=spec["nullable"])])
    if "error" in expected:
        with pytest.raises(UnsupportedSchemaError, match="column 'x'"):
            to_odf(schema)
        return
    odf = to_odf(schema)
    wanted = from_data(DataField, {"name": "x", "type": expected["type"]})
    assert odf.fields[0].type == wanted.type
    assert (odf.fields[0].extra or None) == expected["extra"]
    assert from_odf(odf).field("x").type == type_of(expected["back_to_arrow"])


@pytest.mark.parametrize("case", cases("schemas", "to_arrow"))
def test_odf_types_become_arrow_as_in_the_reference(case: dict[str, Any]) -> None:
    data = case.get("schema")
    if data is None:
        field = {"name": "x", "type": case["type"]}
        if case["extra"]:
            field["extra"] = case["extra"]
        data = {"fields": [field]}
    layouts = Layouts(**case.get("settings", {}))
    if "error" in case["expected"]:
        with pytest.raises(UnsupportedSchemaError):
            from_odf(schema_of(data), layouts)
        return
    wanted = case["expected"]["arrow"]
    wanted = wanted if isinstance(wanted, list) else [wanted]
    for field, kind in zip(from_odf(schema_of(data), layouts), wanted, strict=True):
        # The vectors do not spell out whether items are nullable.
        assert _unnamed(field.type) == _unnamed(type_of(kind))


def _unnamed(kind: pa.DataType) -> str:
    return re.sub(r" not null| \('(keys|values)'\)", "", str(kind))


@pytest.mark.parametrize("case", cases("schemas", "strip_encoding"))
def test_encodings_are_stripped_as_in_the_reference(case: dict[str, Any]) -> None:
    assert strip_encoding(schema_of(case["schema"])) == schema_of(case["expected"])


@pytest.mark.parametrize("case", cases("schemas", "encoding"))
def test_encodings_are_read_as_in_the_reference(case: dict[str, Any]) -> None:
    if "error" in case["expected"]:
        with pytest.raises(InvalidAttributeError):
            encoding_of(case["extra"])
    else:
        assert encoding_of(case["extra"]) == case["expected"]["encoding"]


@pytest.mark.parametrize("case", cases("schemas", "ddl"))
def test_ddl_is_read_as_in_the_reference(case: dict[str, Any]) -> None:
    if "error" in case["expected"]:
        with pytest.raises(DdlError):
            parse_ddl([case["ddl"]], strict=True)
    else:
        assert parse_ddl([case["ddl"]], strict=True) == from_odf(schema_of(case["expected"]))
