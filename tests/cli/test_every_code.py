"""Every code of an error is met by a wrong input, through the program, in a pipe and on a terminal.

One process meets all of `tests/cli/wrong` with its output in a pipe, another one on a terminal.
"""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from odfbuild.cli.verbs import VERBS
from odfbuild.engine.contract import Engine
from odfbuild.report.error_codes import error_codes
from tests.apply.in_process import Program, share
from tests.apply.tiny import Tiny
from tests.cli.wrong import CASES, MARK
from tests.cli.wrong.spoil import Case
from tests.report.golden import assert_golden

ROOT = Path(__file__).parents[2]
_ANSI = re.compile(r"\x1b\[[\d;?]*[a-zA-Z]")
_ENVIRONMENT = {
    name: value
    for name, value in os.environ.items()
    if name not in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE")
    and not name.startswith(("ODFBUILD_", "GITHUB_", "GIT_"))
} | {
    "CI": "1",
    "TERM": "xterm-256color",
    "COLUMNS": "80",
    "TERMINAL_WIDTH": "80",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
}

ELSEWHERE = {
    # More than one project, repository or server.
    "E0132": "tests/cli/test_decoding.py",
    "E0314": "tests/apply/test_schema_evolution.py",
    "E0315": "tests/plan/test_diff.py",
    "E0333": "tests/apply/test_reset.py",
    "E0344": "tests/cli/test_git_commit.py",
    "E0345": "tests/cli/test_git_commit.py",
    "E0346": "tests/cli/test_git_commit.py",
    "E0371": "tests/cli/test_ci.py",
    "E0405": "tests/apply/test_secrets_nowhere.py",
    "E0406": "tests/apply/test_secrets_nowhere.py",
    "E0413": "tests/ingest/test_broken_transport.py",
    "E0415": "tests/apply/test_secrets_nowhere.py",
    "E0416": "tests/apply/test_secrets_nowhere.py",
    "E0702": "tests/cli/test_locks.py",
    # Sources that Spark reads; all of the first file by one real run.
    "E0400": "tests/ingest/test_prepare.py",
    "E0409": "tests/ingest/bad_sources.py",
    "E0411": "tests/ingest/bad_sources.py",
    "E0412": "tests/ingest/bad_sources.py",
    "E0414": "tests/ingest/bad_sources.py",
    "E0420": "tests/ingest/bad_sources.py",
    "E0421": "tests/apply/test_secrets_nowhere.py",
    "E0423": "tests/ingest/bad_sources.py",
    "E0424": "tests/ingest/bad_text.py",
    "E0425": "tests/ingest/bad_sources.py",
    "E0426": "tests/ingest/bad_text.py",
    "E0430": "tests/ingest/bad_sources.py",
    "E0431": "tests/ingest/bad_sources.py",
    "E0432": "tests/ingest/bad_sources.py",
    "E0433": "tests/conformance/test_writer_scenarios.py",
    "E0434": "tests/ingest/bad_sources.py",
    "E0435": "tests/conformance/test_writer_scenarios.py",
    "E0436": "tests/ingest/test_guess.py",
    "E0517": "tests/ingest/bad_sources.py",
    "E0521": "tests/ingest/bad_sources.py",
    "E0522": "tests/ingest/bad_sources.py",
    # What only an engine can tell.
    "E0512": "tests/engine/test_read_types.py",
    "E0513": "tests/engine/test_translate.py",
    "E0514": "tests/engine/test_transform.py",
    "E0518": "tests/engine/test_temporal.py",
    "E0519": "tests/cli/test_sql.py",
    "E0520": "tests/apply/test_push.py",
    "E0530": "tests/engine/test_read_types.py",
    "E0543": "tests/cli/test_checking.py",
    "E0544": "tests/engine/test_limits.py",
    "E0545": "tests/engine/test_limits.py",
    "E0546": "tests/engine/test_lost_jvm.py",
    "E0820": "tests/verify/test_reproduce_spark.py",
    "E0821": "tests/verify/test_reproduce.py",
    "E0823": "tests/verify/test_reproduce.py",
    "E0901": "tests/engine/test_session.py",
    "E0902": "tests/engine/test_lost_jvm.py",
    "E0905": "tests/engine/test_sandbox.py",
    "E0906": "tests/engine/test_sandbox.py",
    "E0907": "tests/engine/test_cluster.py",
    "E0908": "tests/engine/test_cluster.py",
    "E0909": "tests/engine/test_lost_jvm.py",
}
"""Codes that need more than a project on disk, and the tests that meet them."""

QUERIES = {
    "E0501": "SELECT event_time, idd FROM source",
    "E0502": "SELECT event_time, id FROM source WHERE id = :mark",
    "E0503": "SELECT event_time, id FROM source, no_such_function(1)",
    "E0504": "SELECT event_time, id FROM csv.`/etc/passwd`",
    "E0505": "SELECT event_time, id, rand() AS r FROM source",
    "E0506": "SELECT event_time, id FROM source LIMIT 1",
    "E0510": "SELECT event_time, id, INTERVAL '1' MONTH AS i FROM source",
    "E0511": "SELECT event_time, id, id FROM source",
    "E0515": "SELECT id FROM source",
    "E0516": "SELECT 'x' AS event_time, id FROM source",
}
"""A query that Spark refuses, by the code of the error."""

