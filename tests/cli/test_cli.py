"""The command line as a user meets it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from odfbuild.cli.main import run
from tests.project.write_project import listing

_COMMAND = [sys.executable, "-m", "odfbuild"]
_HEAVY = ("numpy", "pyarrow", "pyspark", "networkx", "jinja2", "yaml", "rich", "sqlglot")


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys\nfrom odfbuild.cli.main import run\nrun(['--help'])\n"
        f"print([m for m in {_HEAVY!r} if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_help_answers_within_150_ms_of_cpu() -> None:
    """On a machine where Python itself starts in 20 ms; a busy one is slower at both.

    Each run is compared with one just before it: whoever else is at work changes all the time.
    """
    nothing, helped = [sys.executable, "-c", "pass"], [*_COMMAND, "--help"]
    times = [max(0.020, _cpu_seconds(nothing)) / _cpu_seconds(helped) for _ in range(7)]
    assert max(times) > 0.020 / 0.150


def _cpu_seconds(command: list[str]) -> float:
    """CPU time of a program, user and system."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, _, used = os.wait4(process.pid, 0)
    process.returncode = 0
    return used.ru_utime + used.ru_stime


USAGE = [
    ("valdate", "there is no command 'valdate'", "did you mean 'validate'? `odfbuild --help`"),
    ("lock lis", "there is no command 'lis'", "did you mean 'list'? `odfbuild lock --help`"),
    ("docs", "`odfbuild docs` needs a command: build, serve", "`odfbuild docs --help`"),
    ("plan --nope", "there is no option '--nope'", "`odfbuild plan --help`"),
    ("plan --fromat text", "there is no option '--fromat'", "did you mean '--format'?"),
    ("plan --det", "there is no option '--det'", "did you mean '--detailed-exitcode'?"),
    ("log", "missing argument 'DATASET'", "`odfbuild log --help`"),
    ("apply -j 0", "it should be greater than or equal to 1", "`odfbuild apply --help`"),
    ("ls --format xml", "'xml' is not one of 'text', 'json'", "`odfbuild ls --help`"),
    ("plan --allow all", "'all' is none of 'rebuild:NAME'", "`odfbuild plan --help`"),
]


@pytest.mark.parametrize(("line", "message", "help"), USAGE, ids=[line for line, *_ in USAGE])
def test_wrong_usage_says_what_was_meant_and_where_help_is(
    line: str, message: str, help: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(line.split()) == 64
    said = capsys.readouterr()
    assert said.out == ""
    first, second, third = said.err.splitlines()
    assert first.startswith("error[E0376]: ") and message in first
    assert second.startswith("help: ") and help in second
    assert third == "see: odfbuild explain E0376"


@pytest.mark.parametrize("as_json", ["--json", "--format=json", "--format json"])
def test_wrong_usage_is_json_for_who_asked_for_json(
    as_json: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["plan", "--nope", *as_json.split()]) == 64
    (error,) = json.loads(capsys.readouterr().out)["errors"]
    assert (error["code"], error["message"]) == ("E0376", "there is no option '--nope'")


def test_without_a_project_the_way_to_start_one_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["plan"]) == 1
    shown = capsys.readouterr().err
    assert "error[E0100]" in shown
    assert "odfbuild init" in shown
    assert listing(tmp_path) == {}


def test_a_new_project_has_changes_to_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["init"]) == 0
    for file in (tmp_path / "odfbuild.yaml", *(tmp_path / "datasets").iterdir()):
        first = file.read_text().partition("\n")[0]
        assert first.startswith("# yaml-language-server: $schema=")
        json.loads((file.parent / first.partition("=")[2]).read_text())
    assert run(["fmt", "--check"]) == 0
    assert run(["lint", "--strict"]) == 0
    assert run(["validate"]) == 0
    assert run(["plan"]) == 0
    assert run(["plan", "--detailed-exitcode"]) == 2
    capsys.readouterr()
    assert run(["plan", "--json"]) == 0
    assert isinstance(json.loads(capsys.readouterr().out), dict)


@pytest.mark.spark
def test_a_new_project_can_be_applied_listed_and_read(tmp_path: Path) -> None:
    def odfbuild(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*_COMMAND, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
        )

    assert odfbuild("init").returncode == 0
    applied = odfbuild("apply", "-y")
    assert applied.returncode == 0, applied.stderr
    assert "\x1b[" not in applied.stdout + applied.stderr
    assert odfbuild("plan", "--detailed-exitcode").returncode == 0
    listed = json.loads(odfbuild("ls", "--json").stdout)
    assert listed
    assert odfbuild("verify").returncode == 0


@pytest.mark.parametrize(
    ("alias", "verb"),
    [
        ("build", "apply"),
        ("list", "ls"),
        ("dag", "graph"),
        ("compile", "render"),
        ("why", "explain"),
    ],
)
def test_what_a_verb_is_called_elsewhere_is_understood(
    alias: str, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([alias, "--help"]) == 0
    said = capsys.readouterr().out
    assert run([verb, "--help"]) == 0
    assert said.replace(f"odfbuild {alias}", f"odfbuild {verb}") == capsys.readouterr().out


def test_what_nobody_foresaw_is_one_error_whose_details_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Sore(Exception):
        def __str__(self) -> str:
            raise RuntimeError("who would tell is gone")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    foreseen_by_nobody = {"ValueError: of all things": ValueError("of all things"), "Sore": Sore()}
    for shown, error in foreseen_by_nobody.items():

        def fail(*_: object, error: Exception = error) -> None:
            raise error

        monkeypatch.setattr("odfbuild.cli.context.Context.chosen", fail)
        monkeypatch.setattr("odfbuild.survey.survey.choose", fail)
        assert run(["ls", "--json"]) == 1
        said = capsys.readouterr()
        assert f"error[E0999]: internal error while doing `odfbuild ls`: {shown}\n" in said.err
        assert json.loads(said.out)["errors"][0]["code"] == "E0999"
        assert "test_cli.py" in (tmp_path / "defect.log").read_text()
