"""`odfbuild engine serve` as a program: it listens at once, and ends in time."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import grpc
import pytest

from tests.engine.inputs import sql
from tests.engine.process.coordinator import Chain, Line
from tests.engine.process.test_serve_requests import COLUMNS, TENFOLD
from tests.engine.stepwise import Source

ODFBUILD = Path(sys.executable).with_name("odfbuild")


@contextmanager
def served(*options: str, **environment: str) -> Iterator[tuple[subprocess.Popen[str], float]]:
    """A running server, and when it was started."""
    began = time.monotonic()
    process = subprocess.Popen(
        [ODFBUILD, "engine", "serve", *options],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    try:
        yield process, began
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder with a path that a socket can have."""
    with tempfile.TemporaryDirectory(prefix="odf-", dir="/tmp") as name:
        yield Path(name)


def line_of(process: subprocess.Popen[str]) -> dict[str, str]:
    assert process.stdout is not None
    found: dict[str, str] = json.loads(process.stdout.readline())
    return found


def java_of(pid: int) -> list[int]:
    """Processes that run Java for a server; the launcher of its fences becomes Java."""
    found = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        found += [int(each) for each in children.read_text().split()]
    return found


def ended(pids: list[int]) -> bool:
    return not any(Path(f"/proc/{each}").exists() for each in pids)


def stops(process: subprocess.Popen[str]) -> None:
    """SIGTERM ends it and its Java."""
    java = java_of(process.pid)
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    while not ended(java) and time.monotonic() - began < 60:
        time.sleep(0.05)
    assert time.monotonic() - began < 60


def test_it_listens_before_spark_starts_and_speaks_first(short: Path) -> None:
    with served("--listen", "127.0.0.1:0") as (process, began):
        told = line_of(process)
        assert told["msg"].startswith("listens on 127.0.0.1:")
        assert {"process", "stream", "level", "time"} <= told.keys()
        host, _, port = told["msg"].removeprefix("listens on ").rpartition(":")
        # Half of it is the start of Python on a busy machine.
        assert time.monotonic() - began < 60
        with socket.create_connection((host, int(port)), timeout=60) as idle:
            assert idle.recv(1)
        stops(process)  # while Spark starts


def test_the_socket_of_the_environment_is_open_to_who_may_enter_its_folder(short: Path) -> None:
    path = short / "engine"
    with served(ODF_ENGINE_SOCKET=str(path)) as (process, _):
        assert line_of(process)["msg"] == f"listens on unix:{path}"
        assert stat.S_IMODE(path.stat().st_mode) == 0o666
        stops(process)
        assert not path.exists()


def refused(*options: str) -> str:
    done = subprocess.run(
        [ODFBUILD, "engine", "serve", *options], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "E1401" in done.stderr
    return done.stderr


def test_an_address_that_cannot_be_used_is_refused_with_the_way_out(short: Path) -> None:
    assert "at most 107 characters" in refused("--listen", f"unix:{short}/{'x' * 100}")
    assert "its folder does not exist" in refused("--listen", f"unix:{short}/nowhere/socket")
    (short / "file").touch()
    assert "there is a file of that name" in refused("--listen", f"unix:{short}/file")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert "--listen" in refused("--listen", f"127.0.0.1:{port}")
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(short / "used"))
        other.listen()
        assert "another program listens there" in refused("--listen", f"unix:{short}/used")


@pytest.mark.spark
def test_it_computes_behind_its_fences_and_ends_in_the_middle_of_a_step(short: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(str(short / "engine"))
    sales = Source(short, "sales", COLUMNS)
    sales.add([("10:00", 1, 10)])
    address = f"unix:{short}/engine"
    with served("--listen", address) as (process, _):
        assert line_of(process)["msg"] == f"listens on {address}"
        line = Line(address)
        told = threading.Thread(target=lambda: lines.extend(process.stdout or ()))
        lines: list[str] = []
        told.start()
        assert Chain(line, short / "a", sql(TENFOLD), [sales]).step() == [(0, "10:00", 1, 100)]
        long = "SELECT event_time, COUNT(*) AS n FROM sales, range(0, 100000000000) GROUP BY 1"
        chain = Chain(line, short / "b", sql(long), [sales])
        asking = threading.Thread(target=asks_in_vain, args=(chain,))
        asking.start()
        time.sleep(1)
        stops(process)
        asking.join(60)
        told.join(60)
    # What Java prints, which is never quite nothing, is told in lines of its own.
    assert {json.loads(each)["process"] for each in lines} == {"odfbuild", "spark"}


def asks_in_vain(chain: Chain) -> None:
    with suppress(grpc.RpcError, AssertionError):
        chain.step()
