"""A server of datasets that the tests of a file share, and a name for each test."""

from __future__ import annotations

from itertools import count

import pytest

from tests.exchange.repositories.serving import served
from tests.store.chains import create, info

_names = (f"net.example.n{number}" for number in count())


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory):
    with served(tmp_path_factory.mktemp("serve") / "hub") as server:
        create(server.space, "secret.prices", info("for those who may"))
        create(server.space, "other.prices", info("for nobody but alice"))
        create(server.space, "acc/prices", info("of an account"))
        yield server


@pytest.fixture
def name() -> str:
    return next(_names)
