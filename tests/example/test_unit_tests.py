"""The unit tests of the example's queries on real Spark, without any chain or data."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from odfbuild.engine.contract import Engine
from tests.example.odfbuild_project import ExampleProject

pytestmark = pytest.mark.spark

DELAYED = "datasets/flights/nyc.flights.delayed.yaml"


@pytest.fixture(scope="module")
def project(spark_engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> ExampleProject:
    """The example without data: unit tests bring their own."""
    fresh = ExampleProject.fresh(tmp_path_factory.mktemp("units") / "project")
    shutil.rmtree(fresh.root / "data")
    return ExampleProject(fresh.root, spark_engine)


def test_the_unit_tests_of_the_example_pass_in_the_modes_of_apply(
    project: ExampleProject,
) -> None:
    found = json.loads(project.ok("test", "--unit", "--json").out)
    assert found["failed"] == 0
    modes = {each["dataset"]: set(each["modes"]) for each in found["tests"]}
    assert len(modes) >= 4
    assert modes["nyc.flights.delayed"] == {"map"}
    assert modes["nyc.delays.daily"] == {"stream"}
    assert modes["nyc.departures.weather"] == {"stream", "changelog"}
    assert not [*(project.root / "chains").rglob("*")]


def test_a_query_that_was_changed_by_mistake_fails_its_unit_test(
    project: ExampleProject, tmp_path: Path
) -> None:
    changed = project.copy(tmp_path / "changed")
    file = changed.root / DELAYED
    file.write_text(file.read_text().replace("arr_delay >= 15", "arr_delay > 15"))
    done = changed.run("test", "--unit", "nyc.flights.delayed")
    assert done.code == 3
    assert (
        done.out
        == """\
  ! nyc.flights.delayed: a flight is late from 15 minutes after its scheduled arrival
      --> datasets/flights/nyc.flights.delayed.test.yaml:6:13
           flight
        -  2

  - is missing, + was not expected, ~ is changed: expected → actual

Unit tests: 3 tests of 1 dataset, 2 passed, 1 failed.
"""
    )


def test_a_record_that_makes_the_query_fail_is_told_with_its_test(
    project: ExampleProject, tmp_path: Path
) -> None:
    changed = project.copy(tmp_path / "changed")
    file = changed.root / DELAYED
    file.write_text(file.read_text().replace("arr_delay - dep_delay", "arr_delay / dep_delay"))
    tests = file.with_suffix(".test.yaml")
    text = tests.read_text()
    tests.write_text(text.replace("{flight: 2, arr_delay: 15}", "{arr_delay: 15, dep_delay: 0}"))
    done = changed.run("test", "--unit", "nyc.flights.delayed", "--json")
    assert done.code == 3
    (first, *_) = json.loads(done.out)["tests"]
    assert [each["code"] for each in first["errors"]] == ["E0517"]
