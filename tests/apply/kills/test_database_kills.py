"""`kill -9` at each change of a file while a root reads PostgreSQL: nothing lost, nothing twice."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apply.killer import Killer
from tests.apply.shop import Shop
from tests.apply.tiny import Tiny
from tests.servers.postgres import Postgres, postgres

pytestmark = pytest.mark.long

KILLED = -9
TABLE = "CREATE TABLE t (id bigint PRIMARY KEY, value bigint, event_time timestamptz)"
INSERT = "INSERT INTO t SELECT n, n, timestamptz '2026-01-01' + n * interval '1 minute' FROM "


@pytest.fixture(scope="module")
def killer() -> Iterator[Killer]:
    with Killer("adbc_driver_postgresql.dbapi") as started:
        yield started


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres() as started:
        yield started


def test_an_apply_that_is_killed_at_any_step_is_completed_by_the_next(
    tmp_path: Path, killer: Killer, server: Postgres
) -> None:
    database = server.database()
    shop = Shop.fresh(tmp_path / "before", database)
    schema = ("event_time TIMESTAMP", "id BIGINT", "value BIGINT")
    shop.define("?cursor=event_time&overlap=2m#t", "Ledger", schema=schema)
    database.execute(TABLE, f"{INSERT} generate_series(1, 5) n")
    assert killer.run(shop.tiny.root, "apply", "-y")[0] == 0
    database.execute(f"{INSERT} generate_series(6, 9) n")
    undisturbed = Tiny(tmp_path / "undisturbed")
    shutil.copytree(shop.tiny.root, undisturbed.root)
    code, steps = killer.run(undisturbed.root, "apply", "-y")
    assert code == 0
    expected = undisturbed.state()
    assert undisturbed.ids("root") == list(range(1, 10))
    assert steps >= len(["object", "block", "head"])
    for kill_at in range(steps):
        tiny = Tiny(tmp_path / str(kill_at))
        shutil.copytree(shop.tiny.root, tiny.root)
        assert killer.run(tiny.root, "apply", "-y", kill_at=kill_at) == (KILLED, kill_at)
        assert killer.run(tiny.root, "apply", "-y")[0] == 0, (tiny.root / "run.log").read_text()
        assert tiny.state() == expected, f"killed at step {kill_at}"
        assert killer.run(tiny.root, "apply", "-y") == (0, 0)
        shutil.rmtree(tiny.root)
