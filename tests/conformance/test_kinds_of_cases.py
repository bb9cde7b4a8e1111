"""No case is left out because no test asks for its kind."""

import pytest

# Imported for what they ask of the vectors.
from tests.apply.derive import test_derive  # noqa: F401
from tests.conformance import (  # noqa: F401
    test_chain_validation,
    test_data_hashes,
    test_schemas,
    test_transform_planning,
    test_transform_runs,
)
from tests.conformance.vectors import ASKED, found


@pytest.mark.parametrize("family", sorted(name for name, kinds in ASKED.items() if kinds))
def test_every_kind_of_case_of_a_family_has_a_test(family: str) -> None:
    assert {case["kind"] for case in found(family)} <= ASKED[family]
