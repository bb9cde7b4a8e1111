"""Ctrl-C while a source is at work: the first one waits for it, the second does not."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.apply.ingest.test_polling import Source, define
from tests.apply.tiny import NO_JVM


def is_alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False


def awaited(condition, what: str) -> None:
    for _ in range(2400):
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

    process = tiny.start("apply", "-y", env={**NO_JVM, "ODFBUILD_PIPES": "sh"})
    awaited((root / "pid").exists, "the pipe")
    pid = int((root / "pid").read_text())
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    said = ""
    while "finishing running datasets" not in said:  # two signals at once would be one
        line = process.stderr.readline()
        assert line, said
        said += line
    assert process.poll() is None
    assert is_alive(pid)
    process.send_signal(number)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, out + said + err
    awaited(lambda: not is_alive(pid), "the end of the pipe")
    assert "root" not in tiny.workspace().projections()


_INTERRUPTED_AT_A_START = """
import os, subprocess, sys, threading, time
from pathlib import Path
from odfbuild.ingest import process

begun = threading.Event()

class Slow(subprocess.Popen):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        print(self.pid, flush=True)
        begun.set()
        time.sleep(1)  # as when others have the processor

subprocess.Popen = Slow
here = Path(sys.argv[1])
more = {"folder": here, "seconds": 3600, "most_bytes": 1}
work = lambda: process.run_to_file(["sleep", "3600"], here / "out", **more)
threading.Thread(target=work, daemon=True).start()
begun.wait()
process.end_all()
os._exit(0)
"""


def test_a_program_that_has_just_begun_when_all_are_ended_is_ended_too(tmp_path: Path) -> None:
    script = [sys.executable, "-c", _INTERRUPTED_AT_A_START, str(tmp_path)]
    done = subprocess.run(script, capture_output=True, text=True, check=True)
    pid = int(done.stdout)
    awaited(lambda: not is_alive(pid), "the end of the program")


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
