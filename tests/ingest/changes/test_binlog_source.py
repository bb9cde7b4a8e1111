"""Changes of a table of MariaDB, read from the binary log of a real server."""

from __future__ import annotations

import io
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from odfbuild.errors import IngestError
from odfbuild.ingest.fetch import fetch
from odfbuild.ingest.fetch.database.changes.binlog import read
from odfbuild.ingest.fetch.database.look import look_at_database
from odfbuild.odf.model import FetchStepUrl, MergeStrategyChangelogStream
from tests.ingest.changes.reader import Reader
from tests.ingest.contexts import SETTINGS, at
from tests.servers.binlog import mariadb_with_changes, rows, run, url_of, with_table
from tests.servers.mariadb import USER, Database, MariaDb, mariadb

ORDERS = "CREATE TABLE orders (id int PRIMARY KEY, amount decimal(10, 2), note varchar(100))"


@pytest.fixture(scope="module")
def server() -> Iterator[MariaDb]:
    with mariadb_with_changes() as started:
        yield started


@pytest.fixture
def shop(server: MariaDb) -> Database:
    return with_table(server, ORDERS)


@pytest.fixture
def orders(shop: Database, tmp_path: Path) -> Reader:
    """A source that was read once."""
    shop.execute("INSERT INTO orders VALUES (1, 1.5, 'a'), (2, 2.5, 'b')")
    reader = of(shop, tmp_path)
    assert (reader.poll(), reader.wholes) == (0, 1)
    return reader


def of(database: Database, root: Path, **settings: Any) -> Reader:
    return Reader(root, database, url=url_of(database), **settings)


def table(database: Database, columns: str = "*") -> dict[Any, dict[str, Any]]:
    return {row["id"]: row for row in rows(database, f"SELECT {columns} FROM orders")}


def error_of(do: Callable[[], Any]) -> IngestError:
    with pytest.raises(IngestError) as found:
        do()
    return found.value


def test_each_change_comes_once_in_the_order_of_commits(shop: Database, orders: Reader) -> None:
    shop.execute(
        "INSERT INTO orders VALUES (3, 3.5, 'c')",
        "UPDATE orders SET amount = 4 WHERE id = 3",
        "UPDATE orders SET note = note",
        "UPDATE orders SET id = 30 WHERE id = 3",
        "DELETE FROM orders WHERE id = 1",
    )
    assert orders.poll() == 6
    assert [operation for operation, _ in orders.changes] == [0, 2, 3, 1, 0, 1]
    assert orders.state == table(shop)
    assert orders.poll() == 0
    assert len(orders.poller.found) == 2


VALUES = {
    "tinyint": "-1",
    "tinyint unsigned": "255",
    "smallint": "-300",
    "mediumint": "-8388608",
    "mediumint unsigned": "16777215",
    "int unsigned": "4294967295",
    "bigint": "-9223372036854775808",
    "bigint unsigned": "18446744073709551615",
    "decimal(20, 5)": "-12345678901234.56789",
    "decimal(38, 0)": "-99999999999999999999999999999999999999",
    "decimal(65, 30)": "1.000000000000000000000000000001",
    "float": "1.1",
    "double": "1e300/3",
    "bit(10)": "513",
    "year": "0",
    "boolean": "true",
    "date": "'0001-01-01'",
    "datetime": "'9999-12-31 23:59:59'",
    "datetime(6)": "'2026-01-02 03:04:05.000006'",
    "timestamp(3) NULL": "'2026-01-02 03:04:05.678'",
    "time": "'-838:59:59'",
    "time(4)": "'12:34:56.7890'",
    "char(5)": "'ab '",
    "varchar(300)": "'täxt 🙂'",
    "varchar(20) CHARACTER SET latin1": "'é€'",
    "text": "repeat('x', 60000)",
    "longtext": "'line\\n\\0end'",
    "binary(4)": "0x0100",
    "varbinary(10)": "0xff00",
    "blob": "0x00ff",
    "enum('a', 'ü', 'c')": "'ü'",
    "set('x', 'y', 'z')": "'z,x'",
    "json": "'{\"a\": [1, 2.50]}'",
}


