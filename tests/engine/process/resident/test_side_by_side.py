"""Engines of two projects, two releases and two users run side by side, and are killed alone."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.apply.tiny import Tiny
from tests.engine.process.resident.user import ROOT, User, settings, within

pytest.importorskip("pyspark", reason="the quick tests do without PySpark")

NOBODY = 65534
LIBRARIES = [each for each in sys.path if each.endswith("site-packages")]


@dataclass(frozen=True)
class Side:
    """A project with a user and a release of its own."""

    tiny: Tiny
    user: User
    uid: int = 0
    env: dict[str, str] = field(default_factory=dict)
    python: str = sys.executable

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Begin a command as its user."""
        return subprocess.Popen(
            [self.python, "-c", "from odfbuild.cli.main import main; main()", *arguments],
            cwd=self.tiny.root,
            env={**os.environ, **self.user.env, **self.env},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            user=self.uid or None,
            group=self.uid or None,
            extra_groups=[] if self.uid else None,
        )

    def run(self, *arguments: str) -> str:
        """What a command prints, which must succeed."""
        command = self.start(*arguments)
        out, err = command.communicate(timeout=120)
        assert command.returncode == 0, out + err
        return out

    def engine(self) -> int:
        """The process of the engine that serves its project."""
        found = json.loads(self.run("engine", "status", "--json"))
        [pid] = [each["pid"] for each in found if each["project"] == str(self.tiny.root)]
        return int(pid)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user gets into."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def sides(open_folder: Path) -> Iterator[list[Side]]:
    """Two projects of one user, one of them with another release, too; one of another user."""
    users = [User(open_folder / "one"), User(open_folder / "two")]
    for user in users:
        user.folder.mkdir()
    newer = open_folder / "newer"
    shutil.copytree(ROOT / "odfbuild", newer / "odfbuild")
    (newer / "odfbuild" / "version.py").write_text('__version__ = "99.0"\n')
    release = os.pathsep.join([str(users[0].folder / "code"), str(newer), str(ROOT)])
    made = [
        Side(Tiny.fresh(open_folder / "p"), users[0]),
        Side(Tiny.fresh(open_folder / "q"), users[0]),
        Side(Tiny.fresh(open_folder / "r"), users[0], env={"PYTHONPATH": release}),
    ]
    python = _python_of_nobody() if os.geteuid() == 0 else None
    if python is not None:
        env = {
            "XDG_CACHE_HOME": str(users[1].folder / "cache"),
            "PYTHONPATH": os.pathsep.join([users[1].env["PYTHONPATH"], *LIBRARIES]),
        }
        made.append(Side(Tiny.fresh(open_folder / "s"), users[1], NOBODY, env, python))
    for side in made:
        settings(side.tiny, resident="auto")
    if python is not None:
        for each in (users[1].folder, made[-1].tiny.root):
            _give(each)
    yield made
    for user in users:
        user.end()


def _python_of_nobody() -> str | None:
    """A Python of this version that another user reaches, with the libraries of this one."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *LIBRARIES])}
    code = f"import sys, pyspark, pyarrow; assert sys.version_info[:2] == {sys.version_info[:2]}"
    for python in (sys.executable, "/usr/bin/python3"):
        with contextlib.suppress(OSError):
            command = [python, "-c", code]
            done = subprocess.run(
                command,
                cwd="/",
                env=env,
                capture_output=True,
                user=NOBODY,
                group=NOBODY,
                extra_groups=[],
                check=False,
            )
            if done.returncode == 0:
                return python
    return None


def _give(folder: Path) -> None:
    for each in (folder, *folder.rglob("*")):
        os.chown(each, NOBODY, NOBODY)


def engines(sides: Sequence[Side]) -> list[int]:
    return [side.engine() for side in sides]


def test_an_engine_that_is_killed_beside_others_takes_nothing_of_them(sides: list[Side]) -> None:
    chance = random.Random(3)
    for side in sides:
        side.run("apply", "-y")
    serving = engines(sides)
    assert len({*serving}) == len(sides)
    assert [Path(f"/proc/{pid}").stat().st_uid for pid in serving] == [side.uid for side in sides]
    for number in range(4, 10):
        for side in sides:
            lines = f"event_time,id,value\n2024-03-01 00:00:00,{number},1\n"
            (side.tiny.root / "data" / f"9{number}.csv").write_text(lines)
        commands = [side.start("apply", "-y") for side in sides]
        killed = chance.randrange(len(sides))
        within(chance.uniform(0, 1), lambda: False)
        os.kill(serving[killed], signal.SIGKILL)
        for command in commands:
            out, err = command.communicate(timeout=120)
            assert command.returncode == 0, out + err
        sides[killed].run("apply", "-y")
        sides[killed].run("engine", "start")
        for side in sides:
            assert side.tiny.ids("root") == [1, 2, 3, *range(4, number + 1)]
            assert side.tiny.ids("derived") == side.tiny.ids("root")
        before, serving = serving, engines(sides)
        changed = [old != new for old, new in zip(before, serving, strict=True)]
        assert changed == [place == killed for place in range(len(sides))]
    for side in sides:
        side.run("engine", "stop")
    assert within(60, lambda: not any(side.user.processes() for side in sides))


def test_another_user_sees_and_stops_only_engines_of_their_own(sides: list[Side]) -> None:
    if all(side.uid == 0 for side in sides):
        pytest.skip("only root can be another user, who has to reach this Python")
    mine, theirs = sides[0], sides[-1]
    for side in (mine, theirs):
        side.run("engine", "start")
    for side, other in ((mine, theirs), (theirs, mine)):
        said = side.run("engine", "status")
        assert str(side.tiny.root) in said
        assert str(other.tiny.root) not in said
    serving = mine.engine()
    assert str(theirs.tiny.root) in theirs.run("engine", "stop")
    assert within(30, lambda: theirs.user.processes() == {})
    assert mine.engine() == serving
