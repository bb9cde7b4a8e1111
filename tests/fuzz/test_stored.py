"""A few of the cases of `tests.fuzz.stored`; `python -m tests.fuzz.stored` runs any number."""

from __future__ import annotations

import os
import time

import pytest

from tests.fuzz import stored

FEW, MANY = 400, 20_000


@pytest.mark.parametrize("target", stored.TARGETS)
def test_bytes_that_nobody_should_have_written_are_read_or_refused_with_a_code(target: str) -> None:
    assert list(stored.findings(target, FEW)) == []


@pytest.mark.slow
@pytest.mark.parametrize("target", stored.TARGETS)
def test_many_of_them_with_other_seeds(target: str) -> None:
    seed = int(os.environ.get("FUZZ_SEED") or time.time()) * MANY
    assert list(stored.findings(target, MANY, seed)) == []
