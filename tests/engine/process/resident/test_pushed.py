"""`serve --ingest` with a resident engine: which process reads pushed records, and what if it ends.

The engines in them need no JVM, as those of `test_lifecycle`.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.apply.tiny import QUERY, Tiny
from tests.engine.process.resident.user import User, within
from tests.exchange.repositories.serve.test_pushed_records import (
    ACCESS,
    LINE,
    SECRET,
    project,
    send,
)
from tests.exchange.repositories.serving import Served, served

pytest.importorskip("pyspark", reason="the quick tests do without PySpark")


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    return project(tmp_path / "p")


@pytest.fixture
def user(tmp_path: Path) -> Iterator[User]:
    user = User(tmp_path / "home")
    user.folder.mkdir()
    yield user
    user.end()


@pytest.fixture
def server(user: User, tiny: Tiny) -> Iterator[Served]:
    env = {**user.env, "GITHUB_SECRET": SECRET, "ODFBUILD_RESIDENT": "auto"}
    with served(tiny.root, "--ingest", access=ACCESS, env=env) as running:
        yield running


def pushed(server: Served, id: int, key: str | None = None) -> None:
    said = send(server, LINE % id, key=key)
    assert said.status_code == 200, said.text


def readers(user: User) -> list[int]:
    """The processes that read pushed records, in the order in which they did."""
    return [int(pid) for pid, what, _ in user.said() if what == "ingest"]


def test_pushed_records_are_read_by_the_engine_that_commands_use(
    user: User, tiny: Tiny, server: Served
) -> None:
    pushed(server, 1)
    (found,) = user.engines(tiny)
    assert readers(user) == [found["pid"]]
    tiny.derive("derived", QUERY)
    user.run(tiny, "apply", "-y", ODFBUILD_RESIDENT="auto")
    assert user.workers() == {found["pid"]}
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda id: pushed(server, id, f"k{id}"), range(2, 10)))
    assert sorted(tiny.ids("root")) == [*range(1, 10)]
    assert server.stop() == 0
    assert [each["pid"] for each in user.engines(tiny)] == [found["pid"]], "it stays"


def test_a_server_outlives_engines_that_leave(user: User, tiny: Tiny, server: Served) -> None:
    pushed(server, 1)
    user.run(tiny, "engine", "stop")
    pushed(server, 2)
    (found,) = user.engines(tiny)
    assert readers(user)[1] == found["pid"] != readers(user)[0]
    os.kill(found["pid"], signal.SIGKILL)
    assert within(60, lambda: found["pid"] not in user.processes())
    pushed(server, 3)
    (next_one,) = user.engines(tiny)
    assert readers(user)[2] == next_one["pid"]
    assert tiny.ids("root") == [1, 2, 3]
