"""The commands that docs/ci.md calls safe, on projects of strangers, watched by strace.

They start nothing but Git, and that in the way that runs no program of a project, open nothing
outside of the project, reach nobody but the service that takes the comment, end with an error that
has a code, and take at most ten seconds of processor time and 1 GB of memory each.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from odfbuild.engine.spark.session.java import find_java
from tests.apply.tiny import NO_JVM, Tiny
from tests.cli.service import Service
from tests.cli.untrusted import test_untrusted_project as untrusted
from tests.cli.untrusted.test_commands_to_the_runner import OWN, commands
from tests.hostile.projects import (
    COSTLY,
    PROJECTS,
    TOKEN,
    Make,
    a_bare_repository_inside,
    clauses_that_double,
    definitions_that_are_links_to_hidden_files,
    hidden,
    nested_loops,
)

ROOT = Path(__file__).parents[2]
VERBS = (
    *("validate", "lint", "fmt --check", "git check"),
    *("plan", "plan --md", "plan --json", "plan --out plan.json", "ci comment plan.json"),
    "verify --integrity",
)
PRINTED_OTHERWISE = ("plan", "plan --md", "plan --json")
ASKS_THE_ENGINE = ("validate --engine", "verify")
SECONDS = 10
KILOBYTES = 1 << 20

# Each command runs in a process of its own, which is forked when all is imported.
RUN = """
import atexit, json, os, resource, sys
from odfbuild.cli.main import run
import odfbuild.survey.survey, odfbuild.sql.check.check, odfbuild.inspect.verify.check

for verb in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
        code = run(verb.split())
        sys.stdout.flush()
        # What it started ends, and counts.
        atexit._run_exitfuncs()
        os._exit(code)
    _, status, used = os.wait4(child, 0)
    taken = [verb, status, used.ru_utime + used.ru_stime, used.ru_maxrss]
    print("\\nTAKEN " + json.dumps(taken), flush=True)
"""


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small project with chains, in Git, and all caches: definitions are old enough for them."""
    tiny = Tiny.fresh(tmp_path_factory.mktemp("sound") / "project")
    an_hour_ago = time.time() - 3600
    for each in (tiny.root / "datasets").iterdir():
        os.utime(each, (an_hour_ago, an_hour_ago))
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
    Project(sys.argv[1]).plan()
