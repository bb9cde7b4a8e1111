"""What runs on a server is what anyone can run here: targets of the Makefile and tools."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from odfbuild.version import __version__

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text()
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def jobs(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(file.read_text())["jobs"]
    return found


def steps(file: Path) -> list[dict[str, Any]]:
    return [step for job in jobs(file).values() for step in job["steps"]]


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_every_step_of_a_workflow_runs_a_target_or_a_tool_that_exists(file: Path) -> None:
    targets = set(re.findall(r"^([\w-]+):", MAKEFILE, re.MULTILINE))
    for step in steps(file):
        if "run" not in step:
            assert re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|release/v1)", step["uses"])
            continue
        command, *arguments = step["run"].split()
        if command == "make":
            assert arguments[0] in targets
        elif command != "gh":
            assert (ROOT / command).stat().st_mode & 0o100


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_no_job_has_more_rights_or_time_than_it_needs(file: Path) -> None:
    assert yaml.safe_load(file.read_text())["permissions"] == {"contents": "read"}
    assert all(job["timeout-minutes"] <= 60 for job in jobs(file).values())


def test_ci_runs_on_every_python_that_is_supported() -> None:
    (ci,) = [file for file in WORKFLOWS if file.stem == "ci"]
    quick, tried = (jobs(ci)[job]["strategy"]["matrix"]["python"] for job in ("quick", "check"))
    assert quick == tried
    pyproject = (ROOT / "pyproject.toml").read_text()
    assert f'requires-python = ">={tried[0]}"' in pyproject
    declared = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', pyproject)
    assert declared == tried


# Collects tests where only the packages of a lock can be imported.
_COLLECT = """
import sys
from importlib.metadata import packages_distributions
import pytest

locked = {line.split("==")[0] for line in open("requirements/check.lock") if "==" in line}
absent = {
    module
    for module, owners in packages_distributions().items()
    if not {owner.lower().replace("_", "-").replace(".", "-") for owner in owners}
    & {*locked, "odfbuild"}
}

class OnlyLocked:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in absent:
            raise ModuleNotFoundError(f"{name} is not in requirements/check.lock", name=name)

sys.meta_path.insert(0, OnlyLocked())
sys.exit(pytest.main(sys.argv[1:]))
"""


def test_the_quick_tests_import_only_what_make_dev_installs() -> None:
    (selected,) = re.findall(r"^CHECK := (.*?[^\\])$", MAKEFILE, re.MULTILINE | re.DOTALL)
    options = ["-q", "--collect-only", "-p", "no:cacheprovider", "-p", "pytest_timeout"]
    done = subprocess.run(
        [sys.executable, "-c", _COLLECT, *options, *selected.replace("\\\n", " ").split()],
        cwd=ROOT,
        # Those of packages that only some machines have.
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    collected = re.search(r"^(\d+)(?:/\d+)? tests collected", done.stdout, re.MULTILINE)
    assert collected is not None
    assert int(collected[1]) > 900


def release_notes(tag: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, ROOT / "tools" / "release_notes", tag],
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_tag_of_a_release_is_its_version() -> None:
    done = release_notes("v999.0.0")
    assert done.returncode != 0
    assert f"the tag is v999.0.0, and odfbuild/version.py says {__version__}" in done.stderr


def test_the_notes_of_a_release_are_its_part_of_the_changelog() -> None:
    done = release_notes(f"v{__version__}")
    assert done.returncode == 0, done.stderr
    assert "### Added" in done.stdout
    assert "\n## " not in done.stdout
