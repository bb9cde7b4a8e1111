"""One identity, one spelling: what only looks like base16 is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfbuild.odf.identity import DatasetId
from odfbuild.odf.multihash import Multihash

KEY = bytes(range(32))


@pytest.mark.parametrize("gap", [" ", "\n", "\t", "_", "-"])
@given(st.integers(min_value=1, max_value=68))
def test_white_space_inside_or_after_base16_is_refused(gap: str, at: int) -> None:
    for parse, text in (
        (DatasetId.parse, str(DatasetId(KEY))),
        (Multihash.parse, str(Multihash.sha3_256(b""))),
    ):
        place = len(text) - 68 + at
        with pytest.raises(ValueError):
            parse(text[:place] + gap + text[place:])


def test_an_identity_is_read_back_from_its_text() -> None:
    assert DatasetId.parse(str(DatasetId(KEY))) == DatasetId(KEY)
    assert Multihash.parse(str(Multihash.sha3_256(b""))) == Multihash.sha3_256(b"")
