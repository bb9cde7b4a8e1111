"""Environments as `pip install` makes them: a wheel of this tree, and what it declares to need.

What is needed is taken from the environment of the tests, distribution by distribution, so that no
network is asked; `test_fresh_installs.py` takes it from an index.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import venv
from collections.abc import Sequence
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]

_FOLDERS = ("odfbuild", "schemas", "templates")
_FILES = ("pyproject.toml", "setup.py", "README.md", "LICENSE")


def run(*command: object) -> str:
    """What a command prints; it has to succeed."""
    done = subprocess.run(
        [str(word) for word in command], cwd="/", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build_wheel(folder: Path) -> Path:
    """The wheel of this tree."""
    # A build leaves its marks in the tree that it is made from.
    tree = folder / "tree"
    tree.mkdir()
    there = [each for each in ("vendored",) if (ROOT / each).is_dir()]  # what npm brought
    for name in (*_FOLDERS, *there, *_FILES):
        run("cp", "-r", ROOT / name, tree / name)
    run(
        sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check",
        "--no-deps", "--no-build-isolation", "--wheel-dir", folder, tree,
    )  # fmt: skip
    return next(folder.glob("odfbuild-*.whl"))


def make_environment(folder: Path, wheel: Path, *extras: str) -> Path:
    """The programs of an environment with the wheel, what it needs, and what these extras bring."""
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    run(
        sys.executable, "-m", "pip", "--python", python, "install", "--quiet",
        "--disable-pip-version-check", "--no-deps", "--no-index", wheel,
    )  # fmt: skip
    link_packages(python, needed(*extras))
    return python.parent


def link_packages(python: Path, found: Sequence[Distribution]) -> None:
    """Give an environment what is installed in that of the tests."""
    packages = packages_of(python)
    for each in found:
        for top in {Path(file).parts[0] for file in each.files or ()} - {"..", "__pycache__"}:
            (packages / top).symlink_to(Path(str(each.locate_file(top))))


def packages_of(python: Path) -> Path:
    """Where an environment has its packages."""
    where = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))")
    return Path(where.strip())


def needed(*extras: str) -> list[Distribution]:
    """The distributions that this tree needs with these extras, and all that they need."""
    found: dict[str, Distribution] = {}
    waiting = declared(*extras)
    while waiting:
        each = waiting.pop()
        name = canonicalize_name(each.name)
        if name not in found:
            found[name] = distribution(name)
            waiting += _required(found[name].requires or [], each.extras)
    return list(found.values())


def declared(*extras: str) -> list[Requirement]:
    """What `pyproject.toml` declares."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    own = [project["dependencies"], *(project["optional-dependencies"][each] for each in extras)]
    return [Requirement(text) for texts in own for text in texts]


def _required(texts: list[str], extras: set[str]) -> list[Requirement]:
    requirements = [Requirement(text) for text in texts]
    return [
        each
        for each in requirements
        if each.marker is None
        or any(each.marker.evaluate({"extra": extra}) for extra in (*extras, ""))
    ]


def size_of(folder: Path, but: tuple[str, ...] = ()) -> int:
    """Bytes of the files below a folder, without what begins with `but`; links are followed."""
    return sum(
        Path(where, each).stat().st_size
        for top in folder.iterdir()
        if not top.name.startswith(but)
        for where, _, files in (os.walk(top, followlinks=True) if top.is_dir() else [_alone(top)])
        for each in files
    )


def _alone(file: Path) -> tuple[str, list[str], list[str]]:
    return str(file.parent), [], [file.name]
