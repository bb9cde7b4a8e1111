"""What becomes of work when the JVM ends under it: for want of memory, or killed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import ParseException

from odfbuild.engine.settings import EngineSettings
from odfbuild.engine.spark.session.recovery import JvmEnded, why_lost
from odfbuild.engine.spark.start import start_engine
from odfbuild.errors import EnvironmentProblem, QueryError

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What came of each piece of work in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.engine.heavy_program", str(tmp_path_factory.mktemp("heavy"))],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Traceback" not in done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_query_that_fills_the_heap_is_an_error_that_says_what_to_set(told: Any) -> None:
    code, message, dataset, *notes, way_out = told["heavy"]
    assert (code, dataset) == ("E0546", "tests")
    assert message == "Spark ran out of memory: its heap of 512m is full"
    assert notes == ["nothing of it was committed"]
    assert "engine.memory" in way_out


def test_work_beside_it_and_after_it_is_done_all_the_same(told: Any) -> None:
    assert (told["slow"], told["light"], told["after"]) == (5, 5, 5)
    assert told["progress"] is None


def test_a_jvm_that_is_killed_is_told_and_replaced(told: Any) -> None:
    code, message, *notes = told["killed"]
    assert code == "E0909"
    assert message == "Spark's JVM was killed by signal 9 while it worked on 'tests'"
    assert "nothing of it was committed" in notes
    assert told["progress of a dead one"] is None
    assert told["after kill"] == 5


class _Dead:
    """A session whose JVM was killed."""

    settings = EngineSettings()
    memory = "1g"

    def exit_code(self, seconds: float) -> int:
        return -9

    def last_words(self) -> tuple[str, ...]:
        return ()


@pytest.mark.parametrize(
    "error",
    [
        ParseException(message="Unable to parse datatype. Error while sending or receiving"),
        QueryError("there is no column 'id'", code="E0503"),
        ConnectionRefusedError(),
    ],
)
def test_a_question_that_a_killed_jvm_left_open_is_no_fault_of_the_query(error: Exception) -> None:
    lost = why_lost(error, _Dead(), "tests")  # type: ignore[arg-type]
    assert isinstance(lost, JvmEnded)
    assert lost.error.code == "E0909"


def test_a_heap_that_is_too_small_for_spark_is_an_error() -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"import {__name__} as own; own.start_small()"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.startswith("E0902 Spark could not be started: "), done.stderr
    # In the words of Spark, which are others before 4.3.
    assert "Insufficient driver memory" in done.stdout or "System memory" in done.stdout
    assert "[" not in done.stdout
    assert "engine.memory" in done.stdout


def start_small() -> None:
    try:
        start_engine(EngineSettings(memory="200m"))
    except EnvironmentProblem as error:
        print(error.code, error.message, error.help)
