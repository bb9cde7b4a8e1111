"""Datasets in Dagster and Airflow as they are installed from an index.

Each is an environment of its own, without Spark: both bring a hundred packages, which take most of
a minute to install, so `make test-slow` runs this. The environment of the tests builds the data.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.apply.tiny import QUERY, Tiny
from tests.docs.environments import ROOT, build_wheel, run
from tests.docs.test_fresh_installs import install

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
CHECKS = """\
  checks:
    - match: [root]
      notNull: [id]
      severity: warn
    - match: [derived]
      acceptedValues: {value: [10, 20, 30]}
  freshness:
    - match: [root]
      maxAge: 45s
  owners:
    - match: [derived]
      owners: ["@data/rail", ann@example.org, nobody]
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    """A root, `derived`, and `further`, which derives from that; never applied."""
    tiny = Tiny.fresh(tmp_path / "p")
    tiny.derive("further", QUERY, source="derived")
    tiny.describe("derived", "Ten times as much")
    with (tiny.root / "odfbuild.yaml").open("a") as file:
        file.write(CHECKS)
    return tiny


def answer(programs: Path, script: Path, *words: object, **env: str) -> Any:
    """What a script prints last, as JSON."""
    done = subprocess.run(
        [programs / "python", script, *map(str, words)],
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
        # The program that builds finds this tree; the scheduler has what was installed.
        env={**os.environ, "PYTHONPATH": "", **env},
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def builder(folder: Path) -> Path:
    """The program of this tree, as one would call that of another environment."""
    file = folder / "odfbuild"
    file.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m odfbuild "$@"\n')
    file.chmod(0o755)
    return file


def shown(library: str, project: Path, program: Path, folder: Path) -> Path:
    """The code of the page that uses a library, for a project and a program that are there."""
    page = (ROOT / "docs" / "schedulers.md").read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (code,) = [each for each in blocks if f"odfbuild.integrations.{library}" in each]
    for there, here in (("/srv/nycflights", project), ("/opt/odfbuild/bin/odfbuild", program)):
        assert there in code
        code = code.replace(there, str(here))
    file = folder / f"shown_{library}.py"
    # The root of the test's project has another name than that of the example.
    file.write_text(code.replace("us.bts.flights", "root"))
    return file


def test_datasets_are_assets_of_dagster(wheel: Path, tiny: Tiny, tmp_path: Path) -> None:
    programs, _ = install(Path(sys.executable), tmp_path / "dagster", f"{wheel}[dagster]")

    def materialize(*names: str) -> Any:
        return answer(programs, HERE / "in_dagster.py", tiny.root, builder(tmp_path), *names)

    first = materialize()
    assert first["assets"] == {
        "root": {
            "deps": [],
            "group": "datasets",
            "owners": [],
            "description": None,
            "fresh": True,
        },
        "derived": {
            "deps": ["root"],
            "group": "datasets",
            "owners": ["team:rail", "ann@example.org"],
            "description": "Ten times as much",
            "fresh": False,
        },
        "further": {
            "deps": ["derived"],
            "group": "datasets",
            "owners": [],
            "description": None,
            "fresh": False,
        },
    }
    heads = {name: str(p.head) for name, p in tiny.workspace().projections().items()}
    assert first["success"]
    assert {name: each["head"] for name, each in first["materialized"].items()} == heads
    assert {each["records"] for each in first["materialized"].values()} == {3}
    assert first["checks"] == {
        "root notNull_id": [True, None],
        "derived acceptedValues_value": [True, None],
    }
    page = shown("dagster", tiny.root, builder(tmp_path), tmp_path)
    defs = f"import json, runpy; defs = runpy.run_path({str(page)!r})['defs']"
    count = f"{defs}; print(len(list(defs.resolve_asset_graph().get_all_asset_keys())))"
    assert run(programs / "python", "-c", count).split()[-1] == "3"
    # Checks alone are about all committed records, and nothing is applied.
    alone = materialize("--checks")
    assert (alone["success"], alone["materialized"]) == (True, {})
    assert alone["checks"] == first["checks"]
    # A record that violates a check: what is upstream is there, and the rest is not.
    tiny.arrive(2)
    second = materialize()
    assert not second["success"]
    assert list(second["materialized"]) == ["root"]
    assert second["checks"]["derived acceptedValues_value"] == [
        False,
        "1 record, such as offset 3, 40",
    ]
    assert second["failure"] == (
        "derived: the new records of 'derived' violate its checks"
        " (acceptedValues: value: 1 record, such as offset 3, 40)"
    )
    # A dataset without anything new is observed, and not materialised.
    third = materialize("root")
    assert (third["success"], third["materialized"], third["unchanged"]) == (True, {}, ["root"])


def test_datasets_are_tasks_of_airflow(wheel: Path, tiny: Tiny, tmp_path: Path) -> None:
    programs, _ = install(Path(sys.executable), tmp_path / "airflow", f"{wheel}[airflow]")
    env = {
        "AIRFLOW_HOME": str(tmp_path / "home"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
        "AIRFLOW__CORE__DAGS_FOLDER": str(HERE / "dags"),
        "FOLDER_OF_PROJECT": str(tiny.root),
        "PROGRAM_OF_ODFBUILD": str(builder(tmp_path)),
    }
    subprocess.run(
        [programs / "airflow", "db", "migrate"],
        env={**os.environ, "PYTHONPATH": "", **env},
        capture_output=True,
        check=True,
    )

    def run_dags() -> Any:
        return answer(programs, HERE / "dags" / "in_airflow.py", **env)

    first = run_dags()
    assert first["edges"] == {
        "odfbuild.root": ["odfbuild.derived"],
        "odfbuild.derived": ["odfbuild.further"],
        "odfbuild.further": [],
    }
    assert first["runs"]["datasets"]["state"] == "success"
    assert first["runs"]["whole"] == {
        "state": "success",
        "tasks": {"apply": "success"},
        "result": {"records": 0, "committed": [], "unchanged": []},
    }
    assert tiny.workspace().projections()["further"].records == 3
    page = shown("airflow", tiny.root, builder(tmp_path), tmp_path)
    run(programs / "python", page)
    tiny.arrive(2)
    second = run_dags()
    assert second["runs"]["datasets"]["tasks"] == {
        "odfbuild.root": "success",
        "odfbuild.derived": "failed",
        "odfbuild.further": "upstream_failed",
    }
    assert second["runs"]["whole"]["tasks"] == {"apply": "failed"}
