"""`doctor`: what is wrong with a machine or a project is told, with what fixes it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from odfbuild.inspect.health import Check, Status
from odfbuild.report.findings.health import render_health
from odfbuild.store.side_cars import by_key_folder
from tests.apply.in_process import Program
from tests.apply.tiny import Tiny
from tests.cli.repository import commit, git, own_configuration, tiny
from tests.cli.test_locks import held
from tests.report.golden import assert_golden

__all__ = ["own_configuration", "tiny"]


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine on which all is well: a Java that tells when it is started, and completion."""
    java = tmp_path / "java"
    (java / "bin").mkdir(parents=True)
    (java / "release").write_text('JAVA_VERSION="21.0.8"\n')
    program = java / "bin" / "java"
    program.write_text(f"#!/bin/sh\necho started >> {java}/started\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("ODFBUILD_JAVA_HOME", str(java))
    home = tmp_path / "home"
    (home / ".zfunc").mkdir(parents=True)
    (home / ".zfunc" / "_odfbuild").touch()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    for name in ("ODFBUILD_SANDBOX", "ODFBUILD_SPARK_MASTER"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def examined(odfbuild: Program, *options: str) -> dict[str, dict[str, Any]]:
    """The checks by name; the exit code fits them."""
    said = odfbuild("doctor", "--json", *options)
    checks = {each["name"]: each for each in said.data["checks"]}
    assert len(checks) == len(said.data["checks"])
    failed = any(each["status"] == "fail" for each in checks.values())
    assert (said.code, said.data["ok"]) == (int(failed), not failed)
    assert all((each["help"] is None) == (each["status"] == "ok") for each in checks.values())
    return checks


def fix(check: dict[str, Any]) -> None:
    """Do what the line of help says."""
    subprocess.run(check["help"], shell=True, check=True)


def test_where_all_is_well_nothing_warns(tiny: Tiny, odfbuild: Program, machine: Path) -> None:
    odfbuild.ok("git", "install")
    odfbuild.apply()
    commit(tiny, "Add datasets")
    checks = examined(odfbuild)
    assert {name for name, each in checks.items() if each["status"] != "ok"} <= {"sandbox", "disk"}
    assert "21.0.8, from ODFBUILD_JAVA_HOME" in checks["java"]["detail"]
    assert checks["chains"]["detail"].startswith("2 readable")
    assert checks["project"]["detail"].startswith("tiny: 2 definitions")
    assert f"pyspark {version('pyspark')}" in checks["libraries"]["detail"]
    assert not (machine / "java" / "started").exists(), "no JVM is started"
    assert not [*tiny.root.glob("**/.odfbuild-doctor-*")], "nothing is left behind"


def test_a_deep_look_starts_spark(tiny: Tiny, odfbuild: Program, machine: Path) -> None:
    shutil.copytree(tiny.root, machine / "elsewhere")
    session = subprocess.run(
        [Path(sys.executable).parent / "odfbuild", "doctor", "--deep", "--json"],
        cwd=machine / "elsewhere",
        env={**os.environ, "ODFBUILD_SANDBOX": "off"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert session.returncode == 1, session.stderr
    (found,) = [e for e in json.loads(session.stdout)["checks"] if e["name"] == "session"]
    assert found["status"] == "fail"
    assert found["detail"] == "Spark could not be started: the JVM ended with code 1"
    assert (machine / "java" / "started").exists()


def test_outside_of_a_project_the_machine_is_looked_at(
    odfbuild: Program, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = Program(machine, monkeypatch, odfbuild.capsys)
    checks = examined(outside)
    assert checks["project"]["status"] == "warn"
    assert "java" in checks
    assert "chains" not in checks


def test_a_missing_java_fails(
    odfbuild: Program, monkeypatch: pytest.MonkeyPatch, tiny: Tiny
) -> None:
    monkeypatch.setenv("ODFBUILD_JAVA_HOME", "/nonexistent")
    check = examined(odfbuild)["java"]
    assert check["status"] == "fail"
    assert "pip install 'odfbuild[jre]'" in check["help"]


def test_keys_that_others_may_read_fail_and_the_command_mends_it(
    tiny: Tiny, odfbuild: Program
) -> None:
    odfbuild.apply()
    keys = tiny.root / ".odfbuild-keys"
    keys.chmod(0o755)
    check = examined(odfbuild)["keys"]
    assert check["detail"] == "the folder of private keys is open to others (mode 755)"
    fix(check)
    key = next(each for each in keys.iterdir() if each.name != ".gitignore")
    key.chmod(0o644)
    check = examined(odfbuild)["keys"]
    assert (check["status"], key.name in check["detail"]) == ("fail", True)
    fix(check)
    check = examined(odfbuild)["keys"]
    assert (check["status"], check["detail"][:2]) == ("ok", "2,")


def test_keys_in_git_fail(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    git(tiny, "add", "--force", ".odfbuild-keys")
    check = examined(odfbuild)["keys in git"]
    assert check["status"] == "fail"
    assert "make new keys" in check["help"]


def test_a_repository_that_is_not_set_up_warns_until_it_is(tiny: Tiny, odfbuild: Program) -> None:
    check = examined(odfbuild)["git set-up"]
    assert check["status"] == "warn"
    assert "odfbuild.notes" in check["detail"]
    assert check["help"] == "odfbuild git install"
    odfbuild.ok("git", "install")
    assert examined(odfbuild)["git set-up"]["status"] == "ok"
    git(tiny, "config", "odfbuild.notes", "false")
    assert examined(odfbuild)["git set-up"]["detail"] == "lacking: odfbuild.notes"


def test_a_project_outside_of_git_warns(tiny: Tiny, odfbuild: Program) -> None:
    shutil.rmtree(tiny.root.parent / ".git")
    check = examined(odfbuild)["git"]
    assert check["status"] == "warn"
    fix(check)
    assert examined(odfbuild)["git"]["status"] == "ok"


def test_a_damaged_chain_fails(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    (tiny.root / "chains" / "root" / "refs" / "head").write_text("nothing")
    shutil.rmtree(tiny.root / ".odfbuild")
    check = examined(odfbuild)["chains"]
    assert check["status"] == "fail"


def test_a_wrong_definition_fails_with_its_place(tiny: Tiny, odfbuild: Program) -> None:
    file = next((tiny.root / "datasets").iterdir())
    file.write_text(file.read_text().replace("  kind: ", "  kynd: ", 1))
    check = examined(odfbuild)["project"]
    assert check["status"] == "fail"
    assert f"datasets/{file.name}:" in check["detail"]


def test_a_wrong_configuration_fails_and_the_machine_is_looked_at_all_the_same(
    tiny: Tiny, odfbuild: Program
) -> None:
    with (tiny.root / "odfbuild.yaml").open("a") as file:
        file.write("  engin: {}\n")
    checks = examined(odfbuild)
    assert checks["project"]["detail"] == "odfbuild.yaml:7:3: unknown key 'engin'"
    assert checks["project"]["help"] == "did you mean 'engine'?"
    assert checks["java"]["status"] == "ok"


def test_variables_that_sources_need_are_named_and_their_values_never(
    tiny: Tiny, odfbuild: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tiny.root / "datasets" / "secret.yaml").write_text(
        """\
kind: DatasetSnapshot
version: 1
content:
  name: secret
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch:
        kind: Url
        url: https://example.org/?key=${{ env.KEY_OF_IT || env.OTHER }}&page=${{ env.PAGE || '1' }}
      read:
        kind: Csv
      merge:
        kind: Append
"""
    )
    check = examined(odfbuild)["credentials"]
    assert check["status"] == "fail"
    assert check["detail"] == "not set: KEY_OF_IT or OTHER, for secret"
    monkeypatch.setenv("OTHER", "hush-hush")
    assert examined(odfbuild)["credentials"]["detail"] == "set: OTHER"
    assert "hush-hush" not in odfbuild("doctor").out


def test_a_container_without_a_runtime_fails(
    tiny: Tiny, odfbuild: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ODFBUILD_CONTAINER_RUNTIME", "no-such-runtime")
    assert examined(odfbuild)["containers"]["status"] == "ok", "nobody needs it"
    root = tiny.root / "datasets" / "container.yaml"
    root.write_text(
        """\
kind: DatasetSnapshot
version: 1
content:
  name: container
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch:
        kind: Container
        image: docker.io/example/image@sha256:0000
      read:
        kind: Csv
      merge:
        kind: Append
"""
    )
    check = examined(odfbuild)["containers"]
    assert check["status"] == "fail"
    assert check["detail"] == "no no-such-runtime on the path, for container"


def test_what_killed_runs_left_warns(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    left = tiny.root / ".odfbuild" / "scratch" / "apply-old"
    left.mkdir()
    (left / "part").write_bytes(b"x" * 5000)
    assert examined(odfbuild)["cache"]["status"] == "ok", "it may belong to a run that goes on"
    two_days_ago = time.time() - 2 * 24 * 3600
    os.utime(left, (two_days_ago, two_days_ago))
    check = examined(odfbuild)["cache"]
    assert (check["status"], check["help"]) == ("warn", "odfbuild gc")
    assert "5 KB was left by runs that were killed" in check["detail"]


def test_records_by_key_are_told_apart(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    folder = by_key_folder(tiny.root / ".odfbuild" / "side-cars" / "root", "id")
    folder.mkdir(parents=True)
    (folder / "segment").write_bytes(b"x" * 7000)
    detail = examined(odfbuild)["cache"]["detail"]
    assert ", of which 7 KB are records by key: " in detail


def test_a_sandbox_that_is_off_and_a_master_that_is_gone_are_told(
    tiny: Tiny, odfbuild: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ODFBUILD_SANDBOX", "off")
    check = examined(odfbuild)["sandbox"]
    assert (check["status"], check["detail"]) == ("warn", "fenced: none. engine.sandbox is off")
    monkeypatch.setenv("ODFBUILD_SPARK_MASTER", "spark://127.0.0.1:1")
    check = examined(odfbuild)["engine"]
    assert check["status"] == "fail"
    assert "no Spark master answers" in check["detail"]


def test_who_is_at_work_is_told(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    with held(tiny.root, "root") as process:
        check = examined(odfbuild)["locks"]
        assert check["detail"] == f"at work: process {process.pid} on root"
    assert examined(odfbuild)["locks"]["status"] == "ok"


def test_completion_that_is_not_installed_warns(
    tiny: Tiny, odfbuild: Program, machine: Path
) -> None:
    (machine / "home" / ".zfunc" / "_odfbuild").unlink()
    assert examined(odfbuild)["completion"]["help"] == "odfbuild --install-completion"


def test_the_text_has_a_line_for_each_check_and_what_mends_it(
    tiny: Tiny, odfbuild: Program
) -> None:
    shown = odfbuild("doctor").out.splitlines()
    names = [each["name"] for each in odfbuild("doctor", "--json").data["checks"]]
    assert [re.split(r"  +", line)[1] for line in shown[:-1] if line[0] != " "] == names
    assert_golden(
        "doctor.txt",
        render_health(
            [
                Check("java", Status.OK, "21.0.8, from PATH: /usr/lib/jvm/java-21"),
                Check("git set-up", Status.WARN, "lacking: odfbuild.notes", "odfbuild git install"),
                Check("keys", Status.FAIL, "open to others (mode 755)", "chmod 700 keys"),
            ],
            color=False,
        ),
    )


def test_a_chain_that_outgrows_git_is_told(
    tiny: Tiny, odfbuild: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    odfbuild.apply()
    monkeypatch.setattr("odfbuild.api.doctor.project.MANY_BLOCKS", 4)
    check = examined(odfbuild)["chains in git"]
    assert check["status"] == "warn"
    assert "has 4 blocks in one folder, and 1 dataset more" in check["detail"]
    assert check["help"].startswith("odfbuild chains move --to storage")
    with (tiny.root / "odfbuild.yaml").open("a") as config:
        config.write("  storage: ../storage\n")
    odfbuild.ok("chains", "move", "--to", "storage")
    assert "chains in git" not in examined(odfbuild)
