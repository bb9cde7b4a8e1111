"""What is built through the server is what is built without it: vectors and the example."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from odfbuild.engine.process.server.calls import Calls
from odfbuild.engine.process.server.serve import Serving, listening
from odfbuild.engine.spark.engine import SparkEngine
from odfbuild.errors import Errors, OdfbuildError
from tests.conformance.test_transform_runs import Pipeline, _run
from tests.conformance.vectors import cases
from tests.engine.process.coordinator import Line
from tests.engine.process.wired import Wired
from tests.example.odfbuild_project import ExampleProject

pytestmark = pytest.mark.spark


@pytest.fixture
def wired(spark_engine: SparkEngine, tmp_path: Path) -> Iterator[Wired]:
    calls = Calls(lambda: spark_engine)
    with listening(calls, Serving(addresses=("127.0.0.1:0",))) as (address,):
        yield Wired(spark_engine, Line(address), tmp_path / "wired")


@pytest.mark.parametrize("case", cases("transform_planning", "engine"))
def test_a_conformance_case_has_the_same_hash_through_the_server(
    case: dict[str, Any], spark_engine: SparkEngine, wired: Wired, tmp_path: Path
) -> None:
    found: list[Any] = []
    for name, engine in (("here", spark_engine), ("there", wired)):
        (tmp_path / name).mkdir()
        try:
            staged, schema = _run(case, engine, tmp_path / name)
            found.append((staged and staged.data.logical_hash, schema))
        except (OdfbuildError, Errors) as error:
            found.append([each.code for each in error.apart()][:1])
    assert found[0] == found[1]
    assert wired.steps == 1


@pytest.mark.parametrize("case", cases("transform_planning", "pipeline"))
def test_a_conformance_pipeline_has_the_same_hashes_through_the_server(
    case: dict[str, Any], spark_engine: SparkEngine, wired: Wired, tmp_path: Path
) -> None:
    heads = []
    for name, engine in (("here", spark_engine), ("there", wired)):
        (tmp_path / name).mkdir()
        pipeline = Pipeline(case, engine, tmp_path / name)
        store = pipeline.workspace.dataset("derived")
        for number, spec in enumerate(case["rounds"]):
            pipeline.round(number, spec)
        now = pipeline.workspace.projection("derived")
        blocks = [block.event for _, block in store.walk(now.head)]
        slices = [getattr(event, "new_data", None) for event in blocks]
        heads.append([each.logical_hash for each in slices if each is not None])
    assert heads[0] == heads[1]
    assert len(heads[0]) == len(case["rounds"])


@pytest.mark.slow  # the example is recomputed three times: a minute
def test_the_example_project_is_the_same_through_the_server(
    wired: Wired, spark_engine: SparkEngine, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("example") / "example"
    there = ExampleProject.applied(tmp_path_factory).copy(root)
    there = ExampleProject(there.root, wired)
    here = ExampleProject(there.root, spark_engine)
    # Every step that was built in, computed by the server.
    there.ok("verify")
    first = wired.steps
    assert first
    # Then steps by the server, from the checkpoints of those, and computed again built in.
    there.next_month()
    there.ok("apply", "-y")
    assert wired.steps > first
    here.ok("verify")
