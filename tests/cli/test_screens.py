"""What a person sees of an apply: recordings of terminals of 80 and 120 columns, and of a pipe.

The engine takes its time, as Spark does, and needs no JVM; the last test has Spark itself.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from codecs import getincrementaldecoder
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.apply.tiny import QUERY, Tiny
from tests.cli.real import BINARY, ENVIRONMENT, read_terminal
from tests.cli.screen import Screen
from tests.report.golden import assert_golden

ROOT = Path(__file__).parents[2]

SLOW = """
import sys, time
from odfbuild.cli.main import main
from odfbuild.engine.spark import start as module
from tests.apply.plain_engine import PlainEngine

class Slow(PlainEngine):
    def ingest(self, task):
        time.sleep(1)
        return super().ingest(task)

def start(*_):
    time.sleep(1)
    return Slow()

module.start_engine = start
main(sys.argv[1:])
"""
PROGRAM = (sys.executable, "-c", SLOW)
LONG = "a.dataset.with.a.name.that.takes.more.than.half.of.a.row"


@dataclass(frozen=True)
class Recording:
    """What came from a program, and how long after the answer to its question."""

    code: int
    text: str
    parts: Sequence[tuple[float, str]]

    def screen(self, columns: int) -> Screen:
        return Screen(columns).feed(self.text)


Keys = Callable[[str], str]
"""Tells from what was said so far what to type now."""


def record(
    program: Sequence[str | Path],
    folder: Path,
    *arguments: str,
    columns: int,
    keys: Keys = lambda said: "",
    pipe: str = "",
) -> Recording:
    """Run a program on a terminal of its own; with `pipe` its output goes through that command."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    env = {k: v for k, v in ENVIRONMENT.items() if k not in ("COLUMNS", "TERMINAL_WIDTH")}
    command = [*map(str, program), *arguments]
    if pipe:
        command = ["bash", "-c", f'"$@" | {pipe}', "bash", *command]
    process = subprocess.Popen(
        command,
        cwd=folder,
        env={**env, "PYTHONPATH": str(ROOT)},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=_take_terminal,  # noqa: PLW1509  # Ctrl-C must reach the program
    )
    os.close(theirs)
    text, parts, answered = "", [], 0.0
    decode = getincrementaldecoder("utf-8")().decode
    while part := read_terminal(ours):
        said = decode(part)  # a read may end within a sign
        text += said
        parts.append((time.monotonic() - answered if answered else -1.0, said))
        if typed := keys(text):
            os.write(ours, typed.encode())
            answered = answered or time.monotonic()
    os.close(ours)
    return Recording(process.wait(timeout=200), text, parts)


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Typing:
    """Types each text once, as soon as the pattern before it was said."""

    def __init__(self, *steps: tuple[str, str]) -> None:
        self._steps = list(steps)

    def __call__(self, said: str) -> str:
        if self._steps and re.search(self._steps[0][0], said):
            return self._steps.pop(0)[1]
        return ""


YES = (r"\[y/N\] ", "y\n")


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    made = Tiny.fresh(tmp_path / "p")
    made.derive(LONG, QUERY, source="derived")
    return made


def steady(text: str) -> str:
    """Without what differs from run to run."""
    text = re.sub(r"\d+\.\d s", "… s", text)
    return re.sub(r"(?m)^(Waiting up to .*process) .*$", r"\1 …", text)


def times_told(text: str, name: str) -> int:
    """How often a dataset has a line of its own after the question."""
    return len(re.findall(rf"(?m)^  (?:committed|stopped|unchanged)  +{re.escape(name)} ", text))


@pytest.mark.parametrize("columns", [80, 120])
def test_a_first_apply_on_a_terminal(tiny: Tiny, columns: int) -> None:
    seen = record(PROGRAM, tiny.root, "apply", columns=columns, keys=Typing(YES))
    assert seen.code == 0
    screen = seen.screen(columns)
    assert screen.broken == []
    assert [times_told(screen.text, name) for name in ("root", "derived", LONG)] == [1, 1, 1]
    assert_golden(f"terminal/first-apply-{columns}.txt", steady(screen.text))


@pytest.mark.parametrize("columns", [80, 120])
def test_bars_fit_into_a_row_and_break_neither_words_nor_times(tiny: Tiny, columns: int) -> None:
    seen = record(PROGRAM, tiny.root, "apply", "-y", columns=columns)
    shown = Screen(columns)
    times, names = set(), set()
    for _, part in seen.parts:
        shown.feed(part)
        times |= set(re.findall(r"\d:\d\d:\d\d\b", shown.text))
        names |= set(re.findall(r"(?m)^\S (\S+)", shown.text))
    assert shown.broken == []
    assert {"0:00:00", "0:00:01"} <= times
    assert {"root", "derived"} <= names


