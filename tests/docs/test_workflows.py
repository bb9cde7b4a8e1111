"""What runs on a server is what anyone can run here: targets of the Makefile and tools."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from odfbuild.version import __version__

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def jobs(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(file.read_text())["jobs"]
    return found


def steps(file: Path) -> list[dict[str, Any]]:
    return [step for job in jobs(file).values() for step in job["steps"]]


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_every_step_of_a_workflow_runs_a_target_or_a_tool_that_exists(file: Path) -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
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
    tried = jobs(ci)["check"]["strategy"]["matrix"]["python"]
    pyproject = (ROOT / "pyproject.toml").read_text()
    assert f'requires-python = ">={tried[0]}"' in pyproject
    declared = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', pyproject)
    assert declared == tried


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