UNREACHED = {
    "E0001": "stands for several errors, each of which has a code of its own",
    "E0112": "a file that can be read and not written; tests may run as root, who can",
    "E0310": "an input is gone between plan and apply of one command",
    "E0311": "an input is gone between plan and apply of one command",
    "E0330": "a derivative without a transformation; definitions without one are refused (E0106)",
    "E0372": "text without a marker; the command reads such text as a saved plan (E0360)",
    "E0419": "a node that answers with a log of another shape than was asked for",
    "E0422": "an option of CSV that Spark lacks; see tests/engine/test_csv_options.py",
    "E0531": "a type of Arrow that Spark never gives",
    "E0532": "an encoding of columns that no definition can ask for yet",
    "E0603": "a block that does not follow the newest; verify sees a missing one (E0802)",
    "E0610": "a history that is rewritten while it is read",
    "E0611": "a block from a peer that is not what its name says; there are no peers yet",
    "E0804": "a dataset that disappears while it is verified",
    "E0824": "an engine that fails in the middle of verification",
    "E0903": "PySpark is not installed",
}
"""Codes that no wrong input leads to, and why."""


@dataclass(frozen=True)
class Met:
    """What the program said of a case, and how it ended."""

    code: str
    text: str
    exit: int


def in_pipe(folder: Path) -> str:
    """What the program says into a pipe."""
    done = subprocess.run(
        command(folder), cwd=ROOT, env=_ENVIRONMENT, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=200, check=False,
    )  # fmt: skip
    return done.stdout.decode()


def on_terminal(folder: Path) -> str:
    """What the program says on a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command(folder), cwd=ROOT, env=_ENVIRONMENT, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    parts = []
    while True:
        try:
            part = os.read(ours, 65_536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        parts.append(part)
    os.close(ours)
    process.wait(timeout=60)
    return b"".join(parts).decode().replace("\r\n", "\n")


def command(folder: Path) -> list[str]:
    return [sys.executable, "-m", "tests.cli.wrong", str(folder)]


@pytest.fixture(scope="module")
def met(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, list[Met]]:
    """All cases, in order, in a pipe and on a terminal."""
    folders = {
        way.__name__: tmp_path_factory.mktemp(way.__name__) for way in (in_pipe, on_terminal)
    }
    with ThreadPoolExecutor() as pool:
        said = list(pool.map(lambda way: way(folders[way.__name__]), (in_pipe, on_terminal)))
    return {name: _parsed(text) for name, text in zip(folders, said, strict=True)}


def _parsed(text: str) -> list[Met]:
    parts = text.split(MARK)[1:-1]
    assert len(parts) == 3 * (len(CASES) + len(VERBS)), text[-2000:]
    return [
        Met(code, said, int(exit))
        for code, said, exit in zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    ]


NUMBERED = [pytest.param(n, case, id=case.code) for n, case in enumerate(CASES)]


@pytest.mark.parametrize(("number", "case"), NUMBERED)
def test_a_wrong_input_meets_its_code(
    met: Mapping[str, list[Met]], number: int, case: Case
) -> None:
    piped, shown = met["in_pipe"][number], met["on_terminal"][number]
    assert (piped.code, shown.code) == (case.code, case.code)
    assert f"error[{case.code}]" in piped.text
    assert f"see: odfbuild explain {case.code}" in piped.text
    assert "Traceback" not in piped.text + shown.text
    assert not _ANSI.search(piped.text)
    assert f"error[{case.code}]" in _ANSI.sub("", shown.text)
    assert (piped.exit, shown.exit) == (case.exit, case.exit)


def test_a_terminal_shows_errors_in_colour(met: Mapping[str, list[Met]]) -> None:
    assert "\x1b[31;1merror[E0100]\x1b[0m" in met["on_terminal"][0].text


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_a_verb_is_as_reviewed(met: Mapping[str, list[Met]], verb: str) -> None:
    for way in met.values():
        found = way[len(CASES) + VERBS.index(verb)]
        assert (found.code, found.exit) == (verb, 0)
        assert_golden(f"help/{verb}.txt", _ANSI.sub("", found.text))


@pytest.mark.spark
def test_spark_refuses_queries_with_their_codes(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    spark_engine: Engine,
) -> None:
    tiny = Tiny.fresh(tmp_path / "project")
    for code, query in QUERIES.items():
        tiny.derive(code.lower(), query)
    share(spark_engine, monkeypatch)
    said = Program(tiny.root, monkeypatch, capsys)("apply", "-y", "--json")
    found = {d["name"].upper(): d["error"] for d in said.data["datasets"] if d["error"]}
    assert {name: error["code"] for name, error in found.items()} == {c: c for c in QUERIES}
    for code in QUERIES:
        assert f"error[{code}]" in said.err and f"see: odfbuild explain {code}" in said.err


def test_every_code_is_met_or_cannot_be() -> None:
    groups = [{case.code for case in CASES}, set(ELSEWHERE), set(QUERIES), set(UNREACHED)]
    assert set().union(*groups) == set(error_codes())
    assert sum(map(len, groups)) == len(error_codes()), "a code is in two groups"


@pytest.mark.parametrize("code", sorted(ELSEWHERE))
def test_what_is_met_elsewhere_is_named_there(code: str) -> None:
    assert code in (ROOT / ELSEWHERE[code]).read_text()
