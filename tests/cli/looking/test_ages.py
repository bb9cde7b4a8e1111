"""`freshness`: how old datasets are, from metadata alone."""

from __future__ import annotations

import shutil
from datetime import timedelta

import pytest

from odfbuild.api import Project
from odfbuild.project.settings.freshness import parse_age
from odfbuild.report.freshness import spelled
from tests.apply.in_process import Program

_LIMITS = """\
  freshness:
    - match: ['*']
      maxAge: 2d
    - match: [derived]
      maxAge: 36h
"""


@pytest.fixture
def odfbuild(odfbuild: Program) -> Program:
    """The program in an applied project whose watermarks stand at 2024-01-03, without its data."""
    odfbuild.apply()
    for folder in (odfbuild.root / "chains").glob("*/data"):
        shutil.rmtree(folder)
    return odfbuild


def limit(odfbuild: Program, text: str = _LIMITS) -> None:
    """Declare how old datasets may be."""
    config = odfbuild.root / "odfbuild.yaml"
    config.write_text(config.read_text() + text)


def test_datasets_older_than_they_may_be_are_told_without_reading_data(odfbuild: Program) -> None:
    limit(odfbuild)
    said = odfbuild("freshness", "--at", "2024-01-04T13:00:00Z")
    assert said.code == 3
    assert said.out == (
        "NAME     WATERMARK                AGE  MAY BE  STATUS\n"
        "derived  2024-01-03T00:00:00Z  1d 13h  1d 12h  stale\n"
        "root     2024-01-03T00:00:00Z  1d 13h      2d  fresh\n\n"
        "Freshness: 2 datasets with a limit, 1 stale.\n"
    )
    assert odfbuild.ok("freshness", "root", "--at", "2024-01-04T13:00:00Z").code == 0
    (age,) = odfbuild("freshness", "root", "--json").data
    assert age["status"] == "stale"
    assert age["max_age_seconds"] == 172_800


def test_without_limits_ages_are_shown_and_nothing_is_stale(odfbuild: Program) -> None:
    said = odfbuild.ok("freshness", "--at", "2023-01-01T00:00:00Z", "--json")
    assert [(d["age_seconds"], d["status"]) for d in said.data] == [(0, None), (0, None)]
    assert "Freshness: 0 datasets with a limit, 0 stale." in odfbuild.ok("freshness").out


def test_a_damaged_dataset_is_told_with_its_error_beside_the_ages_of_the_others(
    odfbuild: Program,
) -> None:
    limit(odfbuild)
    head = (odfbuild.root / "chains" / "root" / "refs" / "head").read_text().strip()
    (odfbuild.root / "chains" / "root" / "blocks" / head).write_bytes(b"damaged")
    shutil.rmtree(odfbuild.root / ".odfbuild")  # as in a fresh clone
    said = odfbuild("freshness", "--at", "2024-01-04T00:00:00Z")
    assert said.code == 3
    assert "derived  2024-01-03T00:00:00Z   1d  1d 12h  fresh" in said.out
    assert "root     -" in said.out
    assert said.out.endswith("Freshness: 2 datasets with a limit, 0 stale, 1 damaged.\n")
    assert "error[E0801]" in said.err
    found = odfbuild("freshness", "--json").data
    assert [(d["name"], d["status"], d["error"]) for d in found if d["error"]] == [
        ("root", "damaged", "E0801")
    ]
    ages = {each.name: each for each in Project(odfbuild.root).freshness()}
    assert ages["root"].status == "damaged"
    assert ages["root"].error is not None
    assert ages["root"].error.code == "E0801"
    assert ages["derived"].watermark is not None
    assert odfbuild("freshness", "derived", "--at", "2024-01-04T00:00:00Z").code == 0


@pytest.mark.parametrize("age", ["2", "d", "2 d", "2y", "-1d"])
def test_a_limit_that_is_no_age_is_refused(odfbuild: Program, age: str) -> None:
    limit(odfbuild, f"  freshness: [{{match: ['*'], maxAge: '{age}'}}]\n")
    said = odfbuild("freshness")
    assert said.code == 1
    assert "error[E0105]" in said.err


def test_ages_are_read_and_spelled() -> None:
    assert parse_age("45s") == timedelta(seconds=45)
    assert parse_age("1w") == timedelta(days=7)
    assert spelled(timedelta(0)) == "0s"
    assert spelled(timedelta(days=1, minutes=5, seconds=1)) == "1d 5m"