def test_values_are_those_of_a_select(server: MariaDb, tmp_path: Path) -> None:
    columns = ", ".join(f"c{n} {kind}" for n, kind in enumerate(VALUES))
    database = with_table(
        server,
        "SET SESSION sql_mode = ''",
        f"CREATE TABLE orders (id int PRIMARY KEY, {columns}, twice int AS (id * 2) VIRTUAL, "
        "thrice int AS (id * 3) PERSISTENT)",
    )
    database.execute("SET time_zone = '+00:00'", insert(1))
    first = of(database, tmp_path)
    first.poll()
    database.execute("SET time_zone = '+00:00'", insert(2), "INSERT INTO orders (id) VALUES (3)")
    assert first.poll() == 2
    assert (first.state[2] | {"id": 1}) == first.state[1]
    assert {*first.state[3].values()} == {3, None}
    again = tmp_path / "again"
    again.mkdir()
    second = of(database, again)
    second.poll()
    assert second.state == first.state
    contents = [each for each in first.poller.committed if each is not None]
    kinds = [pq.read_schema(io.BytesIO(each)) for each in contents]
    assert [each for each in kinds[1] if each.name != "op"] == [*kinds[0]]


def insert(number: int) -> str:
    names = ", ".join(f"c{n}" for n in range(len(VALUES)))
    return f"INSERT INTO orders (id, {names}) VALUES ({number}, {', '.join(VALUES.values())})"


def test_bytes_that_are_text_for_the_server_only_have_the_table_read(
    server: MariaDb, tmp_path: Path
) -> None:
    database = with_table(
        server, "CREATE TABLE orders (id int PRIMARY KEY, a varchar(5) CHARACTER SET latin1)"
    )
    reader = of(database, tmp_path)
    reader.poll()
    database.execute("INSERT INTO orders VALUES (1, _latin1 0x81)")
    reader.poll()
    assert (reader.wholes, reader.state) == (2, table(database))


def test_columns_that_nobody_asks_for_are_left_out(server: MariaDb, tmp_path: Path) -> None:
    database = with_table(
        server, "CREATE TABLE orders (id int PRIMARY KEY, a int, b int INVISIBLE)"
    )
    reader = of(database, tmp_path)
    reader.poll()
    database.execute("INSERT INTO orders (id, a, b) VALUES (1, 2, 3)")
    assert (reader.poll(), reader.wholes) == (1, 1)
    assert reader.state == {1: {"id": 1, "a": 2}}


def test_empty_values_are_those_of_a_select(server: MariaDb, tmp_path: Path) -> None:
    database = with_table(
        server,
        "CREATE TABLE orders (id int PRIMARY KEY, a varchar(5), b set('x'), c blob, d char(3))",
        "INSERT INTO orders VALUES (1, '', '', '', '')",
    )
    reader = of(database, tmp_path)
    reader.poll()
    database.execute("INSERT INTO orders VALUES (2, '', '', '', '')")
    reader.poll()
    assert (reader.state[2] | {"id": 1}) == reader.state[1]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("date", "'0000-00-00'"),
        ("datetime", "'2026-02-00'"),
        ("timestamp NULL", "'0000-00-00 00:00:00'"),
    ],
)
def test_a_date_that_is_none_is_refused_behind_the_changes_before_it(
    server: MariaDb, tmp_path: Path, kind: str, value: str
) -> None:
    database = with_table(server, f"CREATE TABLE orders (id int PRIMARY KEY, at {kind})")
    reader = of(database, tmp_path)
    reader.poll()
    database.execute("INSERT INTO orders (id) VALUES (1)")
    database.execute("SET sql_mode = ''", f"INSERT INTO orders VALUES (2, {value})")
    error = error_of(reader.poll)
    assert error.code == "E0466"
    assert "another name than `changes=orders_1`" in (error.help or "")
    assert [*reader.state] == [1]


