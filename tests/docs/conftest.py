"""Environments that are made once for the tests of a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.environments import build_wheel, make_environment


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this tree."""
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def planner(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    """Programs of `pip install odfbuild`."""
    return make_environment(tmp_path_factory.mktemp("planner"), wheel)


@pytest.fixture(scope="session")
def builder(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    """Programs of `pip install 'odfbuild[spark,jre]'`."""
    return make_environment(tmp_path_factory.mktemp("builder"), wheel, "spark", "jre")
