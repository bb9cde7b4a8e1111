"""Through a server of Spark Connect odfbuild gives what it gives alone, or says why it cannot."""

from __future__ import annotations

import copy
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors.exceptions.connect import ArithmeticException as ConnectArithmetic
from pyspark.errors.exceptions.connect import UnknownException
from pyspark.sql.connect.client.retries import DefaultPolicy

from odfbuild.engine import shutdown as elsewhere
from odfbuild.engine.settings import EngineSettings, Sandbox
from odfbuild.engine.spark.connect import lost, server
from odfbuild.engine.spark.connect import remote as remote_module
from odfbuild.engine.spark.connect.remote import Remote
from odfbuild.engine.spark.engine import SparkEngine
from odfbuild.engine.spark.results.executor import LocalExecutor
from odfbuild.engine.spark.session import sandbox
from odfbuild.engine.spark.session.recovery import Recovery, why_lost
from odfbuild.errors import EngineProblem, OdfbuildError, QueryError
from odfbuild.sql.mode import Mode
from tests.apply.in_process import Program, share
from tests.apply.tiny import Tiny
from tests.engine.everywhere import by_increments, hashes
from tests.engine.heavy_program import HEAVY
from tests.engine.inputs import read, rows, slices, sql, task
from tests.engine.modes.test_temporal import STANDARD, temporal
from tests.engine.queries import ALL, CHANGELOG, MAP, STREAM
from tests.engine.session.test_limits import ENDLESS
from tests.engine.stepwise import Derived, Source
from tests.engine.test_provenance import EVERY_KIND, asked, people_in, trades_in
from tests.servers.connect import connect_server

pytestmark = pytest.mark.spark

SESSIONS = sql(
    "SELECT session_window.start AS event_time, city, COUNT(*) AS n FROM cities"
    " GROUP BY session_window(event_time, '20 minutes'), city"
)
OTHERWISE = {"spark.sql.ansi.enabled": "false", "spark.sql.legacy.sizeOfNull": "true"}
"""Settings of the server with which queries would mean something else."""


@dataclass(frozen=True)
class ConnectExecutor:
    """An engine that plans in the session of all tests and computes on a server."""

    engine: SparkEngine
    remote: Remote
    process: subprocess.Popen[bytes]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shared")


@contextmanager
def on_a_server(spark_engine: SparkEngine, shared: Path, folder: Path) -> Iterator[ConnectExecutor]:
    """An engine on a new server."""
    # Cancelled tasks hold two cores for minutes.
    settings = {**OTHERWISE, "spark.master": "local[4]"}
    with connect_server(folder, settings) as (master, process):
        session = copy.copy(spark_engine._session)
        session.settings = replace(session.settings, master=master)
        session.remote = Remote(session.settings, session.spark, shared)
        yield ConnectExecutor(SparkEngine(Recovery(session)), session.remote, process)
        session.remote.stop()


@pytest.fixture(scope="module")
def there(
    spark_engine: SparkEngine, shared: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ConnectExecutor]:
    with on_a_server(spark_engine, shared, tmp_path_factory.mktemp("server")) as there:
        yield there


