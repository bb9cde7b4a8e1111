"""With keys, a project with personal columns gives what the same project gives without."""

from pathlib import Path

import pytest

from odfbuild.engine.contract import Engine
from tests.apply.in_process import share
from tests.personal.shop import DERIVED, ROOTS, SECRETS, Shop, files_with, machine

pytestmark = pytest.mark.spark


@pytest.fixture
def shops(
    tmp_path: Path, spark_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> tuple[Shop, Shop]:
    """The shop with personal columns, and the one without."""
    share(spark_engine, monkeypatch)
    machine(tmp_path / "machine", monkeypatch)
    both = [
        Shop.fresh(tmp_path / name, personal=name == "personal") for name in ("personal", "plain")
    ]
    return both[0], both[1]


@pytest.mark.parametrize(
    "days", [2, pytest.param(6, marks=pytest.mark.slow(reason="twelve applies on Spark"))]
)
def test_every_dataset_holds_the_same_records_after_each_increment(
    shops: tuple[Shop, Shop], days: int
) -> None:
    personal, plain = shops
    for day in range(1, days + 1):
        for shop in shops:
            shop.arrive(day)
            shop.apply()
        for name in (*ROOTS, *DERIVED):
            assert personal.records(name).equals(plain.records(name)), (day, name)
    assert files_with(plain.root, *SECRETS)
    assert files_with(personal.root, *SECRETS) == []
