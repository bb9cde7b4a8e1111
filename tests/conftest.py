"""Fixtures that several rooms share."""

from collections.abc import Iterator

import pytest
from hypothesis import settings

from odfbuild.engine.contract import Engine
from tests.apply.in_process import Program, share
from tests.apply.plain_engine import PlainEngine
from tests.apply.tiny import Tiny

# Machines are noisy: an example that took long says nothing of the code.
settings.register_profile("odfbuild", deadline=None)
settings.load_profile("odfbuild")


@pytest.fixture(scope="session")
def spark_engine() -> Iterator[Engine]:
    """One running engine for all tests of a process; it takes seconds to start."""
    from odfbuild.engine.spark.engine import start_engine

    engine = start_engine()
    yield engine
    engine.stop()


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


@pytest.fixture
def odfbuild(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Program:
    """The program in the project `tiny` of a test's module, with an engine that needs no JVM."""
    share(PlainEngine(), monkeypatch)  # type: ignore[arg-type]
    return Program(tiny.root, monkeypatch, capsys)
