"""Resident engines come and go as asked: which process does the work, and what is left of it.

The engines in them need no JVM; `test_spark` has those of Spark.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from odfbuild.engine.process.resident.card import Card
from odfbuild.engine.process.resident.channel import Lost, ask
from tests.apply.tiny import QUERY, Tiny
from tests.engine.process.resident.user import ROOT, User, settings, within

pytest.importorskip("pyspark", reason="the quick tests do without PySpark")

NOBODY = 65534


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    return Tiny.fresh(tmp_path / "p")


@pytest.fixture
def user(tmp_path: Path) -> Iterator[User]:
    user = User(tmp_path / "home")
    user.folder.mkdir()
    yield user
    user.end()


def cards(user: User) -> list[Path]:
    return list((user.folder / "state" / "odfbuild" / "engines").glob("*.json"))


def card_of(user: User) -> Card:
    return Card(**json.loads(cards(user)[0].read_text()))


def test_no_engine_stays_unless_somebody_asks_for_it(user: User, tiny: Tiny) -> None:
    user.run(tiny, "apply", "-y")
    assert user.engines(tiny) == []
    assert user.processes() == {}


def test_commands_use_an_engine_that_was_started_until_it_is_stopped(
    user: User, tiny: Tiny
) -> None:
    pid = user.start(tiny)
    assert user.start(tiny) == pid
    user.run(tiny, "apply", "-y")
    assert user.workers() == {pid}
    (found,) = user.engines(tiny)
    assert (found["pid"], found["project"]) == (pid, str(tiny.root))
    assert found["served"] > 1
    assert f"process {pid}, since" in user.run(tiny, "engine", "status")
    folder = Path(card_of(user).socket).parent
    assert folder.stat().st_mode & 0o777 == 0o700
    assert f"Process {pid} no longer serves {tiny.root}." in user.run(tiny, "engine", "stop")
    assert "No resident engine is running." in user.run(tiny, "engine", "stop")
    assert within(30, lambda: user.processes() == {})
    assert not folder.exists()
    tiny.arrive(2)
    user.run(tiny, "apply", "-y")
    assert len(user.workers()) == 2


def test_files_are_read_together_by_the_engine_that_was_started(user: User, tiny: Tiny) -> None:
    definition = (tiny.root / "datasets/root.yaml").read_text()
    second = definition.replace("name: root", "name: second")
    (tiny.root / "datasets/second.yaml").write_text(second)
    pid = user.start(tiny)
    user.run(tiny, "apply", "-y")
    assert [str(pid), "together"] in [line[:2] for line in user.said()]
    assert tiny.ids("second") == [1, 2, 3]


def test_auto_starts_one_at_the_first_command_that_needs_it(user: User, tiny: Tiny) -> None:
    settings(tiny, resident="auto")
    user.run(tiny, "plan")
    assert user.engines(tiny) == []
    user.run(tiny, "apply", "-y")
    (found,) = user.engines(tiny)
    tiny.arrive(2)
    user.run(tiny, "apply", "-y")
    assert user.workers() == {found["pid"]}


def test_a_variable_asks_for_it_too(user: User, tiny: Tiny) -> None:
    user.run(tiny, "apply", "-y", ODFBUILD_RESIDENT="auto")
    assert user.workers() == {found["pid"] for found in user.engines(tiny)}


def test_of_two_starts_at_once_one_engine_comes(user: User, tiny: Tiny) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(lambda _: user.start(tiny), range(4)))
    assert len(found) == 1
    assert within(30, lambda: set(user.processes()) == found)


def test_an_engine_without_work_leaves(user: User, tiny: Tiny) -> None:
    pid = user.start(tiny, ODFBUILD_IDLE_MINUTES="0.05")
    assert pid in user.processes()
    assert within(60, lambda: user.processes() == {})
    assert cards(user) == []


def test_an_engine_leaves_when_its_project_is_removed(user: User, tiny: Tiny) -> None:
    user.start(tiny)
    shutil.rmtree(tiny.root)
    assert within(60, lambda: user.processes() == {})


def test_an_engine_that_was_killed_leaves_nothing_that_is_in_the_way(
    user: User, tiny: Tiny
) -> None:
    pid = user.start(tiny)
    folder = Path(card_of(user).socket).parent
    os.kill(pid, signal.SIGKILL)
    assert within(30, lambda: pid not in user.processes())
    assert user.engines(tiny) == []
    user.run(tiny, "apply", "-y")
    assert pid not in user.workers()
    assert user.start(tiny) != pid
    assert not folder.exists()
    tiny.arrive(2)
    user.run(tiny, "apply", "-y")
    assert {each["pid"] for each in user.engines(tiny)} < user.workers()


def test_an_engine_that_is_killed_in_a_step_loses_nothing_of_it(user: User, tiny: Tiny) -> None:
    pid = user.start(tiny, PYTHON_TEST_SECONDS="60")
    command = tiny.start("apply", "-y", env=user.env)
    assert within(60, lambda: user.workers() == {pid})
    os.kill(pid, signal.SIGKILL)
    out, err = command.communicate(timeout=60)
    assert command.returncode == 0, out + err
    assert len(user.workers()) == 2
    assert tiny.ids("derived") == [1, 2, 3]
    assert list((tiny.root / ".odfbuild" / "scratch").iterdir()) == []


def test_work_of_a_command_that_was_killed_is_cancelled(user: User, tiny: Tiny) -> None:
    pid = user.start(tiny, PYTHON_TEST_SECONDS="60")
    command = tiny.start("apply", "-y", env=user.env)
    assert within(60, lambda: user.workers() == {pid})
    command.kill()
    command.communicate()
    assert within(30, lambda: any(what == "cancelled" for _, what, _ in user.said()))
    assert within(30, lambda: user.engines(tiny)[0]["requests"] == 0)


def test_changed_settings_and_variables_of_java_lead_to_a_fresh_one(user: User, tiny: Tiny) -> None:
    found = [user.start(tiny)]
    settings(tiny, memory="900m")
    found.append(user.start(tiny))
    found.append(user.start(tiny, JAVA_TOOL_OPTIONS="-Dx=1"))
    assert len(set(found)) == 3
    assert within(30, lambda: set(user.processes()) == {found[-1]})


def test_each_command_has_the_limit_of_its_own_environment(user: User, tiny: Tiny) -> None:
    pid = user.start(tiny)
    user.run(tiny, "apply", "-y", ODFBUILD_STEP_SECONDS="77")
    tiny.arrive(2)
    user.run(tiny, "apply", "-y")
    done = [each for each in user.said() if each[1] == "transform"]
    assert done == [[str(pid), "transform", "77.0"], [str(pid), "transform", "None"]]


def test_each_project_has_an_engine_of_its_own_which_its_branches_share(
    user: User, tiny: Tiny
) -> None:
    other = Tiny.fresh(tiny.root.with_name("other"))
    settings(tiny, resident="auto")
    settings(other, resident="auto")
    for project in (tiny, other):
        user.run(project, "apply", "-y")
    tiny.derive("another", QUERY)
    user.run(tiny, "apply", "-y", "--branch", "b")
    found = user.engines(tiny)
    assert [each["project"] for each in found] == sorted([str(other.root), str(tiny.root)])
    assert user.workers() == {each["pid"] for each in found}
    assert str(other.root) in user.run(other, "engine", "stop")
    assert len(user.engines(tiny)) == 1


def test_two_releases_of_odfbuild_have_engines_side_by_side(user: User, tiny: Tiny) -> None:
    newer = user.folder / "newer"
    shutil.copytree(ROOT / "odfbuild", newer / "odfbuild")
    (newer / "odfbuild" / "version.py").write_text('__version__ = "99.0"\n')
    path = f"{user.folder / 'code'}{os.pathsep}{newer}{os.pathsep}{ROOT}"
    found = {user.start(tiny), user.start(tiny, PYTHONPATH=path)}
    assert {each["pid"] for each in user.engines(tiny)} == found
    assert {each["odfbuild"] for each in user.engines(tiny)} >= {"99.0"}
    user.run(tiny, "engine", "stop")
    assert within(30, lambda: user.processes() == {})


def test_changed_code_of_the_same_release_leads_to_a_fresh_one(user: User, tiny: Tiny) -> None:
    changed = user.folder / "changed"
    shutil.copytree(ROOT / "odfbuild", changed / "odfbuild")
    path = f"{user.folder / 'code'}{os.pathsep}{changed}{os.pathsep}{ROOT}"
    first = user.start(tiny, PYTHONPATH=path)
    os.utime(changed / "odfbuild" / "version.py", (1, 1))
    second = user.start(tiny, PYTHONPATH=path)
    assert first != second
    assert [each["pid"] for each in user.engines(tiny)] == [second]


@pytest.mark.parametrize(
    ("code", "env"),
    [
        ("E1510", {"ODFBUILD_SPARK_MASTER": "spark://127.0.0.1:1"}),
        ("E1511", {"XDG_STATE_HOME": "/dev/null"}),
        ("E1512", {"PYTHON_TEST_END": "1"}),
        ("E0905", {"ODFBUILD_RESIDENT": "always"}),
        ("E0544", {"ODFBUILD_IDLE_MINUTES": "0"}),
    ],
)
def test_what_stands_in_the_way_of_a_start_is_an_error(
    user: User, tiny: Tiny, code: str, env: dict[str, str]
) -> None:
    done = tiny.run("engine", "start", env={**user.env, **env})
    assert f"error[{code}]" in done.stderr, done.stderr
    assert "help: " in done.stderr
    assert code != "E1512" or "told to end" in done.stderr
    assert done.returncode == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_another_user_cannot_ask_an_engine_even_with_its_folder_open(
    user: User, tiny: Tiny
) -> None:
    user.start(tiny)
    card = card_of(user)
    assert as_nobody(card) == "PermissionError"
    Path(card.socket).parent.chmod(0o755)
    Path(card.socket).chmod(0o777)
    assert as_nobody(card) in {"closed", "ConnectionResetError", "PermissionError"}
    with pytest.raises(Lost, match="open to others"):
        ask(card, "status")


def as_nobody(card: Card) -> str:
    """What a process of another user gets when it asks for the state of an engine."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connection.settimeout(30)
                connection.connect(card.socket)
                got = "answered" if connection.recv(1) else "closed"
        except BaseException as error:
            got = type(error).__name__
        os.write(writing, got.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        got = pipe.read()
    os.waitpid(child, 0)
    return got
