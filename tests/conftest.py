"""Fixtures that several rooms share."""

from collections.abc import Iterator

import pytest
from hypothesis import settings

from odfbuild.engine.contract import Engine

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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with a Spark session or many processes first: a run is over when its longest file is.

    Works with `--no-loadscope-reorder`; xdist would begin with the files that have the most tests.
    """
    long = {item.path for item in items if any(map(item.get_closest_marker, ("spark", "long")))}
    items.sort(key=lambda item: item.path not in long)
