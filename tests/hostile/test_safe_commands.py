"""The commands that docs/ci.md calls safe, on projects of strangers, watched by strace.

They start nothing but Git, open nothing outside of the project, reach nobody, end with an error
that has a code, and take at most ten seconds of processor time and 1 GB of memory each.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.apply.tiny import NO_JVM, Tiny
from tests.cli.untrusted import test_untrusted_project as untrusted
from tests.hostile.projects import PROJECTS, TOKEN, Make, clauses_that_double, hidden

ROOT = Path(__file__).parents[2]
VERBS = (
    *("validate", "lint", "fmt --check", "git check"),
    *("plan", "plan --md", "plan --json", "plan --out plan.json"),
    "verify --integrity",
)
SECONDS = 10
KILOBYTES = 1 << 20

# Each command runs in a process of its own, which is forked when all is imported.
RUN = """
import json, os, resource, sys
from odfbuild.cli.main import run
import odfbuild.survey.survey, odfbuild.plan.queries.check, odfbuild.verify.check

for verb in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
        code = run(verb.split())
        sys.stdout.flush()
        os._exit(code)
    _, status, used = os.wait4(child, 0)
    taken = [verb, status, used.ru_utime + used.ru_stime, used.ru_maxrss]
    print("\\nTAKEN " + json.dumps(taken), flush=True)
"""


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small project with chains, in Git."""
    tiny = Tiny.fresh(tmp_path_factory.mktemp("sound") / "project")
    subprocess.run(["git", "init", "-q", tiny.root], check=True)
    done = subprocess.run(
        [sys.executable, "-c", _APPLY, str(tiny.root)],
        env={**os.environ, **NO_JVM, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return tiny.root


_APPLY = """
import sys
from odfbuild import Project
import pytest
from tests.apply.in_process import share
from tests.apply.plain_engine import PlainEngine
with pytest.MonkeyPatch.context() as patch:
    share(PlainEngine(), patch)
    project = Project(sys.argv[1])
    project.apply(project.plan())
"""


@pytest.fixture
def tiny(sound: Path, tmp_path: Path) -> Tiny:
    shutil.copytree(sound, tmp_path / "project", symlinks=True)
    made = Tiny(tmp_path / "project")
    (hidden(made) / "secret").write_text(TOKEN)
    return made


def watched(tiny: Tiny) -> tuple[untrusted.Watched, list[list]]:
    """What the commands said and asked of the system, and what each took."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    log = tiny.root.parent / "strace.log"
    strace = ["strace", "-f", "-qq", "-y", "-s", "4096", "--seccomp-bpf", "-o", str(log)]
    done = subprocess.run(
        [
            *strace,
            "-e",
            "trace=execve,execveat,open,openat,openat2,connect",
            sys.executable,
            "-c",
            RUN,
            *VERBS,
        ],
        cwd=tiny.root,
        env={
            **os.environ,
            **NO_JVM,
            "NO_COLOR": "1",
            "PYTHONPATH": str(ROOT),
            "TMPDIR": str(untrusted.temporary(tiny)),
            "TOKEN": TOKEN,
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = log.read_text(errors="replace").splitlines()
    found = untrusted.Watched(
        said=done.stdout + done.stderr,
        opened=frozenset(untrusted._opened(lines)),
        programs=frozenset(untrusted._programs(lines)),
        connected=tuple(line for line in lines if " connect(" in line and "nscd" not in line),
    )
    return found, [json.loads(each) for each in re.findall(r"^TAKEN (.*)$", done.stdout, re.M)]


@pytest.mark.parametrize("make", PROJECTS, ids=lambda make: make.__name__)
def test_safe_commands_keep_to_the_project_and_to_its_bounds(tiny: Tiny, make: Make) -> None:
    make(tiny)
    found, taken = watched(tiny)
    git = shutil.which("git")
    assert git is not None
    assert [each[0] for each in taken] == [*VERBS]
    assert {each[0]: each[1:] for each in taken if os.WIFSIGNALED(each[1])} == {}
    assert {each[0]: each[2] for each in taken if each[2] > SECONDS} == {}
    assert {each[0]: each[3] for each in taken if each[3] > KILOBYTES} == {}
    assert TOKEN not in found.said
    assert "E0999" not in found.said and "Traceback" not in found.said
    assert not (hidden(tiny) / "ran").exists()
    known = (*untrusted.known_files(tiny), str(ROOT))
    foreign = [str(each) for each in found.opened if not str(each).startswith(known)]
    private = [str(each) for each in found.opened if each.is_relative_to(hidden(tiny))]
    assert (foreign, private) == ([], [])
    started = {os.path.realpath(sys.executable), os.path.realpath(git)}
    assert found.programs - started == set()
    assert found.connected == ()


def test_what_unfolds_without_end_has_an_error_of_its_own(tiny: Tiny) -> None:
    clauses_that_double(tiny)
    found, _ = watched(tiny)
    assert "error[E0523]: the query is too complex" in found.said


def test_a_sound_project_passes_them(tiny: Tiny) -> None:
    found, taken = watched(tiny)
    assert [os.waitstatus_to_exitcode(each[1]) for each in taken] == [0] * len(VERBS), found.said