"""


@pytest.fixture
def tiny(sound: Path, tmp_path: Path) -> Tiny:
    shutil.copytree(sound, tmp_path / "project", symlinks=True)
    made = Tiny(tmp_path / "project")
    (hidden(made) / "secret").write_text(TOKEN)
    return made


@dataclass(frozen=True)
class Seen:
    """What commands said and wrote, what they asked of the system, and what each took."""

    watched: untrusted.Watched
    wrote: str
    started: tuple[list[str], ...]
    taken: list[list]


def watched(tiny: Tiny, service: Service, verbs: Sequence[str] = VERBS, **more: str) -> Seen:
    """Run the commands one after the other, as in a job on a pull request."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    log = tiny.root.parent / "strace.log"
    outside = untrusted.temporary(tiny)
    (outside / "event.json").write_text('{"pull_request": {"number": 7}}')
    strace = ["strace", "-f", "-qq", "-y", "-s", "4096", "--seccomp-bpf", "-o", str(log)]
    calls = ["-e", "trace=execve,execveat,open,openat,openat2,connect"]
    done = subprocess.run(
        [*strace, *calls, sys.executable, "-c", RUN, *verbs],
        cwd=tiny.root,
        env={
            **os.environ,
            "NO_COLOR": "1",
            "PYTHONPATH": str(ROOT),
            "TMPDIR": str(outside),
            "TOKEN": TOKEN,
            "GITHUB_ACTIONS": "true",
            "GITHUB_API_URL": service.address,
            "GITHUB_EVENT_PATH": str(outside / "event.json"),
            "GITHUB_OUTPUT": str(outside / "outputs"),
            "GITHUB_REPOSITORY": "ann/flights",
            "GITHUB_STEP_SUMMARY": str(outside / "summary.md"),
            "GITHUB_TOKEN": TOKEN,
            "GITHUB_WORKSPACE": str(tiny.root),
            **more,
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
    files = (tiny.root / "plan.json", outside / "outputs", outside / "summary.md")
    wrote = [each.read_text() for each in files if each.is_file()]
    wrote += [json.dumps(each, ensure_ascii=False) for each in service.comments]
    calls = [line.partition("[")[2].partition("], 0x")[0] for line in lines if " execve(" in line]
    started = tuple([re.findall(r'"((?:[^"\\]|\\.)*)"', each) for each in calls])
    taken = [json.loads(each) for each in re.findall(r"^TAKEN (.*)$", done.stdout, re.M)]
    return Seen(found, "\n".join(wrote), started, taken)


def assert_kept_to_the_project(tiny: Tiny, service: Service, seen: Seen, *more: str) -> None:
    """They said, opened, started and reached nothing else; `more` are programs, or folders."""
    found = seen.watched
    git = shutil.which("git")
    assert git is not None
    assert TOKEN not in found.said + seen.wrote
    assert "E0999" not in found.said and "Traceback" not in found.said
    assert not (hidden(tiny) / "ran").exists()
    known = (*untrusted.known_files(tiny), str(ROOT), *more)
    foreign = [str(each) for each in found.opened if not str(each).startswith(known)]
    private = [str(each) for each in found.opened if each.is_relative_to(hidden(tiny))]
    assert (foreign, private) == ([], [])
    started = (os.path.realpath(sys.executable), os.path.realpath(git), *more)
    assert [each for each in found.programs if not each.startswith(started)] == []
    port = f"htons({service.server.server_port})"
    assert [line for line in found.connected if port not in line] == []
    # What Git starts itself has this from its environment.
    git_calls = [each for each in seen.started if each[0] == "git" and each[1:] != ["version"]]
    own = [each for each in git_calls if each[1:2] == ["--no-pager"]]
    # Where odfbuild.yaml itself is refused, nothing asks Git.
    assert own or not git_calls
    for each in own:
        assert {"-c", *GIT_STARTS_NOTHING} <= {*each}, each
        assert all(each[each.index(setting) - 1] == "-c" for setting in GIT_STARTS_NOTHING)
    assert [each for each in git_calls if each not in own and each[1] in OF_THE_USER] == []
    assert [line for line in commands(found.said) if not OWN.match(line)] == []


GIT_STARTS_NOTHING = (
    "safe.bareRepository=explicit",
    "core.fsmonitor=false",
    "log.showSignature=false",
    f"core.hooksPath={os.devnull}",
)
OF_THE_USER = ("status", "log", "diff", "notes", "show", "blame", "ls-tree", "ls-files", "rev-list")
"""Commands that only we start."""


@pytest.fixture
def service() -> Iterator[Service]:
    started = Service()
    yield started
    started.server.shutdown()
    started.server.server_close()


@pytest.mark.parametrize("make", PROJECTS, ids=lambda make: make.__name__)
def test_safe_commands_keep_to_the_project_and_to_its_bounds(
    tiny: Tiny, service: Service, make: Make
) -> None:
    make(tiny)
    # What plans costs the same, whatever it prints.
    verbs = [each for each in VERBS if make not in COSTLY or each not in PRINTED_OTHERWISE]
    seen = watched(tiny, service, verbs, **NO_JVM)
    taken = seen.taken
    assert [each[0] for each in taken] == verbs
    assert {each[0]: each[1:] for each in taken if os.WIFSIGNALED(each[1])} == {}
    assert {each[0]: each[2] for each in taken if each[2] > SECONDS} == {}
    assert {each[0]: each[3] for each in taken if each[3] > KILOBYTES} == {}
    assert_kept_to_the_project(tiny, service, seen)


def in_turns(makes: Sequence[Make]) -> list[object]:
    """Java is started twice for each of them: CI does some, `make test-slow` all."""
    first = {a_bare_repository_inside, definitions_that_are_links_to_hidden_files, nested_loops}
    return [
        pytest.param(make, id=make.__name__, marks=() if make in first else pytest.mark.slow)
        for make in makes
    ]


@pytest.mark.spark
@pytest.mark.parametrize("make", in_turns(PROJECTS))
def test_what_asks_the_engine_starts_java_and_talks_to_it_alone(
    tiny: Tiny, service: Service, make: Make
) -> None:
    make(tiny)
    (tiny.root / "datasets" / "more.yaml").write_text(
        (tiny.root / "datasets" / "derived.yaml").read_text().replace("name: derived", "name: more")
    )
    seen = watched(tiny, service, ("git check", *ASKS_THE_ENGINE), ODFBUILD_SANDBOX="required")
    assert [each[0] for each in seen.taken] == ["git check", *ASKS_THE_ENGINE]
    ours = replace(
        seen.watched,
        connected=tuple(
            line
            for line in seen.watched.connected
            if not re.search(r"127\.0\.0\.1|::1|AF_UNIX", line)
        ),
    )
    asked = map(shutil.which, ("bash", "setsid", "getconf", "rm"))
    shell = [os.path.realpath(each) for each in asked if each]
    java = str(find_java().home.resolve())
    assert_kept_to_the_project(tiny, service, replace(seen, watched=ours), java, *shell)


def test_what_unfolds_without_end_has_an_error_of_its_own(tiny: Tiny, service: Service) -> None:
    clauses_that_double(tiny)
    said = watched(tiny, service, **NO_JVM).watched.said
    assert "error[E0523]: the query is too complex" in said


def test_a_sound_project_passes_them(tiny: Tiny, service: Service) -> None:
    seen = watched(tiny, service, **NO_JVM)
    codes = [os.waitstatus_to_exitcode(each[1]) for each in seen.taken]
    assert codes == [0] * len(VERBS), seen.watched.said
    assert len(service.comments) == 1


def test_the_document_calls_no_other_command_safe() -> None:
    text = (ROOT / "docs" / "ci.md").read_text()
    table = text[text.index("| command | starts |") : text.index("What one file may ask for")]
    named = set(re.findall(r"`([a-z][a-z -]*)`", "".join(re.findall(r"^\|([^|]*)", table, re.M))))
    safe = {*VERBS, *ASKS_THE_ENGINE}
    assert named - {"storage", "--out", "--md", "--json"} == {
        each.removesuffix(" plan.json") for each in safe if not re.search("--(out|md|json)", each)
    }
