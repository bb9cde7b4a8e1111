"""Roots that read PostgreSQL: what the chain says is what the table says, whatever happens."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from odfbuild.engine.contract import Engine
from tests.apply.in_process import Program, share
from tests.apply.shop import SCHEMA, Shop, change
from tests.servers.postgres import Postgres, connect, postgres

pytestmark = pytest.mark.spark

STEPS = 6


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres() as started:
        yield started


@pytest.fixture
def made(
    server: Postgres,
    tmp_path: Path,
    spark_engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> tuple[Shop, Program]:
    share(spark_engine, monkeypatch)
    shop = Shop.fresh(tmp_path / "shop", server.database())
    return shop, Program(shop.tiny.root, monkeypatch, capsys)


@pytest.mark.parametrize("merge", ["Snapshot", "UpsertStream"])
def test_after_any_changes_the_chain_says_what_the_table_says(
    made: tuple[Shop, Program], server: Postgres, merge: str
) -> None:
    """Inserts, updates, transactions that commit late, crashes of the server, other columns and
    types; deletions only where the whole table is compared."""
    shop, program = made
    walk = random.Random(merge)
    whole = merge == "Snapshot"
    shop.define("#orders" if whole else "?cursor=changed&overlap=1h#orders", merge)
    late: list[Any] = []
    for step in range(STEPS):
        for _ in range(walk.randint(0, 2)):
            change(walk, shop.database, deletes=whole)
        event = walk.choice(["open", "commit", "crash", "rewrite", "column", "type", "none"])
        if event == "open" and not late:
            late.append(connect(shop.database))
            with late[0].cursor() as cursor:
                cursor.execute(f"INSERT INTO orders VALUES ({100 + step}, 1, 'late')")
        elif event == "commit" and late:
            late[0].commit()
            late.pop().close()
        elif event == "crash" and not late:
            server.stop("immediate")
            assert program("apply", "-y").code == 1
            server.start()
        elif event == "rewrite" and not late:
            shop.database.execute("VACUUM FULL orders")
        elif event == "column" and not late:
            shop.database.execute(f"ALTER TABLE orders ADD COLUMN c{step} int DEFAULT {step}")
        elif event == "type" and not late:
            kind = walk.choice(["numeric", "numeric(11, 2)"])
            shop.database.execute(f"ALTER TABLE orders ALTER value TYPE {kind}")
        program.apply()
        assert shop.state() == shop.table(), step
        assert "up to date" in program.apply().out or "unchanged" in program.apply().out
    if late:
        late[0].commit()
        late.pop().close()
        program.apply()
    assert shop.state() == shop.table()
    # A state may come back, with an earlier type of a column, but each block says another one.
    assert all(one != other for one, other in pairwise(shop.positions()))
    program.ok("verify")


def test_an_insert_only_table_is_read_exactly_once_by_its_number(
    made: tuple[Shop, Program],
) -> None:
    shop, program = made
    shop.define("?cursor=id&overlap=0#orders", "Append")
    for first in (1, 4, 9):
        shop.database.execute(
            f"INSERT INTO orders SELECT id, 1, '' FROM generate_series({first}, {first + 2}) id"
        )
        program.apply()
    assert shop.tiny.ids("root") == [1, 2, 3, 4, 5, 6, 9, 10, 11]
    assert shop.positions() == ["3", "6", "11"]


def test_values_are_converted_to_the_declared_types_or_refused(made: tuple[Shop, Program]) -> None:
    """The type of the table is wider here than the declared one, and nothing is rounded."""
    shop, program = made
    shop.database.execute(
        "ALTER TABLE orders ALTER value TYPE numeric",
        "INSERT INTO orders VALUES (1, 0.125, 'exact')",
    )
    shop.define("#orders", "Snapshot")
    program.apply()
    assert [each["value"] for each in shop.tiny.records("root")] == [Decimal("0.125")]
    shop.database.execute("INSERT INTO orders VALUES (2, 0.1255, 'too fine')")
    said = program("apply", "-y")
    assert said.code == 1
    assert "error[E0421]" in said.err
    assert "'0.1255'" in said.err
    assert "DECIMAL(12,3)" in said.err.replace(", ", ",")
    assert "#orders" in said.err
    with (program.root / "odfbuild.yaml").open("a") as file:
        file.write("  ingest:\n    badRecords: {root: skip}\n")
    assert "1 bad record skipped" in program.apply().out
    assert shop.tiny.ids("root") == [1]


CHANGES: dict[str, tuple[str, str, list[int]]] = {
    "dropped": ("ALTER TABLE orders DROP COLUMN note", "note", [1]),
    "renamed": ("ALTER TABLE orders RENAME note TO remark", "note", [1]),
    "gone": ("ALTER TABLE orders RENAME TO orders_old", "orders", [1]),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_table_that_lost_something_is_refused_and_goes_on_once_it_is_back(
    made: tuple[Shop, Program], what: str
) -> None:
    statement, named, ids = CHANGES[what]
    shop, program = made
    shop.define("?cursor=changed#orders", "UpsertStream")
    shop.database.execute("INSERT INTO orders VALUES (1, 1, 'x')")
    program.apply()
    before = shop.positions()
    shop.database.execute(
        statement,
        f"INSERT INTO {'orders_old' if what == 'gone' else 'orders'} (id, value) VALUES (2, 2)",
    )
    said = program("apply", "-y")
    assert said.code == 1
    assert f"'{named}'" in said.err
    assert "error[E0" in said.err
    assert "help:" in said.err
    assert shop.tiny.ids("root") == ids
    assert shop.positions() == before
    mend = {
        "dropped": "ALTER TABLE orders ADD COLUMN note text",
        "renamed": "ALTER TABLE orders RENAME remark TO note",
        "gone": "ALTER TABLE orders_old RENAME TO orders",
    }
    shop.database.execute(mend[what])
    program.apply()
    assert shop.state().keys() == {1, 2}


def test_a_column_of_another_type_is_converted_if_all_values_fit(
    made: tuple[Shop, Program],
) -> None:
    shop, program = made
    shop.define("#orders", "Snapshot")
    shop.database.execute("INSERT INTO orders VALUES (1, 1.5, 'x')")
    program.apply()
    shop.database.execute(
        "ALTER TABLE orders ALTER value TYPE text", "INSERT INTO orders VALUES (2, '2.5', 'y')"
    )
    program.apply()
    assert [each["value"] for each in shop.tiny.records("root")] == [Decimal("1.5"), Decimal("2.5")]
    shop.database.execute("INSERT INTO orders VALUES (3, 'two', 'z')")
    said = program("apply", "-y")
    assert (said.code, "'two'" in said.err) == (1, True)
    assert shop.tiny.ids("root") == [1, 2]


def test_without_declared_columns_a_new_column_is_drift(made: tuple[Shop, Program]) -> None:
    shop, program = made
    shop.define("#orders", "Snapshot")
    file = program.root / "datasets" / "root.yaml"
    text = file.read_text()
    start = text.index("        schema:")
    file.write_text(text[:start] + text[text.index("      merge:") :])
    shop.database.execute("INSERT INTO orders VALUES (1, 1.5, 'x')")
    program.apply()
    shop.database.execute("ALTER TABLE orders ADD COLUMN country text")
    said = program("apply", "-y")
    assert (said.code, "country" in said.err) == (1, True)


def test_a_plan_does_not_connect_and_no_secret_gets_into_chain_or_messages(
    made: tuple[Shop, Program], monkeypatch: pytest.MonkeyPatch, no_network: Callable[[], int]
) -> None:
    shop, program = made
    shop.database.execute("INSERT INTO orders VALUES (1, 1.5, 'x')")
    shop.define("?cursor=changed#orders", "UpsertStream", password="${{ env.SHOP_PASSWORD }}")
    said = program("plan")
    assert "the address is checked for changes at apply" in said.out
    for command in ("validate", "lint", "status", "diff"):
        program(command)
    assert no_network() == 0
    said = program("apply", "-y")
    assert (said.code, "SHOP_PASSWORD" in said.err) == (1, True)
    secret = "s3cret-of-reader"
    monkeypatch.setenv("SHOP_PASSWORD", secret)
    texts = [program.apply().out]
    monkeypatch.setenv("SHOP_PASSWORD", "another-secret-word")
    said = program("apply", "-y")
    assert (said.code, "error[E0462]" in said.err) == (1, True)
    texts += [said.out, said.err, program("apply", "-y", "--json").out]
    files = [each for each in program.root.rglob("*") if each.is_file()]
    stored = b"".join(each.read_bytes() for each in files)
    for word in (secret, "another-secret-word"):
        assert word not in "".join(texts)
        assert word.encode() not in stored


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How many connections to databases were opened."""
    from adbc_driver_postgresql import dbapi

    opened: list[str] = []
    real = dbapi.connect

    def counted(uri: str, **options: Any) -> Any:
        if "reader" in uri:
            opened.append(uri)
        return real(uri, **options)

    monkeypatch.setattr(dbapi, "connect", counted)
    return lambda: len(opened)


def test_another_password_variable_or_overlap_keeps_the_position(
    made: tuple[Shop, Program],
) -> None:
    shop, program = made
    shop.database.execute("INSERT INTO orders VALUES (1, 1, ''), (2, 1, '')")
    shop.define("?cursor=id&overlap=0#orders", "Append")
    program.apply()
    shop.define("?cursor=id&overlap=0&application_name=odfbuild#orders", "Append")
    shop.database.execute("INSERT INTO orders VALUES (3, 1, '')")
    program.apply()
    assert shop.tiny.ids("root") == [1, 2, 3]


def test_columns_that_are_not_declared_are_not_read(made: tuple[Shop, Program]) -> None:
    shop, program = made
    shop.database.execute(
        "ALTER TABLE orders ADD COLUMN bad timestamptz DEFAULT 'infinity'",
        "INSERT INTO orders VALUES (1, 1, '')",
    )
    shop.define("#orders", "Snapshot", schema=SCHEMA)
    program.apply()
    assert "bad" not in shop.tiny.records("root")[0]
