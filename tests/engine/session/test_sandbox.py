"""What keeps Spark in when a query has come through every check: fences of the kernel."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from odfbuild.engine.settings import EngineSettings, FileAccess, Sandbox, in_force
from odfbuild.engine.spark.session import confine
from odfbuild.engine.spark.session.java import find_java
from odfbuild.engine.spark.session.sandbox import beyond, fences
from odfbuild.errors import EnvironmentProblem

ROOT = Path(__file__).parents[3]


def attempts(folder: Path, sandbox: str) -> Any:
    """What code in the JVM could do in a project with a key and a chain."""
    for name in ("chains", ".odfbuild/scratch", ".odfbuild-keys"):
        (folder / name).mkdir(parents=True)
    (folder / "chains" / "head").write_text("head")
    (folder / ".odfbuild-keys" / "key").write_text("private")
    (folder / "source.csv").write_text("city\n")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        done = subprocess.run(
            [sys.executable, "-m", "tests.engine.fenced_program", sandbox, str(folder), str(port)],
            cwd=ROOT,
            env={**os.environ, "SECRET_OF_A_SOURCE": "hush"},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.skipif(confine.landlock_version() == 0, reason="this kernel has no Landlock")
@pytest.mark.spark
def test_a_fenced_engine_computes_and_reaches_nothing_else(tmp_path: Path) -> None:
    assert attempts(tmp_path, "required") == {
        "connect": "BindException",
        "send": "BindException",
        "read a key": "AccessDeniedException",
        "read a key by a program": "",
        "read a chain": "head",
        "write a chain": "AccessDeniedException",
        "write to the project": "AccessDeniedException",
        "write to scratch": True,
        "secret": None,
        "secret of odfbuild": "AccessDeniedException",
        "end odfbuild": "1" if confine.landlock_version() >= 6 else "0",
        "query": 7,
        "large result of a task": 300_000,
        "fences": "network and files",
        "source": ".odfbuild/scratch/source.csv",
    }


@pytest.mark.spark
def test_without_fences_the_same_code_gets_through(tmp_path: Path) -> None:
    assert attempts(tmp_path, "off") == {
        "connect": True,
        "send": True,
        "read a key": "private",
        "read a key by a program": "private",
        "read a chain": "head",
        "write a chain": True,
        "write to the project": True,
        "write to scratch": True,
        "secret": None,
        "secret of odfbuild": True,
        "end odfbuild": "0",
        "query": 7,
        "large result of a task": 300_000,
        "fences": "none",
        "source": "source.csv",
    }


ELSEWHERE = """
import sys
from pathlib import Path
from odfbuild.engine.settings import EngineSettings, FileAccess, Sandbox
from odfbuild.engine.spark.start import start_engine
from odfbuild.errors import EngineProblem
reach = FileAccess(read=(Path(sys.argv[1]),))
try:
    start_engine(EngineSettings(sandbox=Sandbox.REQUIRED), reach)
except EngineProblem as error:
    print(error.code)
engine = start_engine(EngineSettings(), reach)
print(engine.about().fences, *engine.about().lacking, sep="|")
engine.stop()
"""


@pytest.mark.skipif(confine.landlock_version() == 0, reason="this kernel has no Landlock")
@pytest.mark.spark
def test_a_java_that_needs_files_out_of_reach_runs_with_less_and_says_so(tmp_path: Path) -> None:
    java, needed, project = tmp_path / "java", tmp_path / "needed", tmp_path / "project"
    (java / "bin").mkdir(parents=True)
    project.mkdir()
    needed.touch()
    program = java / "bin" / "java"
    program.write_text(f'#!/bin/sh\ncat {needed} || exit 7\nexec {find_java().executable} "$@"\n')
    program.chmod(0o755)
    (java / "release").write_text(f'JAVA_VERSION="{find_java().version}"\n')
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, str(project)],
        cwd=ROOT,
        env={**os.environ, "ODFBUILD_JAVA_HOME": str(java)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    required, allowed = done.stdout.splitlines()
    assert required == "E0902"
    assert allowed.startswith("network|files: this Java does not start behind the fence")


def test_a_cluster_is_fenced_on_this_side_only_and_not_when_fences_are_required() -> None:
    master = "spark://somewhere:7077"
    found = fences(EngineSettings(master=master))
    assert not found.network
    assert found.lacking == (f"network: Spark has to reach the workers of {master}",)
    with pytest.raises(EnvironmentProblem) as caught:
        fences(EngineSettings(master=master, sandbox=Sandbox.REQUIRED))
    assert caught.value.code == "E0906"
    assert caught.value.notes == found.lacking


def test_a_system_without_fences_says_which_are_lacking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    found = fences(EngineSettings())
    assert str(found) == "none"
    assert [each.split(":")[0] for each in found.lacking] == ["network", "files"]
    with pytest.raises(EnvironmentProblem) as caught:
        fences(EngineSettings(sandbox=Sandbox.REQUIRED))
    assert caught.value.notes == found.lacking


def test_a_fence_that_the_kernel_refuses_starts_nothing() -> None:
    rules = json.dumps({"offline": False, "read": ["/"], "write": ["/nonexistent"]})
    # With three files no ruleset can be opened, and no interpreter started.
    code = (
        f"import sys; sys.path.insert(0, {str(Path(confine.__file__).parent)!r})\n"
        "import confine, resource\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))\n"
        f"confine.main([{rules!r}, '/bin/echo', 'started'])"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == confine.FAILED
    assert done.stdout == ""


def test_what_is_beyond_reach_is_seen_through_links(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (inside / "link").symlink_to(outside / "data.csv")
    reach = FileAccess(read=(inside,))
    assert beyond(inside / "link", reach)
    assert not beyond(inside / "data.csv", reach)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ODFBUILD_SANDBOX", "sometimes"),
        ("ODFBUILD_SPARK_MASTER", "sc://"),
        ("ODFBUILD_SPARK_MASTER", "host:7077"),
    ],
)
def test_a_variable_of_the_environment_that_makes_no_sense_is_refused(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(EnvironmentProblem) as caught:
        in_force(EngineSettings())
    assert caught.value.code == "E0905"
    assert name in caught.value.message
    assert value in caught.value.message