@pytest.mark.parametrize("columns", [80, 120])
def test_an_interrupted_apply_counts_and_names_what_did_not_begin(tiny: Tiny, columns: int) -> None:
    keys = Typing(YES, (r"(?s)Starting Spark.*\S root ", "\x03"))
    seen = record(PROGRAM, tiny.root, "apply", columns=columns, keys=keys)
    assert seen.code == 130
    screen = seen.screen(columns)
    assert screen.broken == []
    text = screen.text.replace("^C", "")
    assert [times_told(text, name) for name in ("root", "derived", LONG)] == [1, 1, 1]
    assert "1 committed" in text
    assert ", 2 stopped." in text
    assert_golden(f"terminal/interrupted-apply-{columns}.txt", steady(text))


def test_an_apply_that_is_stopped_at_once_names_what_did_not_end(tiny: Tiny) -> None:
    keys = Typing(
        (r"(?s)Starting Spark.*\S root ", "\x03"), (r"Press Ctrl-C again to stop at once\.", "\x03")
    )
    seen = record(PROGRAM, tiny.root, "apply", "-y", columns=120, keys=keys)
    assert seen.code == 130
    last = " ".join(seen.screen(120).text.replace("^C", "").split("Stopped: ")[1].split())
    assert last.startswith(f"3 of 3 datasets were not finished: 'root', 'derived', '{LONG}'. ")
    assert last.endswith("Committed datasets stay; run apply again to continue.")
    assert seen.text.count("\x1b[?25h") == 1  # the cursor is visible again


@pytest.mark.parametrize("columns", [80, 120])
def test_an_apply_without_a_terminal(tiny: Tiny, columns: int) -> None:
    done = subprocess.run(
        [*PROGRAM, "apply"],
        cwd=tiny.root,
        env={**ENVIRONMENT, "PYTHONPATH": str(ROOT), "COLUMNS": str(columns)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    )
    assert [times_told(done.stdout, name) for name in ("root", "derived", LONG)] == [1, 1, 1]
    assert_golden(f"terminal/apply-without-terminal-{columns}.txt", steady(done.stdout))


def test_through_tee_the_question_comes_after_the_plan_and_datasets_once(tiny: Tiny) -> None:
    keys = Typing(YES)
    seen = record(PROGRAM, tiny.root, "apply", columns=80, keys=keys, pipe="tee log.txt")
    assert seen.code == 0
    text = seen.screen(80).text
    assert text.index("Plan: 3 to create") < text.index("Do this? [y/N]")
    assert text.index("Do this? [y/N]") < text.index("  committed  root ")
    assert [times_told(text, name) for name in ("root", "derived", LONG)] == [1, 1, 1]
    assert "Do this? [y/N]" in (tiny.root / "log.txt").read_text()


def test_where_a_pipe_shows_nothing_the_question_is_asked_on_the_terminal(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    hurried = SLOW.replace(
        "main(sys", "from odfbuild.cli import console\nconsole._PATIENCE_SECONDS = 0.5\nmain(sys"
    )
    program = (sys.executable, "-c", hurried)
    keys = Typing((r"Waiting for an answer\. Do this\? \[y/N\] ", "n\n"))
    seen = record(program, tiny.root, "apply", columns=80, keys=keys, pipe="cat > log.txt")
    assert "Nothing was done." in seen.text


def test_results_in_a_file_are_whole_and_bars_stay_on_the_terminal(tiny: Tiny) -> None:
    seen = record(PROGRAM, tiny.root, "apply", "-y", columns=80, pipe="cat > log.txt")
    assert seen.code == 0
    log = (tiny.root / "log.txt").read_text()
    assert [times_told(log, name) for name in ("root", "derived", LONG)] == [1, 1, 1]
    assert "\x1b" not in log


@pytest.mark.spark
def test_spark_is_told_of_at_once_and_progress_is_shown(tiny: Tiny) -> None:
    seen = record((BINARY,), tiny.root, "apply", columns=80, keys=Typing(YES))
    assert seen.code == 0, seen.text
    after = [(seconds, part) for seconds, part in seen.parts if seconds >= 0]
    seconds, _ = next(each for each in after if "Starting Spark" in each[1])
    assert seconds < 0.3
    assert seen.screen(80).broken == []
