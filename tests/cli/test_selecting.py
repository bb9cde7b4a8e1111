"""`--select`, `--exclude` and `--selector` on the real program; nothing here needs Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project.write_project import derived_yaml, root_yaml, write_project

_COMMAND = [sys.executable, "-c", "from odfbuild.cli.main import main; main()"]
_CONFIG = "selectors:\n  nightly: tag:nightly+ kind:root\n"
_INFO = "    - kind: SetInfo\n      keywords: [nightly]\n"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """cities and rivers → tidy → best; per-city instances of a template read tidy."""
    template = "matrix:\n  n: [kyiv, lisbon]\n---\n" + derived_yaml("tidy.{{ n }}", "tidy")
    root = tmp_path_factory.mktemp("selecting") / "project"
    (root / "data").mkdir(parents=True)
    (root / "data" / "a.csv").write_text("id,city\n1,Kyiv\n")
    return write_project(
        root,
        {
            "roots/cities.yaml": root_yaml("cities"),
            "roots/rivers.yaml": root_yaml("rivers"),
            "tidy.yaml": derived_yaml("tidy", "cities"),
            "best.yaml": derived_yaml("best", "tidy") + _INFO,
            "by-city.yaml.j2": template,
        },
        _CONFIG,
    )


def _odfbuild(root: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*_COMMAND, *arguments],
        cwd=root,
        env={**os.environ, "NO_COLOR": "1", **env},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def _planned(root: Path, *arguments: str, **env: str) -> list[str]:
    done = _odfbuild(root, "plan", "--json", *arguments, **env)
    assert done.returncode == 0, done.stderr
    return sorted(dataset["name"] for dataset in json.loads(done.stdout)["datasets"])


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["-s", "+tidy"], ["cities", "tidy"]),
        (["-s", "+tidy", "-s", "rivers"], ["cities", "rivers", "tidy"]),
        (["-s", "@tidy", "--exclude", "best"], ["cities", "tidy", "tidy.kyiv", "tidy.lisbon"]),
        (["-s", "path:datasets/roots"], ["cities", "rivers"]),
        (["-s", "+template:by-city"], ["cities", "tidy", "tidy.kyiv", "tidy.lisbon"]),
        (["--exclude", "tidy+"], ["cities", "rivers"]),
        (["--selector", "nightly", "--exclude", "best"], ["cities", "rivers"]),
        (["-s", "state:new,kind:root"], ["cities", "rivers"]),
    ],
)
def test_a_plan_holds_what_is_selected(root: Path, arguments: list[str], names: list[str]) -> None:
    assert _planned(root, *arguments) == names


def test_selections_may_stand_in_the_environment(root: Path) -> None:
    assert _planned(root, ODFBUILD_SELECT="+tidy", ODFBUILD_EXCLUDE="tidy") == ["cities"]


def test_a_part_of_the_project_is_no_complete_plan(root: Path) -> None:
    part = json.loads(_odfbuild(root, "plan", "--json", "-s", "rivers").stdout)
    whole = json.loads(_odfbuild(root, "plan", "--json").stdout)
    assert (part["complete"], whole["complete"]) == (False, True)
    assert part["plan_digest"] != whole["plan_digest"]


def test_a_new_dataset_cannot_be_planned_without_its_new_input(root: Path) -> None:
    done = _odfbuild(root, "plan", "-s", "tidy")
    assert done.returncode == 1
    assert "error[E0313]" in done.stdout
    assert "`--select +tidy`" in done.stdout


@pytest.mark.parametrize("verb", ["plan", "apply", "ls", "verify"])
def test_a_misspelt_dataset_is_refused_with_the_one_that_was_meant(root: Path, verb: str) -> None:
    done = _odfbuild(root, verb, "--select", "+citis")
    assert done.returncode == 64
    assert done.stdout == ""
    assert done.stderr == (
        "error[E0212]: there is no dataset 'citis' here\nhelp: did you mean 'cities'?\n"
        "see: odfbuild explain E0212\n"
    )


def test_listing_takes_selections_as_arguments(root: Path) -> None:
    listed = json.loads(_odfbuild(root, "ls", "--json", "tidy.*", "rivers").stdout)
    assert [each["name"] for each in listed] == ["rivers", "tidy.kyiv", "tidy.lisbon"]
