from typing import Any

import pyarrow as pa
import pytest

from odfbuild.odf.digest import LogicalHasher, UnsupportedType, array_digest
from tests.conformance.arrow_values import array_of, field_of, type_of
from tests.conformance.vectors import cases


def record_hash(case: dict[str, Any]) -> str:
    schema = pa.schema([field_of(field) for field in case["schema"]])
    hasher = LogicalHasher(schema)
    for columns in case["batches"]:
        arrays = [array_of(v, f.type) for v, f in zip(columns, schema, strict=True)]
        hasher.update(pa.RecordBatch.from_arrays(arrays, schema=schema))
    return str(hasher.finish())


def digest_of(case: dict[str, Any]) -> str:
    return array_digest(array_of(case["values"], type_of(case["type"]))).hex()


@pytest.mark.parametrize("case", cases("data_hashes", "array"))
def test_an_array_has_the_digest_of_the_reference(case: dict[str, Any]) -> None:
    if case["expected"].get("error") == "unsupported":
        with pytest.raises(UnsupportedType):
            digest_of(case)
    else:
        assert digest_of(case) == case["expected"]["digest"]


@pytest.mark.parametrize("case", cases("data_hashes", "record"))
def test_records_have_the_logical_hash_of_the_reference(case: dict[str, Any]) -> None:
    if case["expected"].get("error") == "unsupported":
        with pytest.raises(UnsupportedType):
            record_hash(case)
    else:
        assert record_hash(case) == case["expected"]["logical_hash"]


@pytest.mark.parametrize("case", cases("data_hashes", "array_relation"))
def test_arrays_relate_as_in_the_reference(case: dict[str, Any]) -> None:
    left, right = digest_of(case["left"]), digest_of(case["right"])
    assert (left == right) is (case["relation"] == "eq")
    assert (left, right) == (case["left"]["digest"], case["right"]["digest"])


@pytest.mark.parametrize("case", cases("data_hashes", "record_relation"))
def test_records_relate_as_in_the_reference(case: dict[str, Any]) -> None:
    left, right = record_hash(case["left"]), record_hash(case["right"])
    assert (left == right) is (case["relation"] == "eq")
    assert (left, right) == (case["left"]["logical_hash"], case["right"]["logical_hash"])