def test_a_transaction_is_never_cut(shop: Database, tmp_path: Path) -> None:
    reader = of(shop, tmp_path, target_records=10)
    reader.poll()
    for number in range(4):
        values = ", ".join(f"({number * 100 + n}, {n}, '{number}')" for n in range(25))
        shop.execute(f"INSERT INTO orders VALUES {values}", "INSERT INTO orders VALUES "
                     f"({number * 100 + 50}, 1, '{number}')")  # fmt: skip
    reader.poll()
    contents = [pq.read_table(io.BytesIO(each)) for each in reader.poller.committed[1:] if each]
    assert [each["note"].to_pylist() for each in contents] == [[str(n)] * 26 for n in range(4)]


def test_the_table_and_its_changes_join_exactly_while_others_write(
    shop: Database, tmp_path: Path
) -> None:
    shop.execute("INSERT INTO orders SELECT seq, 0, '' FROM seq_1_to_40")
    stop = threading.Event()
    failed: list[BaseException] = []

    def write(seed: int) -> None:
        try:
            number = 0
            while not stop.is_set():
                number += 1
                shop.execute(
                    f"UPDATE orders SET amount = amount + 1 WHERE id = {number % 40 + 1}",
                    f"REPLACE INTO orders VALUES ({1000 * seed + number % 7}, {number}, 'w')",
                )
                if number % 5 == 0:
                    shop.execute(f"DELETE FROM orders WHERE id = {1000 * seed + number % 3}")
        except BaseException as error:
            failed.append(error)

    writers = [threading.Thread(target=write, args=(seed,)) for seed in (1, 2)]
    for each in writers:
        each.start()
    try:
        for number in range(3):
            (tmp_path / str(number)).mkdir()
            reader = of(shop, tmp_path / str(number))
            for _ in range(3):
                reader.poll()
            assert reader.wholes == 1
    finally:
        stop.set()
        for each in writers:
            each.join()
    reader.poll()
    assert not [each for each in failed if "Deadlock" not in str(each)]
    assert reader.state == table(shop)


def test_what_was_rolled_back_never_comes(shop: Database, orders: Reader) -> None:
    connection = shop.server.owner(shop.name)
    with connection, connection.cursor() as cursor:
        cursor.execute("INSERT INTO orders VALUES (3, 3, 'c')")
        cursor.execute("SAVEPOINT here")
        cursor.execute("INSERT INTO orders VALUES (4, 4, 'd')")
        cursor.execute("ROLLBACK TO here")
        connection.commit()
        cursor.execute("INSERT INTO orders VALUES (5, 5, 'e')")
        connection.rollback()
    assert orders.poll() == 1
    assert orders.state == table(shop)


UNCLEAR = {
    "a new column": ["ALTER TABLE orders ADD extra int DEFAULT 5"],
    "another type": ["ALTER TABLE orders MODIFY amount decimal(12, 3)"],
    "a column less": ["ALTER TABLE orders DROP note"],
    "an empty table": ["TRUNCATE orders"],
    "another table": ["RENAME TABLE orders TO old", "CREATE TABLE orders LIKE old"],
    "a statement": [
        "SET SESSION binlog_format = 'STATEMENT'",
        "UPDATE orders SET amount = amount * 2",
    ],
    "a distributed transaction": [
        "XA START 'x'",
        "INSERT INTO orders VALUES (9, 9, 'x')",
        "XA END 'x'",
        "XA PREPARE 'x'",
        "XA COMMIT 'x'",
    ],
}


