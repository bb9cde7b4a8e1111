"""Blocks byte for byte, in both versions of the Manifest, against the vectors."""

from typing import Any

import pytest

from odfbuild.odf.flatbuffers.form import block_hash, decode_block, encode_block
from odfbuild.odf.model import MetadataBlock
from odfbuild.odf.yaml_form import from_data, to_data
from tests.conformance.vectors import cases


@pytest.mark.parametrize("version", [3, 2])
@pytest.mark.parametrize("case", cases("block_hashes"))
def test_a_block_has_the_bytes_and_the_hash_of_the_reference(
    case: dict[str, Any], version: int
) -> None:
    expected = case["expected"][str(version)]
    block = from_data(MetadataBlock, case["block"])
    data = encode_block(block, version)
    if "manifest_hex" in expected:
        assert data.hex() == expected["manifest_hex"]
    assert len(data) == expected["size"]
    assert str(block_hash(data)) == expected["multihash"]
    assert decode_block(data) == block
    assert to_data(block) == case["block"]
