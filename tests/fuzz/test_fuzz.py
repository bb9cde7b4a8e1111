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


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_many_of_them_with_other_seeds(target: str) -> None:
    seed = int(os.environ.get("FUZZ_SEED") or time.time()) * MANY
    assert list(findings(target, MANY, seed)) == []
