"""Roots that read MariaDB: what the chain says is what the table says, whatever happens."""

from __future__ import annotations

import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from odfbuild.engine.contract import Engine
from tests.apply.in_process import Program, share
from tests.apply.shop import Shop
from tests.apply.tiny import Tiny
from tests.servers.mariadb import MariaDb, mariadb

pytestmark = pytest.mark.spark

TABLE = (
    "CREATE TABLE orders (id INT PRIMARY KEY, value DECIMAL(10, 2) NOT NULL, note TEXT, changed "
    "TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6))"
)
STEPS = 5


@pytest.fixture(scope="module")
def server() -> Iterator[MariaDb]:
    with mariadb() as started:
        yield started


@pytest.mark.parametrize("merge", ["Snapshot", "UpsertStream"])
def test_after_any_changes_the_chain_says_what_the_table_says(
    server: MariaDb,
    tmp_path: Path,
    spark_engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    merge: str,
) -> None:
    """Inserts, updates, transactions that commit late and crashes of the server; deletions only
    where the whole table is compared."""
    share(spark_engine, monkeypatch)
    database = server.database()
    database.execute(TABLE)
    of_any: Any = database
    shop = Shop(Tiny.fresh(tmp_path / "shop"), of_any)
    (shop.tiny.root / "datasets" / "derived.yaml").unlink()
    program = Program(shop.tiny.root, monkeypatch, capsys)
    walk = random.Random(merge)
    whole = merge == "Snapshot"
    shop.define("#orders" if whole else "?cursor=changed&overlap=1h#orders", merge)
    rows: dict[int, tuple[Decimal, str]] = {}
    late: list[Any] = []
    for step in range(STEPS):
        for _ in range(walk.randint(1, 3)):
            key, value = walk.randint(1, 9), Decimal(walk.randint(0, 999)) / 100
            database.execute(
                f"INSERT INTO orders (id, value, note) VALUES ({key}, {value}, 'ü{step}') "
                "ON DUPLICATE KEY UPDATE value = VALUES(value), note = VALUES(note)"
            )
            rows[key] = (value, f"ü{step}")
        if whole and walk.random() < 0.5:
            gone = walk.choice(list(rows))
            database.execute(f"DELETE FROM orders WHERE id = {gone}")
            del rows[gone]
        if late:
            connection, key = late.pop()
            connection.commit()
            connection.close()
            rows[key] = (Decimal("1.00"), "late")
        elif walk.random() < 0.5:
            connection = server.owner(database.name)
            with connection.cursor() as cursor:
                cursor.execute(
                    f"INSERT INTO orders (id, value, note) VALUES ({100 + step}, 1, 'late')"
                )
            late.append((connection, 100 + step))
        elif step == 2:
            server.stop()
            assert program("apply", "-y").code == 1
            server.start()
        program.apply()
        found = {key: (row[1], row[2]) for key, row in shop.state().items()}
        assert {key: (Decimal(value), note) for key, (value, note) in found.items()} == rows, step
        assert "unchanged" in program.apply().out
    program.ok("verify")
