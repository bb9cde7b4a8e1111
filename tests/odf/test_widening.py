"""Which types of numbers hold all values of another one."""

from __future__ import annotations

from decimal import Decimal
from itertools import product

import pyarrow as pa
import pytest

from odfbuild.odf.schema import arrow
from odfbuild.odf.schema.evolution import holds_all_of
from odfbuild.odf.schema.pyarrow_form import native_type

_INTEGERS = [arrow.Type(name) for name in arrow.INTEGERS]
_FLOATS = [arrow.Type(name) for name in ("float32", "float64")]
_DECIMALS = [arrow.decimal(p, s) for p, s in ((3, 0), (5, 2), (10, 0), (14, 2), (18, 4), (20, 0))]


def _extremes(kind: arrow.Type) -> pa.Array:
    """The smallest and the largest values, and their neighbours."""
    if kind.name in arrow.INTEGERS:
        signed = kind.name in arrow.SIGNED
        top = 2 ** (kind.bits - signed)
        lowest = -top if signed else 0
        found: list[object] = [lowest, lowest + 1, top - 2, top - 1]
    elif kind.name in arrow.DECIMALS:
        top = 10**kind.precision - 1
        found = [Decimal(n).scaleb(-kind.scale) for n in (-top, 1 - top, 1, top - 1, top)]
    else:
        found = [1 / 3, 16_777_217.0, 1e30]
    return pa.array(found, native_type(kind))


@pytest.mark.parametrize("old, new", [*product([*_INTEGERS, *_FLOATS, *_DECIMALS], repeat=2)])
def test_a_wider_type_gives_every_value_back(old: arrow.Type, new: arrow.Type) -> None:
    values = _extremes(old)
    try:
        back = values.cast(native_type(new)).cast(values.type)
        survives = back.equals(values)
    except pa.ArrowInvalid:
        survives = False
    mixed = (old.name in arrow.FLOATS) != (new.name in arrow.FLOATS)
    if holds_all_of(new, old):
        assert survives
    elif old != new and not mixed and new.name not in arrow.INTEGERS:
        assert not survives


def test_text_and_times_are_never_wider() -> None:
    kinds = [arrow.Type("string"), arrow.Type("date32"), arrow.timestamp("us"), arrow.Type("bool")]
    assert not any(holds_all_of(*pair) for pair in product(kinds, [*kinds, *_INTEGERS]))