@pytest.mark.parametrize("what", UNCLEAR)
def test_where_rows_are_not_told_the_table_is_read_behind_the_changes_before(
    shop: Database, orders: Reader, what: str
) -> None:
    shop.execute("INSERT INTO orders VALUES (3, 3, 'c')")
    shop.execute(*UNCLEAR[what])
    shop.execute("INSERT INTO orders (id, amount) VALUES (4, 4)")
    orders.poll()
    assert (len(orders.changes), orders.wholes) == (1, 2)
    assert orders.state == table(shop)
    shop.execute("DELETE FROM orders WHERE id = 4")
    assert orders.poll() == 1
    assert orders.state == table(shop)


def test_other_tables_change_nothing(shop: Database, orders: Reader) -> None:
    shop.execute(
        "CREATE TABLE other (id int PRIMARY KEY, note text)",
        "INSERT INTO other VALUES (1, 'orders')",
        "ALTER TABLE other ADD x int",
        "DROP TABLE other",
    )
    assert orders.poll() == 0
    assert len(orders.poller.found) == 1


@pytest.mark.parametrize("crash", ["before", "after"])
def test_a_crash_neither_loses_nor_doubles(shop: Database, orders: Reader, crash: str) -> None:
    shop.execute("INSERT INTO orders VALUES (3, 3, 'c')")
    orders.poll(crash=crash)
    shop.execute("INSERT INTO orders VALUES (4, 4, 'd')")
    orders.poll()
    assert (len(orders.changes), orders.state) == (2, table(shop))


def test_changes_go_on_in_the_next_file_of_the_log(shop: Database, orders: Reader) -> None:
    shop.execute("INSERT INTO orders VALUES (3, 3, 'c')")
    run(shop.server, "FLUSH BINARY LOGS")
    shop.execute("INSERT INTO orders VALUES (4, 4, 'd')")
    assert orders.poll() == 2
    run(shop.server, "FLUSH BINARY LOGS")
    assert orders.poll() == 0
    assert "the position moved" in orders.poller.found[-1].note
    assert orders.state == table(shop)


