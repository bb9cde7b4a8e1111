"""A few of the cases of `tests.fuzz`; `python -m tests.fuzz` runs any number."""

from __future__ import annotations

import os
import time

import pytest

from tests.fuzz.__main__ import TARGETS, findings

FEW, MANY = 400, 20_000


@pytest.mark.parametrize("target", TARGETS)
def test_what_nobody_should_have_written_is_read_or_refused_with_a_code(target: str) -> None:
    assert list(findings(target, FEW)) == []


@pytest.mark.parametrize(
    ("target", "seed"),
    [
        pytest.param("slices", 8_485, id="statistics of levels without a schema end PyArrow"),
        pytest.param("slices", 10_027_696, id="a column of another type ends PyArrow"),
        pytest.param("slices", 10_041_315, id="the same statistics, read with a condition"),
        pytest.param("slices", 10_053_943, id="a filter on a column of no type never ends"),
        pytest.param("slices", 10_091_526, id="a type that cannot be cast"),
        pytest.param("queries", 21_554, id="sixty thousand signs"),
        pytest.param("queries", 51_530, id="sixty joins without a condition"),
        pytest.param("queries", 69_522, id="nested joins without a condition"),
        pytest.param("queries", 74_418, id="a pipe that the parser asserts"),
        pytest.param("queries", 93_387, id="another pipe that the parser asserts"),
    ],
)
def test_what_was_found_stays_mended(target: str, seed: int) -> None:
    assert list(findings(target, 1, seed)) == []


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_many_of_them_with_other_seeds(target: str) -> None:
    seed = int(os.environ.get("FUZZ_SEED") or time.time()) * MANY
    assert list(findings(target, MANY, seed)) == []
