"""Ctrl-C while a source is at work: the first one waits for it, the second does not."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.apply.test_polling import Source, define
from tests.apply.tiny import NO_JVM


def is_alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False


def awaited(condition, what: str) -> None:
    for _ in range(400):
        if condition():
            return
        time.sleep(0.05)
    pytest.fail(f"{what} did not happen")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_program_that_would_run_for_hours_ends_at_the_second_interrupt_or_when_told(
    tmp_path: Path, number: signal.Signals
) -> None:
    root = tmp_path / "p"
    (root / "in").mkdir(parents=True)
    (root / "in" / "1.csv").write_text("event_time,id,value\n")
    fetch = {"kind": "FilesGlob", "path": "in/*.csv"}
    tiny = define(root, Source(fetch, lambda ids: None, lambda: 0))
    definition = root / "datasets" / "root.yaml"
    document = json.loads(definition.read_text())
    script = "echo $$ > pid.new; mv pid.new pid; exec sleep 3600"
    pipe = {"kind": "Pipe", "command": ["sh", "-c", script]}
    document["content"]["metadata"][0]["prepare"] = [pipe]
    definition.write_text(json.dumps(document))

    process = tiny.start("apply", "-y", env=NO_JVM)
    awaited((root / "pid").exists, "the pipe")
    pid = int((root / "pid").read_text())
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    assert process.poll() is None
    assert is_alive(pid)
    process.send_signal(number)
    out, err = process.communicate(timeout=10)
    assert process.returncode == 130, out + err
    assert "finishing what has begun" in err
    awaited(lambda: not is_alive(pid), "the end of the pipe")
    assert "root" not in tiny.workspace().projections()


def test_ctrl_c_while_the_program_is_being_loaded_is_no_traceback() -> None:
    interrupted = (
        "import runpy, sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, *more):\n"
        "        if name == 'odfbuild.cli.main': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Finder())\n"
        "runpy.run_module('odfbuild', run_name='__main__')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", interrupted], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
