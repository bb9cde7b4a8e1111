"""The real program on a terminal and in a pipe: colours, questions, exit codes."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import time
from codecs import getincrementaldecoder
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from odfbuild import Project
from odfbuild.cli.main import run
from odfbuild.odf.model import SetInfo
from odfbuild.report.forms.visible import visible
from tests.apply.in_process import share
from tests.apply.plain_engine import PlainEngine
from tests.apply.tiny import Tiny
from tests.cli import real
from tests.cli.real import ANSI, BINARY, ENVIRONMENT, NO_JVM, Said
from tests.cli.test_locks import held
from tests.records.chains import NOW, Chain

ROOT = Path(__file__).parents[2]
_PLAIN_ENVIRONMENT = {**ENVIRONMENT, **NO_JVM, "COLUMNS": "160"}


def in_pipe(root: Path, *arguments: str, **env: str) -> Said:
    """Run the program with its output in a pipe."""
    return real.in_pipe(root, arguments, {**NO_JVM, "COLUMNS": "160", **env})


def on_terminal(root: Path, *arguments: str, keys: str = "", **env: str) -> Said:
    """Run the program on a terminal; `keys` are typed when it asks something."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [BINARY, *arguments],
        cwd=root,
        env=_PLAIN_ENVIRONMENT | env,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=_take_terminal,  # noqa: PLW1509  # Ctrl-C must reach the program
    )
    os.close(theirs)
    text, decode = "", getincrementaldecoder("utf-8")().decode
    while part := real.read_terminal(ours):
        text += decode(part)
        if keys and "[y/N]" in text:
            os.write(ours, keys.encode())
            keys = ""
    os.close(ours)
    return Said(process.wait(timeout=200), text.replace("\r\n", "\n"))


def _take_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


BOTH = pytest.mark.parametrize("execute", [in_pipe, on_terminal])


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An applied project with a new file; tests that change something take a copy."""
    tiny = Tiny.fresh(tmp_path_factory.mktemp("terminal") / "p")
    with pytest.MonkeyPatch.context() as patch:
        share(PlainEngine(), patch)
        assert run(["-q", "-C", str(tiny.root), "apply", "-y"]) == 0
    tiny.arrive(2)
    return tiny.root


@pytest.fixture
def copy(root: Path, tmp_path: Path) -> Path:
    """A copy of the project, to change."""
    shutil.copytree(root, tmp_path / "copy")
    return tmp_path / "copy"


def describe(root: Path, name: str, text: str) -> None:
    """Give a dataset a description: a change that needs no engine."""
    file = root / "datasets" / f"{name}.yaml"
    info = f"    - kind: SetInfo\n      description: {text}\n"
    file.write_text(file.read_text().split("    - kind: SetInfo")[0] + info)


def test_colours_are_for_terminals_unless_somebody_says_otherwise(root: Path) -> None:
    plain = in_pipe(root, "plan")
    assert not ANSI.search(plain.text)
    for env in ({"FORCE_COLOR": "1"}, {"CLICOLOR_FORCE": "1"}):
        colored = in_pipe(root, "plan", **env)
        assert "\x1b[36m>\x1b[0m" in colored.text
        assert ANSI.sub("", colored.text) == plain.text
    shown = on_terminal(root, "plan")
    assert "\x1b[36m>\x1b[0m" in shown.text
    assert ANSI.sub("", shown.text) == plain.text
    assert on_terminal(root, "plan", NO_COLOR="1").text == plain.text
    assert on_terminal(root, "plan", TERM="dumb").text == plain.text
    assert on_terminal(root, "--no-color", "plan").text == plain.text
    assert in_pipe(root, "plan", FORCE_COLOR="1", NO_COLOR="1").text == plain.text


def test_errors_have_colours_on_terminals_only(root: Path) -> None:
    shown, plain = on_terminal(root, "log", "rood"), in_pipe(root, "log", "rood")
    assert shown.text.startswith("\x1b[31;1merror[E0301]\x1b[0m")
    assert plain.text.startswith("error[E0301]: ")
    assert ANSI.sub("", shown.text) == plain.text


def test_only_a_person_at_a_terminal_is_asked(copy: Path) -> None:
    describe(copy, "derived", "Words")
    for file in (copy / "data").glob("2*"):
        file.unlink()
    refused = on_terminal(copy, "apply", keys="n\n")
    assert refused.code == 1
    assert "Do this? [y/N]" in refused.text
    assert "Nothing was done." in refused.text
    assert on_terminal(copy, "apply", keys="\x03").code == 130
    nobody = on_terminal(copy, "apply", CI="true")
    assert nobody.code == 0
    assert "Do this?" not in nobody.text
    assert "No changes." in in_pipe(copy, "apply").text


@BOTH
def test_exit_codes_are_those_of_the_reference(copy: Path, tmp_path: Path, execute) -> None:
    seen = {130}  # which the two tests around this one see

    def ends(code: int, *arguments: str, root: Path = copy) -> None:
        seen.add(code)
        assert execute(root, *arguments).code == code, arguments

    ends(0, "ls")
    ends(1, "plan", root=tmp_path)
    ends(2, "plan", "--detailed-exitcode")
    ends(64, "plan", "--detailed-exitcod")
    ends(0)
    (copy / "data" / "2.csv").unlink()
    for name in ("root", "derived"):
        describe(copy, name, "First")
    ends(0, "plan", "-o", "both.json")
    ends(0, "apply", "both.json", "-y", "-s", "root")
    ends(5, "apply", "both.json", "-y")
    describe(copy, "root", "Second")
    ends(0, "apply", "-y")
    for name in ("root", "derived"):
        describe(copy, name, "Third")
    with held(copy, "derived"):
        ends(4, "apply", "-y", "--lock-timeout", "0")
        ends(9, "apply", "-y", "--lock-timeout", "0")
    block = next((copy / "chains" / "root" / "blocks").iterdir())
    block.write_bytes(block.read_bytes()[:-1] + b"?")
    ends(3, "verify", "--integrity", "root")
    table = (ROOT / "docs/reference/exit-codes.md").read_text("utf-8")
    assert seen == {int(code) for code in re.findall(r"^\| (\d+) \|", table, re.M)}


def test_an_interrupt_ends_a_wait_and_leaves_what_is_committed(copy: Path) -> None:
    (copy / "data" / "2.csv").unlink()
    describe(copy, "derived", "Words")
    runs = copy / ".odfbuild" / "runs"
    before = len(list(runs.glob("*/log.jsonl")))
    with held(copy, "derived"):
        process = subprocess.Popen(
            [BINARY, "apply", "-y", "--lock-timeout", "600"],
            cwd=copy,
            env=_PLAIN_ENVIRONMENT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        # The log of the run begins when the program listens to interrupts.
        while len(list(runs.glob("*/log.jsonl"))) == before:
            time.sleep(0.05)
        assert process.stderr is not None
        process.send_signal(signal.SIGINT)
        said = ""
        while "finishing running datasets" not in said:  # two signals at once would be one
            line = process.stderr.readline()
            assert line, said
            said += line
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "Traceback" not in said + rest


HOSTILE = "\x1b[31mred\x1b]0;title\x07 \u202egnp.exe \u009b2J \u200badmin"
SHOWN = "\\u001b[31mred\\u001b]0;title\\u0007 \\u202egnp.exe \\u009b2J \\u200badmin"


@pytest.fixture(scope="module")
def hostile(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with records, and a description, of somebody who means harm."""
    made = tmp_path_factory.mktemp("hostile") / "p"
    shutil.copytree(root, made)
    chain = Chain(Project(made).workspace(), "theirs", pa.field("text", pa.string()))
    chain.add([(0, HOSTILE)])
    chain.store.append(chain.store.head(), (SetInfo(description=HOSTILE),), NOW)
    return made


