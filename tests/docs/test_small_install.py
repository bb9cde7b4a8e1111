"""`pip install odfbuild`: small, plans as the whole does, and says what it lacks."""

from __future__ import annotations

import os
import subprocess
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfbuild.engine.release import SPARK
from odfbuild.extras import INSTALL
from tests.docs.environments import ROOT, packages_of, size_of

_MOST_BYTES = 80_000_000
_ROOT = """
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {{kind: FilesGlob, path: "data/{files}"}}
      read: {read}
      merge: {{kind: Append}}
"""
_DERIVATIVE = """
kind: DatasetSnapshot
version: 1
content:
  name: prices
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{datasetRef: orders, alias: orders}]
      transform:
        kind: Sql
        engine: spark
        query: SELECT event_time, CAST(price AS DECIMAL(10, 2)) AS price FROM orders
"""


def odfbuild(programs: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """What the program of an environment does."""
    return subprocess.run(
        [programs / "odfbuild", *words],
        cwd=folder,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a source of Parquet, one of CSV with all kinds of columns, and a query."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "datasets").mkdir()
    (folder / "data").mkdir()
    (folder / "odfbuild.yaml").write_text("kind: Project\nversion: 1\ncontent:\n  name: shop\n")
    columns = (
        '"event_time TIMESTAMP, price DOUBLE, tags ARRAY<STRING>, '
        'place STRUCT<lat DOUBLE, lon DOUBLE>"'
    )
    for name, files, read in (
        ("orders", "*.ndjson", f"{{kind: NdJson, schema: [{columns}]}}"),
        ("stock", "*.parquet", "{kind: Parquet}"),
    ):
        text = _ROOT.format(name=name, files=files, read=read)
        (folder / "datasets" / f"{name}.yaml").write_text(text)
    (folder / "datasets" / "prices.yaml").write_text(_DERIVATIVE)
    record = '{"event_time": "2026-01-01T00:00:00Z", "price": 1}\n'
    (folder / "data" / "a.ndjson").write_text(record)
    pq.write_table(pa.table({"n": range(70_000)}), folder / "data" / "a.parquet")
    return folder


def test_it_takes_less_than_80_megabytes(
    planner: Path, builder: Path, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small, whole = (size_of(packages_of(each / "python")) for each in (planner, builder))
    begun = time.monotonic()
    done = odfbuild(planner, project, "plan")
    seconds = time.monotonic() - begun
    with capsys.disabled():
        print(f"\nodfbuild: {small / 1e6:.0f} MB, plans in {seconds:.1f} s; ", end="")
        print(f"odfbuild[spark,jre]: {whole / 1e6:.0f} MB")
    assert done.returncode == 0, done.stderr
    assert small < _MOST_BYTES


def test_a_plan_is_the_same_with_and_without_spark(
    planner: Path, builder: Path, project: Path
) -> None:
    said = []
    for programs in (planner, builder):
        done = odfbuild(programs, project, "plan", "-o", "../plan.json")
        assert done.returncode == 0, done.stderr
        said.append(done.stdout + done.stderr)
    assert said[0] == said[1]
    assert "70,000 new records in 1 file" in said[0]
    assert "Saved as sha256:" in said[0]


@pytest.mark.parametrize(
    "words",
    [
        ["validate"],
        ["lint"],
        ["fmt"],
        ["render", "prices"],
        ["graph"],
        ["status"],
        ["ls"],
        ["plan"],
        ["drift"],
        ["freshness"],
        ["explain", "prices"],
        ["docs", "build"],
        ["doctor"],
        ["version"],
        ["gc", "--dry-run"],
        ["migrate", "--check"],
    ],
    ids=" ".join,
)
def test_what_reads_no_records_works(planner: Path, project: Path, words: Sequence[str]) -> None:
    done = odfbuild(planner, project, *words)
    assert done.returncode == 0, done.stdout + done.stderr


def test_pages_of_an_installed_wheel_have_the_libraries_that_it_was_built_with(
    planner: Path, project: Path
) -> None:
    done = odfbuild(planner, project, "docs", "build", "-o", "site")
    assert done.returncode == 0, done.stderr
    made = {each.name for each in (project / "site" / "assets").iterdir()}
    if (ROOT / "vendored").is_dir():
        assert {each.name for each in (ROOT / "vendored").iterdir()} <= made
        assert "npm" not in done.stderr
    else:
        assert made == {"site.css"}
        assert "make site-libraries" in done.stderr


@pytest.mark.parametrize(
    "words",
    [["apply", "-y"], ["validate", "--engine"], ["verify"], ["test"], ["test", "--unit"]],
    ids=" ".join,
)
def test_what_needs_spark_names_the_extra_and_the_command(
    planner: Path, project: Path, words: Sequence[str]
) -> None:
    done = odfbuild(planner, project, *words)
    assert done.returncode == 1, done.stdout
    assert f"error[E0903]: `odfbuild {words[0]}` needs " in done.stderr
    assert f"`{INSTALL}`" in done.stderr
    assert not (project / "chains").exists()


def test_doctor_says_that_this_installation_plans_only(planner: Path, project: Path) -> None:
    done = odfbuild(planner, project, "doctor")
    assert "not installed: odfbuild can plan, but not apply" in done.stdout
    assert INSTALL in done.stdout


def test_methods_that_need_spark_name_the_extra_and_the_command(
    planner: Path, project: Path
) -> None:
    script = (
        "from odfbuild import OdfbuildError, Project\n"
        "project = Project('.')\n"
        "print(len(project.plan().datasets))\n"
        "try:\n    project.records('orders')\n"
        "except OdfbuildError as error:\n    print(error.code, error, error.help)\n"
    )
    done = subprocess.run(
        [planner / "python", "-c", script], cwd=project, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("3\nE0903 `records()` needs PySpark")
    assert INSTALL in done.stdout


def test_the_release_that_plans_name_is_the_one_that_the_extra_installs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    [range] = [each for each in project["optional-dependencies"]["spark"] if "pyspark" in each]
    assert range.endswith(f",<={SPARK}")