def let_nothing_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail where a result is computed beside odfbuild."""

    def refuse(*_: object) -> None:
        raise AssertionError("it was computed here")

    monkeypatch.setattr(LocalExecutor, "write", refuse)


def test_a_server_gives_the_hashes_of_one_jvm(
    there: ConnectExecutor,
    spark_engine: SparkEngine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def appended(engine: SparkEngine, folder: Path) -> list[list[str]]:
        queries = enumerate((MAP[2], STREAM[1], CHANGELOG[1]))
        return [by_increments(engine, q, folder / str(n), [3]).hashes for n, q in queries]

    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    expected = appended(spark_engine, tmp_path / "here")
    let_nothing_stay(monkeypatch)
    assert appended(there.engine, tmp_path / "there") == expected


@pytest.mark.slow
def test_a_server_gives_the_hashes_of_one_jvm_for_every_query(
    there: ConnectExecutor, spark_engine: SparkEngine
) -> None:
    found, expected = hashes(there.engine, ALL, 3, 2), hashes(spark_engine, ALL, 3, 2)
    assert [q for q, a, b in zip(ALL, found, expected, strict=True) if a != b] == []


def test_a_temporal_join_is_computed_by_the_server(
    there: ConnectExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_nothing_stay(monkeypatch)
    trades = Source(
        tmp_path, "trades", [pa.field("symbol", pa.string()), pa.field("quantity", pa.int64())]
    )
    prices = Source(
        tmp_path, "prices", [pa.field("symbol", pa.string()), pa.field("price", pa.int64())]
    )
    value = Derived(there.engine, tmp_path / "value", temporal(STANDARD), [trades, prices])
    prices.add([("10:00", "A", 5), ("10:30", "A", 6)])
    trades.add([("09:59", "A", 1), ("10:40", "A", 10)])
    assert value.step() == [(0, "09:59", "A", None), (0, "10:40", "A", 60)]


@pytest.mark.parametrize(
    ("query", "mode"),
    [
        pytest.param(EVERY_KIND, Mode.CHANGELOG, marks=pytest.mark.slow),
        (
            "SELECT MAX(t.event_time) AS event_time, t.who, MAX(p.name) AS name, SUM(t.n) AS n"
            " FROM trades t LEFT JOIN people p ON p.who = t.who GROUP BY t.who",
            Mode.CHANGELOG,
        ),
        (
            "SELECT window.start AS event_time, who, COUNT(*) AS n FROM trades"
            " GROUP BY window(event_time, '2 minutes'), who",
            Mode.STREAM,
        ),
        (
            "SELECT event_time, who FROM trades WHERE n > 5 UNION ALL"
            " SELECT event_time, name FROM people",
            Mode.MAP,
        ),
    ],
)
def test_the_server_finds_where_records_come_from(
    there: ConnectExecutor,
    spark_engine: SparkEngine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    query: str,
    mode: Mode,
) -> None:
    trades, people = trades_in(tmp_path), people_in(tmp_path)
    inputs = [each for each in (trades, people) if each.alias in query]
    derived = Derived(spark_engine, tmp_path / "derived", sql(query), inputs)
    derived.step()
    trades.add([("10:04", "A", 1), ("10:05", "B", 2)])
    derived.step()
    assert derived.mode is mode
    expected = asked(derived)
    assert any(origin.records for origin in expected.values())
    let_nothing_stay(monkeypatch)
    derived.engine = there.engine
    assert asked(derived) == expected


def test_a_project_is_built_on_the_server_and_verified_without_it(
    there: ConnectExecutor,
    spark_engine: SparkEngine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    tiny = Tiny.fresh(tmp_path / "tiny")
    program = Program(tiny.root, monkeypatch, capsys)
    with monkeypatch.context() as patch:
        share(there.engine, patch)
        let_nothing_stay(patch)
        assert "2 committed" in program.apply().out
        tiny.arrive(2)
        assert "2 committed" in program.apply().out
    share(spark_engine, monkeypatch)
    assert "all records are identical" in program.ok("verify").out


def test_what_no_text_says_is_computed_here_and_told(
    there: ConnectExecutor, spark_engine: SparkEngine, tmp_path: Path
) -> None:
    step = task(tmp_path, SESSIONS, slices(tmp_path, rows(0, 50)))
    found = there.engine.run(step)
    assert found.note == (
        "computed beside odfbuild, not by the server: "
        "columns that Spark treats in a way of their own"
    )
    again = task(tmp_path, SESSIONS, *step.inputs)
    assert read(found.parts).equals(read(spark_engine.run(again).parts))


def test_another_plan_or_other_files_are_not_computed_by_the_server(
    there: ConnectExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = sql("SELECT event_time, size(split(city, '-')) AS n FROM cities")
    given = slices(tmp_path, rows(0, 5))
    stranger = tmp_path / "stranger.parquet"
    pq.write_table(rows(5, 9), stranger)
    honest = remote_module._read

    def astray(session: Any, leaf: Any) -> Any:
        return session.read.schema(honest(session, leaf).schema).parquet(str(stranger))

    def narrowed(session: Any, leaf: Any) -> Any:
        return honest(session, leaf).where("offset < 3")

    for wrong, why in ((astray, "other files"), (narrowed, "another plan")):
        monkeypatch.setattr(remote_module, "_read", wrong)
        found = there.engine.run(task(tmp_path, query, given))
        assert why in found.note
        assert read(found.parts).num_rows == 5


def test_settings_of_the_server_that_could_change_a_result_do_not_count(
    there: ConnectExecutor,
) -> None:
    session = there.remote._live()
    assert session.conf.get("spark.sql.ansi.enabled") == "true"
    assert session.conf.get("spark.sql.session.timeZone") == "UTC"
    assert "spark.sql.legacy.sizeOfNull" not in session.conf.getAll


def test_a_server_that_reads_queries_otherwise_is_refused(
    there: ConnectExecutor, spark_engine: SparkEngine
) -> None:
    session, planner = there.remote._live(), spark_engine._session.spark
    settings = EngineSettings(master="sc://elsewhere:15002/;token=secret")

    def code(check: Any, *given: Any) -> str:
        with pytest.raises(EngineProblem) as caught:
            check(*given)
        assert caught.value.code == "E0528"
        assert "secret" not in str(caught.value)
        return f"{caught.value.message} {caught.value.notes} {caught.value.help}"

    older = SimpleNamespace(version="4.2.0")
    assert "this is odfbuild with Spark 4.2.0" in code(
        server._check_release, session, older, settings.address
    )
    extended = SimpleNamespace(version=planner.version, conf=Fixed("spark.sql.extensions", "X"))
    assert "spark.sql.extensions is X" in code(
        server._check_release, extended, planner, settings.address
    )
    stubborn = SimpleNamespace(conf=Fixed("spark.sql.legacy.sizeOfNull", "true"))
    assert "start it without spark.sql.legacy.sizeOfNull" in code(
        server._adopt_settings, stubborn, planner, settings
    )


class Fixed:
    """Settings of a session, of which one cannot be changed."""

    def __init__(self, name: str, value: str) -> None:
        self.name, self.getAll = name, {name: value}

    def get(self, name: str, default: str | None = None) -> str | None:
        return self.getAll.get(name, default)

    def set(self, name: str, value: str) -> None:
        self.getAll[name] = value

    def unset(self, name: str) -> None:
        raise ValueError(f"{name} is fixed")


def test_a_server_that_does_not_see_the_folder_is_refused(
    there: ConnectExecutor, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pq, "write_table", lambda *_: None)
    with pytest.raises(EngineProblem) as caught:
        server.check_sees(there.remote._live(), shared, "sc://server")
    assert caught.value.code == "E0547"
    assert caught.value.notes[0].startswith("[PATH_NOT_FOUND]")
    assert list(shared.iterdir()) == []


def test_a_step_that_takes_too_long_is_cancelled_there(
    there: ConnectExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = slices(tmp_path, rows(0, 5))
    with monkeypatch.context() as patch:
        patch.setenv("ODFBUILD_STEP_SECONDS", "2")
        with pytest.raises(QueryError) as caught:
            there.engine.run(task(tmp_path, ENDLESS, given))
    assert caught.value.code == "E0545"
    let_nothing_stay(monkeypatch)
    light = task(tmp_path, sql("SELECT event_time FROM cities"), given)
    assert read(there.engine.run(light).parts).num_rows == 5


def test_a_step_whose_session_the_server_closed_is_done_again_in_a_new_one(
    there: ConnectExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the server was restarted, or has thrown away what it held for a lost connection."""
    let_nothing_stay(monkeypatch)
    closed = there.remote._live()
    closed.client.release_session()
    step = task(tmp_path, sql("SELECT event_time FROM cities"), slices(tmp_path, rows(0, 5)))
    assert read(there.engine.run(step).parts).num_rows == 5
    assert there.remote._live() is not closed