@pytest.mark.parametrize(
    "verb",
    [
        "tail theirs",
        "tail theirs --json",
        "log theirs",
        "log theirs --json",
        "import theirs",
        "show theirs",
        "sql --engine duckdb -- SELECT text FROM theirs",
        "sql --engine duckdb --format csv -- SELECT text FROM theirs",
        "sql --engine duckdb --format json -- SELECT text FROM theirs",
        "sql --engine duckdb --format jsonl -- SELECT text FROM theirs",
        "sql --engine duckdb -- SELECT * FROM theirs WHERE texd",
        f"tail {HOSTILE[:20]}",
        f"explain {HOSTILE[:20]}",
    ],
)
def test_a_terminal_obeys_nothing_that_stands_in_data(hostile: Path, verb: str) -> None:
    arguments = verb.split(" -- ")
    words = [*arguments[0].split(" "), *arguments[1:]]
    seen = on_terminal(hostile, *words, COLUMNS="400", NO_COLOR="1")
    assert seen.text
    assert visible(seen.text) == seen.text
    colored = on_terminal(hostile, *words, COLUMNS="400")
    assert visible(colored.text, colors=True) == colored.text
    if "json" in verb:
        lines = [line for line in seen.text.splitlines() if not line.startswith("Answered by")]
        assert any(HOSTILE in text for text in _texts(json.loads("\n".join(lines))))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)
    elif isinstance(value, str):
        yield value


def test_records_in_a_pipe_are_the_same_bytes(hostile: Path) -> None:
    query = "SELECT text FROM theirs"
    said = in_pipe(hostile, "sql", "--engine", "duckdb", "--format", "csv", query)
    assert HOSTILE in said.text
    assert "\x1b" not in in_pipe(hostile, "tail", "theirs").text
