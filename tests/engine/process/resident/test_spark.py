"""A resident engine of Spark gives what an ordinary one gives, and may be killed at any moment."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.apply.tiny import Tiny
from tests.engine.process.resident.user import User, settings, within

pytestmark = pytest.mark.spark

DAILY = (
    "SELECT window.start AS event_time, COUNT(*) AS n, SUM(value) AS total FROM source "
    "GROUP BY window(event_time, '1 day')"
)
LATEST = (
    "SELECT max(event_time) AS event_time, id % 2 AS odd, SUM(value) AS total FROM source "
    "GROUP BY id % 2"
)
NOT_LOADED = ("pandas", "pyspark", "py4j", "git", "networkx", "sqlglot", "rich")
JVM, PARENT, BOTH = "the JVM", "its parent", "both"


@pytest.fixture
def user(tmp_path: Path) -> Iterator[User]:
    user = User(tmp_path / "home", plain=False)
    user.folder.mkdir()
    yield user
    user.end()


def loaded_by(tiny: Tiny, user: User, *arguments: str) -> str:
    """The libraries that a command loads which it does not need where an engine runs."""
    code = (
        f"import sys\nfrom odfbuild.cli.main import run\nassert run({[*arguments]!r}) == 0\n"
        f"print([each for each in {NOT_LOADED!r} if each in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tiny.root,
        env={**os.environ, **user.env},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()[-1]


def test_what_one_computes_the_other_verifies(
    near: Callable[[Path], Tiny], user: User, tmp_path: Path
) -> None:
    ordinary = near(tmp_path / "p")
    ordinary.derive("daily", DAILY)
    ordinary.derive("latest", LATEST)
    ordinary.apply()
    resident = Tiny(ordinary.root)
    pid = user.start(resident)

    def same(*arguments: str) -> str:
        mine = ordinary.run(*arguments)
        theirs = resident.run(*arguments, env=user.env)
        assert (mine.returncode, mine.stdout) == (theirs.returncode, theirs.stdout)
        assert mine.stderr.splitlines()[-3:] == theirs.stderr.splitlines()[-3:]
        return mine.stdout + mine.stderr

    assert "recomputed 3 steps" in same("verify")
    ordinary.arrive(2)
    user.run(resident, "apply", "-y")
    assert "recomputed 6 steps" in same("verify")
    assert "total" in same("sql", "SELECT * FROM latest ORDER BY odd")
    assert "E0501" in same("sql", "SELECT missing FROM latest")
    assert "root" in same("provenance", "daily", "0")
    assert [each["pid"] for each in user.engines(resident)] == [pid]
    assert loaded_by(resident, user, "sql", "SELECT * FROM latest") == "[]"
    text = (resident.root / "data" / "2.csv").read_text()
    (resident.root / "data" / "3.csv").write_text(text.replace("2024", "2025"))
    # The tree of a query that is not plain tells its mode; nothing else heavy is loaded.
    assert loaded_by(resident, user, "apply", "-y") == "['sqlglot']"
    scratch = resident.root / ".odfbuild" / "scratch"
    assert list(scratch.iterdir()) == []
    user.run(resident, "engine", "stop")
    assert within(60, lambda: user.processes() == {})


def apply_and_kill(user: User, tiny: Tiny, killed: str, seconds: float) -> set[int]:
    """Apply, and kill what runs by then; the processes that have to be gone after it."""
    command = tiny.start("apply", "-y", env=user.env)
    within(seconds, lambda: command.poll() is not None)
    running = user.processes()
    parents = {pid for pid, what in running.items() if "resident.server" in what}
    jvms = {pid for pid, what in running.items() if "PythonGatewayServer" in what}
    for pid in {JVM: jvms, PARENT: parents, BOTH: parents | jvms}[killed]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    out, err = command.communicate(timeout=300)
    assert command.returncode in (0, 1), out + err
    assert "Traceback" not in out + err
    # The JVM of a killed parent ends, whatever it was doing.
    return jvms if killed == JVM else parents | jvms


def are_gone(user: User, processes: set[int]) -> bool:
    return within(60, lambda: not processes & set(user.processes()))


def kill_and_go_on(user: User, tmp_path: Path, what: list[str], chance: random.Random) -> None:
    """Kill engines in the middle of applies, each time one record comes; nothing may be lost."""
    tiny = Tiny.fresh(tmp_path / "p")
    tiny.derive("latest", LATEST)
    settings(tiny, resident="auto")
    user.run(tiny, "apply", "-y")
    tiny.arrive(2)
    began = time.monotonic()
    user.run(tiny, "apply", "-y")
    usual = time.monotonic() - began
    for number, killed in enumerate(what, 10):
        lines = f"event_time,id,value\n2024-03-01 00:00:00,{number},1\n"
        (tiny.root / "data" / f"9{number}.csv").write_text(lines)
        victims = apply_and_kill(user, tiny, killed, usual * chance.uniform(0.1, 1.1))
        assert are_gone(user, victims), killed
        user.run(tiny, "apply", "-y")
        assert tiny.ids("root") == [1, 2, 3, 4, *range(10, number + 1)], killed
        assert tiny.ids("derived") == tiny.ids("root"), killed
    totals = user.run(tiny, "sql", "SELECT SUM(total) AS total FROM latest", "--json")
    assert f'"total": {10 + len(what)}' in totals
    user.run(tiny, "verify", "--integrity")
    user.run(tiny, "engine", "stop")
    assert within(60, lambda: user.processes() == {}), user.processes()


def test_an_engine_that_is_killed_in_an_apply_loses_and_doubles_nothing(
    user: User, tmp_path: Path
) -> None:
    kill_and_go_on(user, tmp_path, [JVM, PARENT], random.Random(1))


@pytest.mark.timeout(3600)
@pytest.mark.slow  # fifty kills, each of which costs the start of a JVM or two
def test_an_engine_may_be_killed_at_fifty_moments(user: User, tmp_path: Path) -> None:
    chance = random.Random(2)
    kill_and_go_on(user, tmp_path, [chance.choice([JVM, PARENT, BOTH]) for _ in range(50)], chance)