def test_the_position_moves_with_a_log_of_other_tables(
    shop: Database, orders: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.execute("CREATE TABLE other (id int)")
    monkeypatch.setattr(read, "IDLE_BYTES", 1)
    orders.poll()
    assert "the position moved" in orders.poller.found[-1].note
    assert orders.poller.found[-1].file is None


def test_a_log_without_the_changes_is_refused(shop: Database, orders: Reader) -> None:
    server = shop.server
    shop.execute("INSERT INTO orders VALUES (3, 3, 'c')")
    run(server, "FLUSH BINARY LOGS")
    deadline = time.monotonic() + 60
    while len(logs := rows(shop, "SHOW BINARY LOGS")) > 1:  # The engine may need one a while.
        run(server, f"PURGE BINARY LOGS TO '{logs[-1]['Log_name']}'")
        assert time.monotonic() < deadline
    error = error_of(orders.poll)
    assert (error.code, "does not have log." in error.message) == ("E0491", True)
    assert "another name than `changes=orders_1`" in (error.help or "")
    assert [*orders.state] == [1, 2]


def test_a_log_that_began_anew_is_refused(tmp_path: Path) -> None:
    with mariadb_with_changes() as server:
        shop = with_table(server, ORDERS)
        reader = of(shop, tmp_path)
        reader.poll()
        run(server, "RESET MASTER")
        assert error_of(reader.poll).code == "E0491"
        for number in range(30):
            shop.execute(f"INSERT INTO orders VALUES ({number}, 1, 'x')")
        assert error_of(reader.poll).code == "E0491"


def test_another_name_reads_the_table_again(shop: Database, orders: Reader) -> None:
    step = FetchStepUrl(url=url_of(shop, "orders_2"))
    (found,) = fetch(step, orders.poller.state, at(orders.poller.root, moved=True))
    assert found.whole


def test_a_server_that_crashes_and_comes_back_is_read_on(shop: Database, orders: Reader) -> None:
    shop.execute("INSERT INTO orders VALUES (3, 3, 'c')")
    shop.server.stop()
    try:
        assert error_of(orders.poll).code == "E0461"
    finally:
        shop.server.start()
    orders.poll()
    assert orders.state == table(shop)


def test_a_user_who_may_not_read_the_log_gets_the_statement(shop: Database, orders: Reader) -> None:
    shop.execute("INSERT INTO orders VALUES (3, 3, 'c')")
    run(shop.server, f"REVOKE REPLICATION SLAVE ON *.* FROM '{USER}'@'127.0.0.1'")
    try:
        error = error_of(orders.poll)
    finally:
        run(shop.server, f"GRANT REPLICATION SLAVE ON *.* TO '{USER}'@'127.0.0.1'")
    assert (error.code, "GRANT REPLICATION SLAVE" in (error.help or "")) == ("E0495", True)


UNSUITABLE = {
    "CREATE TABLE orders (id int PRIMARY KEY) ENGINE = Aria": "no ordinary table .* but Aria",
    "CREATE VIEW orders AS SELECT 1 AS id": "no ordinary table of InnoDB, but view",
    "CREATE TABLE orders (id int, note text)": "has no key",
    "CREATE TABLE orders (id int PRIMARY KEY, at geometry)": "column 'at' .* is geometry",
    "CREATE TABLE orders (id int PRIMARY KEY, at uuid)": "column 'at' .* is uuid",
    "CREATE TABLE orders (id int PRIMARY KEY) WITH SYSTEM VERSIONING": "but system versioned",
    "CREATE TABLE orders (id int PRIMARY KEY, note text CHARACTER SET utf16)": "text in utf16",
    "CREATE TABLE orders (id int PRIMARY KEY, op int)": "has a column 'op'",
    "CREATE TABLE orders (id int, a int NOT NULL, PRIMARY KEY (id, a))": r"primaryKey: \[id\]",
    "CREATE TABLE parent (id int PRIMARY KEY); CREATE TABLE orders (id int PRIMARY KEY, "
    "FOREIGN KEY (id) REFERENCES parent (id) ON DELETE CASCADE)": "the foreign key",
}


def test_who_looks_at_a_table_is_told_what_is_wrong_there(server: MariaDb, tmp_path: Path) -> None:
    shop = with_table(server, "CREATE TABLE orders (id int)")
    error = error_of(lambda: look_at_database(url_of(shop), SETTINGS, tmp_path))
    assert (error.code, "has no key" in error.message) == ("E0492", True)
    shop.execute("ALTER TABLE orders ADD PRIMARY KEY (id)")
    assert look_at_database(url_of(shop), SETTINGS, tmp_path).key == ("id",)


@pytest.mark.parametrize("statements", UNSUITABLE)
def test_a_table_whose_changes_are_not_told_is_refused(
    server: MariaDb, tmp_path: Path, statements: str
) -> None:
    database = with_table(server, *statements.split("; "))
    merge = MergeStrategyChangelogStream(primary_key=("id",))
    context = replace(at(tmp_path), merge=merge)
    error = error_of(lambda: list(fetch(FetchStepUrl(url=url_of(database)), None, context)))
    assert error.code == "E0492"
    assert re.search(UNSUITABLE[statements], error.message)


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        (("--skip-log-bin",), "log_bin"),
        (("--log-bin=log", "--binlog-format=MIXED"), "binlog_format"),
        (("--log-bin=log", "--binlog-format=ROW"), "binlog_row_metadata"),
    ],
)
def test_a_server_without_such_a_log_is_refused(
    tmp_path: Path, settings: tuple[str, ...], name: str
) -> None:
    with mariadb(*settings) as server:
        database = with_table(server, ORDERS)
        error = error_of(of(database, tmp_path).poll)
    assert (error.code, f"`{name}` is" in error.message) == ("E0492", True)
    assert f"set `{name}=" in (error.help or "")
