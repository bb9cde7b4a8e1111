"""The extension for VS Code: its own tests run in Node, and it has what the server has."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from odfbuild.api.editor.lenses import EXPLAIN, PLAN, TEST
from tests.api.editor.client import PROGRAM

FOLDER = Path(__file__).parents[3] / "editors" / "vscode"
NODE = shutil.which("node")


@pytest.mark.skipif(NODE is None, reason="node is not installed")
def test_the_extension_starts_a_server_that_answers() -> None:
    assert NODE is not None, "skipped without"
    tests = sorted(map(str, (FOLDER / "test").glob("*.test.js")))
    done = subprocess.run(
        [NODE, "--test", *tests],
        env={**os.environ, "ODFBUILD_PROGRAM": str(PROGRAM)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for script in FOLDER.glob("*.js"):
        subprocess.run([NODE, "--check", script], check=True, timeout=60)


def test_commands_of_the_server_are_not_those_of_the_extension() -> None:
    """The client registers those of the server, which cannot be registered twice."""
    manifest = json.loads((FOLDER / "package.json").read_text())
    own = {each["command"] for each in manifest["contributes"]["commands"]}
    assert own.isdisjoint({PLAN, EXPLAIN, TEST})