def test_a_server_that_closes_each_session_is_not_asked_for_ever(
    there: ConnectExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = []

    def closing(self: Remote) -> Any:
        session = honest(self)
        session.client.release_session()
        opened.append(session)
        return session

    honest = Remote._live
    monkeypatch.setattr(Remote, "_live", closing)
    with pytest.raises(EngineProblem) as caught:
        there.engine.run(
            task(tmp_path, sql("SELECT event_time FROM cities"), slices(tmp_path, rows(0, 5)))
        )
    assert caught.value.code == "E0529"
    assert "SESSION_CLOSED" in caught.value.notes[0]
    assert len(opened) == 2


@pytest.mark.slow
def test_a_server_that_ends_for_want_of_memory_is_told_as_one_that_may_have(
    spark_engine: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_nothing_stay(monkeypatch)
    given = slices(tmp_path, rows(0, 5))
    with (
        on_a_server(spark_engine, tmp_path, tmp_path / "server") as there,
        pytest.raises(EngineProblem) as caught,
    ):
        there.engine.run(task(tmp_path, sql(HEAVY), given))
    assert caught.value.code == "E0529"
    assert "a server whose memory is full ends: see its log" in caught.value.notes


def test_a_server_that_fails_for_itself_is_not_taken_for_a_query_that_does() -> None:
    closing = lost.refused_by(UnknownException("(java.lang.AssertionError) failed"), "sc://here")
    assert closing is not None
    assert (closing.code, closing.notes) == ("E0529", ("(java.lang.AssertionError) failed",))
    wrong = ConnectArithmetic("[DIVIDE_BY_ZERO]", "DIVIDE_BY_ZERO", {})
    assert lost.refused_by(wrong, "sc://here") is None


def test_a_worker_of_a_server_without_memory_is_an_error_that_says_what_to_set(
    there: ConnectExecutor,
) -> None:
    full = UnknownException("Job aborted: java.lang.OutOfMemoryError: Java heap space")
    assert lost.refused_by(full, "sc://here") is None
    told = why_lost(full, there.engine._session, "d")
    assert isinstance(told, QueryError)
    assert told.code == "E0546"
    assert "the server's or a worker's is full" in told.message
    assert "raise the memory that they start with" in (told.help or "")


def test_an_address_without_a_server_is_told_at_once(spark_engine: SparkEngine) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        master = f"sc://127.0.0.1:{closed.getsockname()[1]}"
        with pytest.raises(EngineProblem) as caught:
            Remote(EngineSettings(master=f"{master}/;token=secret"), None, Path())
    assert caught.value.code == "E0907"
    assert caught.value.message == f"no Spark Connect server answers at {master}"


def test_without_the_packages_the_extra_is_named(
    there: ConnectExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql.connect.session", None)
    with pytest.raises(EngineProblem) as caught:
        server._opened(EngineSettings(master="sc://server"))
    assert caught.value.code == "E0527"
    assert caught.value.help == "pip install 'odfbuild[connect]'"


def test_no_fence_stands_around_a_server() -> None:
    with pytest.raises(EngineProblem) as caught:
        sandbox.fences(EngineSettings(master="sc://server", sandbox=Sandbox.REQUIRED))
    assert caught.value.code == "E0906"


@contextmanager
def at_work(there: ConnectExecutor, folder: Path) -> Iterator[list[str]]:
    """While a step that takes minutes is computed; then the code of what it failed with."""
    codes: list[str] = []
    there.remote._step_progress.clear()

    def work() -> None:
        try:
            there.engine.run(task(folder, ENDLESS, slices(folder, rows(0, 5))))
        except OdfbuildError as error:
            codes.append(error.code)

    worker = threading.Thread(target=work)
    worker.start()
    while worker.is_alive() and there.remote.progress("tests") is None:
        worker.join(0.1)
    told = there.engine.progress("tests")
    assert told is not None
    assert told.tasks > told.tasks_done
    yield codes
    worker.join(60)


def test_a_program_that_ends_at_once_ends_what_the_server_does(
    there: ConnectExecutor, tmp_path: Path
) -> None:
    with at_work(there, tmp_path) as codes:
        elsewhere.end_all()
    assert codes == ["E0517"], "cancelled while the server was reached"


def test_a_server_that_dies_under_a_step_leaves_the_chain_as_it_was(
    there: ConnectExecutor,
    spark_engine: SparkEngine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The last of these tests: it leaves no server."""
    there.remote._live().client.set_retry_policies([DefaultPolicy(max_retries=1)])
    with at_work(there, tmp_path) as codes:
        there.process.kill()
    assert codes == ["E0529"]
    tiny = Tiny.fresh(tmp_path / "tiny")
    program = Program(tiny.root, monkeypatch, capsys)
    with monkeypatch.context() as patch:
        share(there.engine, patch)
        said = program("apply", "-y")
        assert said.code == 1
        assert "no Spark Connect server answers" in said.out + said.err
    share(spark_engine, monkeypatch)
    assert "2 committed" in program.apply().out
