"""The tutorial as a new user goes through it: from a wheel in an environment of its own."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from .console import ROOT, commands, run_all

_FOLDERS = ("odfbuild", "schemas", "templates")
_FILES = ("pyproject.toml", "setup.py", "README.md", "LICENSE")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Programs of an environment with the wheel of this tree; what it needs comes from ours."""
    folder = tmp_path_factory.mktemp("installed")
    # A build leaves its marks in the tree that it is made from.
    tree = folder / "tree"
    tree.mkdir()
    for name in (*_FOLDERS, *_FILES):
        subprocess.run(["cp", "-r", ROOT / name, tree / name], check=True)
    _run(
        sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check",
        "--no-deps", "--no-build-isolation", "--wheel-dir", folder, tree,
    )  # fmt: skip
    wheel = next(folder.glob("odfbuild-*.whl"))
    venv.create(folder / "venv", with_pip=False, symlinks=True)
    python = folder / "venv" / "bin" / "python"
    _run(
        sys.executable, "-m", "pip", "--python", python, "install", "--quiet",
        "--disable-pip-version-check", "--no-deps", "--no-index", wheel,
    )  # fmt: skip
    own = _run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    (Path(own) / "needed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python.parent


def _run(*command: object) -> str:
    done = subprocess.run(
        [str(word) for word in command], cwd="/", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_wheel_has_all_that_the_program_reads(installed: Path) -> None:
    script = (
        "import odfbuild\n"
        "from odfbuild.project.resources import schema_text, template_text\n"
        "from odfbuild.report.error_codes import error_codes\n"
        "from odfbuild.authoring.scaffold import KINDS\n"
        "print(odfbuild.__file__)\n"
        "[template_text(f'new/{kind}.yaml.j2') for kind in KINDS if kind != 's3']\n"
        "template_text('report/plan.html.j2'), template_text('init/2026-01.csv')\n"
        "schema_text('DatasetSnapshot.json'), schema_text('plan.schema.json'), error_codes()\n"
    )
    where = _run(installed / "python", "-c", script).strip()
    assert Path(where).is_relative_to(installed.parent)
    files = {"templates", "schemas"}
    for folder in files:
        shipped = Path(where).parent / "_resources" / folder
        ours = {str(p.relative_to(ROOT / folder)) for p in (ROOT / folder).rglob("*.*")}
        assert {str(p.relative_to(shipped)) for p in shipped.rglob("*.*")} >= ours
    assert (Path(where).parent / "py.typed").is_file()


@pytest.mark.spark
def test_the_tutorial_does_what_it_says(installed: Path, tmp_path: Path) -> None:
    """From nothing to a merged pull request, by the page alone."""
    listed = commands(ROOT / "docs" / "tutorial.md")
    said = {word for command in listed for word in command.text.split()}
    assert {"init", "new", "plan", "apply", "git", "verify"} <= said
    if wrong := run_all(listed, tmp_path, installed):
        pytest.fail("\n\n".join(wrong), pytrace=False)
