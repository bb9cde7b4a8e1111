"""Fixtures that several rooms share."""

from collections.abc import Iterator

import pytest

from odfbuild.engine.contract import Engine


@pytest.fixture(scope="session")
def spark_engine() -> Iterator[Engine]:
    """One running engine for all tests of a process; it takes seconds to start."""
    from odfbuild.engine.spark.engine import start_engine

    engine = start_engine()
    yield engine
    engine.stop()
