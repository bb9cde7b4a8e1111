"""Fixtures that several rooms share."""

import gc
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from odfbuild.engine.contract import Engine
from odfbuild.fallbacks import STRICT
from odfbuild.ingest import secrets
from tests.apply.in_process import NearTiny, Program, share
from tests.apply.plain_engine import PlainEngine
from tests.apply.tiny import Tiny

# Machines are noisy: an example that took long says nothing of the code. And whether a commit
# passes is a question about the commit: its examples are always the same ones. To look for others:
# `pytest --hypothesis-profile=search`.
_CALM = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("odfbuild", derandomize=True, **_CALM)  # type: ignore[arg-type]
settings.register_profile("search", print_blob=True, **_CALM)  # type: ignore[arg-type]
settings.register_profile("quick", derandomize=True, max_examples=10, **_CALM)  # type: ignore[arg-type]
settings.load_profile("odfbuild")

# A fast way that fails for a reason that nobody foresaw fails the test, also in programs it starts.
os.environ[STRICT] = "1"

# Shells start what runs in the background with Ctrl-C ignored, and the programs that tests
# interrupt would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def spark_engine() -> Iterator[Engine]:
    """One running engine for all tests of a process; it takes seconds to start."""
    from odfbuild.engine.spark.start import start_engine

    engine = start_engine()
    yield engine
    engine.stop()


@pytest.fixture(autouse=True, scope="module")
def no_secrets_of_other_files() -> Iterator[None]:
    """What a file's tests filled in is no secret in messages of the next, in the same process."""
    yield
    secrets._known.clear()
    secrets._pieces.clear()


@pytest.fixture
def near(spark_engine: Engine, capsys: pytest.CaptureFixture[str]) -> Callable[[Path], Tiny]:
    """Makes a project in a folder whose commands run in this process, on the engine of all."""
    return lambda root: NearTiny(Tiny.fresh(root).root, spark_engine, capsys)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave slow tests out unless `-m` names them, and put what takes long in front.

    Files with a Spark session or many processes come first: a run is over when its longest file is.
    Works with `--no-loadscope-reorder`; xdist would begin with the files that have the most tests.
    """
    if "slow" not in config.getoption("markexpr"):
        slow = [item for item in items if item.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item not in slow]
    long = {item.path for item in items if any(map(item.get_closest_marker, ("spark", "long")))}
    items.sort(key=lambda item: item.path not in long)


def pytest_collection_finish() -> None:
    """Let Python look for garbage less often, and never through what was collected.

    With thousands of tests in memory that is a tenth of the time of those without Spark.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def pytest_unconfigure() -> None:
    """Let libraries that look for leaks at the end of a process find none."""
    gc.unfreeze()


def pytest_make_parametrize_id(config: pytest.Config, val: object, argname: str) -> str | None:
    """Name bytes by their argument: an archive holds the second that it was made in.

    Workers that collected tests of other names than each other run none.
    """
    return argname if isinstance(val, bytes) else None


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    """A project of one root and one derivative, never applied; many modules have their own."""
    return Tiny.fresh(tmp_path / "tiny")


@pytest.fixture
def odfbuild(
    request: pytest.FixtureRequest,
    tiny: Tiny,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Program:
    """The program in the project `tiny`.

    Tests that are marked `spark` have the engine that all share, others one that needs no JVM.
    """
    on_spark = request.node.get_closest_marker("spark") is not None
    share(request.getfixturevalue("spark_engine") if on_spark else PlainEngine(), monkeypatch)
    return Program(tiny.root, monkeypatch, capsys)
