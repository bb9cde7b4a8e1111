"""Tables and queries of MySQL and MariaDB as sources, with a server of MariaDB."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfbuild.errors import OdfbuildError
from odfbuild.ingest.fetch.database.address import wanted
from odfbuild.ingest.fetch.database.look import look_at_database
from odfbuild.ingest.settings import IngestSettings
from odfbuild.odf.model import FetchStepUrl
from tests.ingest.contexts import Poller
from tests.servers.mariadb import PASSWORD, Database, MariaDb, mariadb

ORDERS = (
    "CREATE TABLE orders (id INT PRIMARY KEY, amount DECIMAL(10, 2), note VARCHAR(20), "
    "at TIMESTAMP(6) NULL)"
)


@pytest.fixture(scope="module")
def server() -> Iterator[MariaDb]:
    with mariadb() as started:
        yield started


@pytest.fixture
def shop(server: MariaDb) -> Database:
    """A table of three orders, one a minute."""
    database = server.database()
    database.execute(ORDERS, *(order(each) for each in (1, 2, 3)))
    return database


def order(number: int, minute: int | None = None) -> str:
    minute = number if minute is None else minute
    return f"INSERT INTO orders VALUES ({number}, {number}.5, 'n', '2026-01-01 12:{minute:02}:00')"


def source(root: Path, url: str, **settings: Any) -> Poller:
    return Poller(root, FetchStepUrl(url=url), **settings)


def rows(found: list[bytes | None]) -> list[dict[str, Any]]:
    (data,) = found
    assert data is not None
    return pq.read_table(io.BytesIO(data)).to_pylist()


def ids(found: list[bytes | None]) -> list[int]:
    return [each["id"] for each in rows(found)]


def error_of(polled: Poller) -> OdfbuildError:
    with pytest.raises(OdfbuildError) as raised:
        polled.poll()
    assert PASSWORD not in str(raised.value) + str(raised.value.notes)
    return raised.value


MOST = 2**64 - 1
VALUES = {
    "TINYINT": ("-1", -1, pa.int8()),
    "TINYINT UNSIGNED": ("255", 255, pa.int16()),
    "SMALLINT UNSIGNED": ("65535", 65535, pa.int32()),
    "MEDIUMINT": ("-8388608", -8388608, pa.int32()),
    "INT UNSIGNED": ("4294967295", 4294967295, pa.int64()),
    "BIGINT": ("-9223372036854775808", -(2**63), pa.int64()),
    "BIGINT UNSIGNED": (str(MOST), Decimal(MOST), pa.decimal128(20, 0)),
    "YEAR": ("2026", 2026, pa.int16()),
    "FLOAT": ("0.1", 0.10000000149011612, pa.float64()),
    "DOUBLE": ("0.1", 0.1, pa.float64()),
    "DECIMAL(10, 2)": ("-1.5", Decimal("-1.50"), pa.decimal128(10, 2)),
    "DECIMAL(38, 0)": ("9" * 38, Decimal("9" * 38), pa.decimal128(38, 0)),
    "DECIMAL(12, 4) UNSIGNED": ("1.5", Decimal("1.5000"), pa.decimal128(12, 4)),
    "DECIMAL(65, 30)": ("1.5", "1.5" + "0" * 29, pa.string()),
    "VARCHAR(9)": ("'ä😀'", "ä😀", pa.string()),
    "TEXT": (r"'a\\b'", r"a\b", pa.string()),
    "CHAR(3)": ("'ab'", "ab", pa.string()),
    "VARBINARY(4)": ("X'00FF'", b"\x00\xff", pa.binary()),
    "BLOB": ("X'01'", b"\x01", pa.binary()),
    "DATE": ("'2026-02-28'", date(2026, 2, 28), pa.date32()),
    "DATETIME(6)": (
        "'2026-01-01 01:00:00.000001'",
        datetime(2026, 1, 1, 1, 0, 0, 1, UTC),
        pa.timestamp("us", "UTC"),
    ),
    "TIMESTAMP": (
        "'2026-01-01 01:00:00'",
        datetime(2026, 1, 1, 1, tzinfo=UTC),
        pa.timestamp("us", "UTC"),
    ),
    "TIME(3)": ("'-01:02:03.5'", "-01:02:03.500", pa.string()),
    "ENUM('good', 'bad')": ("'good'", "good", pa.string()),
    "SET('a', 'b')": ("'a,b'", "a,b", pa.string()),
    "JSON": ("""'{"b": 1}'""", '{"b": 1}', pa.string()),
    "BIT(9)": ("b'101'", Decimal(5), pa.decimal128(20, 0)),
    "POINT": ("ST_GeomFromText('POINT(1 2)')", "POINT(1 2)", pa.string()),
    "BOOLEAN": ("TRUE", 1, pa.int8()),
}


@pytest.mark.parametrize("rest", ["#typed", "?query=SELECT%20*%20FROM%20typed"])
def test_every_type_comes_without_loss_and_null_as_null(
    server: MariaDb, tmp_path: Path, rest: str
) -> None:
    database = server.database()
    columns = ", ".join(f"c{at} {kind} NULL" for at, kind in enumerate(VALUES))
    database.execute(
        "SET time_zone = '+00:00'",
        f"CREATE TABLE typed (n INT PRIMARY KEY, {columns})",
        f"INSERT INTO typed VALUES (1, {', '.join(value for value, _, _ in VALUES.values())})",
        "INSERT INTO typed (n) VALUES (2)",
    )
    (data,) = source(tmp_path, database.url(rest)).poll()
    table = pq.read_table(io.BytesIO(data))
    names = dict(zip(VALUES, table.schema.names[1:], strict=True))
    full, empty = sorted(table.to_pylist(), key=lambda each: each["n"])
    found = {kind: (full[name], table.schema.field(name).type) for kind, name in names.items()}
    assert found == {kind: (value, arrow) for kind, (_, value, arrow) in VALUES.items()}
    assert {empty[name] for name in names.values()} == {None}


@pytest.mark.parametrize("scheme", ["mysql", "mariadb"])
def test_an_unchanged_table_is_no_news_and_a_changed_one_is_read_again(
    shop: Database, tmp_path: Path, scheme: str
) -> None:
    polled = source(tmp_path, shop.url("#orders", scheme=scheme))
    assert ids(polled.poll()) == [1, 2, 3]
    assert polled.poll() == []
    shop.execute("UPDATE orders SET note = 'N' WHERE id = 2", "DELETE FROM orders WHERE id = 3")
    assert [(each["id"], each["note"]) for each in rows(polled.poll())] == [(1, "n"), (2, "N")]


def test_a_cursor_reads_new_rows_and_those_of_its_overlap(shop: Database, tmp_path: Path) -> None:
    url = shop.url("?cursor=at&overlap=1m#orders")
    polled = source(tmp_path, url)
    assert ids(polled.poll()) == [1, 2, 3]
    assert polled.poll() == []
    shop.execute(order(5), order(4, minute=2))
    assert ids(polled.poll()) == [2, 4, 3, 5]
    shop.execute(order(6, minute=5))
    assert ids(polled.poll()) == [5, 6]


def test_a_number_can_be_the_cursor(shop: Database, tmp_path: Path) -> None:
    polled = source(tmp_path, shop.url("?cursor=id&overlap=0#orders"))
    assert ids(polled.poll()) == [1, 2, 3]
    shop.execute(order(4))
    assert ids(polled.poll()) == [4]


def test_rows_without_a_key_come_in_one_order_whatever_their_collation(
    server: MariaDb, tmp_path: Path
) -> None:
    database = server.database()
    values = ["('a', 1)", "('A', 1)", "('a', NULL)", "('A', 1)", "('ä', 2)"]
    for name, listed in (("one", values), ("two", values[::-1])):
        database.execute(
            f"CREATE TABLE {name} (t VARCHAR(9), n INT)",
            f"INSERT INTO {name} VALUES {', '.join(listed)}",
        )
    found = [rows(source(tmp_path, database.url(f"#{name}")).poll()) for name in ("one", "two")]
    assert found[0] == found[1]


def test_all_that_is_read_is_one_moment(shop: Database, tmp_path: Path) -> None:
    from odfbuild.ingest.fetch.database.mysql import Mysql, open_mysql

    asked = wanted(shop.url("#orders"), "shop")
    with open_mysql(asked, IngestSettings(), "shop") as opened:
        assert isinstance(opened, Mysql)
        shop.execute(order(9))
        (batch,) = opened.batches("SELECT id FROM orders ORDER BY id")
        assert batch.column(0).to_pylist() == ["1", "2", "3"]
        with pytest.raises(OdfbuildError, match="may not be read"):
            list(opened.batches("DELETE FROM orders"))


def test_a_big_table_is_read_in_parts(server: MariaDb, tmp_path: Path) -> None:
    database = server.database()
    database.execute(
        "CREATE TABLE many (id INT PRIMARY KEY, t VARCHAR(30))",
        "INSERT INTO many SELECT seq, REPEAT('x', seq % 30) FROM seq_1_to_50001",
    )
    assert ids(source(tmp_path, database.url("#many")).poll()) == list(range(1, 50002))


@pytest.mark.parametrize(
    ("rest", "code", "words"),
    [
        ("#nothing", "E0463", "the table 'nothing'"),
        ("#nowhere.orders", "E0463", "nowhere.orders"),
        ("?query=SELECT%20missing%20FROM%20orders", "E0464", "a column that is not there"),
        ("?query=SELECT%201%20FROM", "E0472", "fails"),
        ("?cursor=note#orders", "E0465", "cannot be the cursor"),
        ("?cursor=absent#orders", "E0464", "no column"),
        ("?ssl-mode=SOME#orders", "E0470", "ssl-mode"),
        ("?sslmode=require#orders", "E0470", "did you mean"),
        ("?ssl-mode=VERIFY_IDENTITY#orders", "E0461", "cannot connect"),
    ],
)
def test_what_is_wrong_has_its_own_error(
    shop: Database, tmp_path: Path, rest: str, code: str, words: str
) -> None:
    error = error_of(source(tmp_path, shop.url(rest)))
    assert error.code == code
    assert words in f"{error.message} {error.help}"


def test_a_refused_login_and_a_server_that_is_not_there_differ(
    shop: Database, server: MariaDb, tmp_path: Path
) -> None:
    refused = error_of(source(tmp_path, shop.url("#orders", password="wrong")))
    assert refused.code == "E0462"
    away = shop.url("#orders").replace(f":{server.port}/", ":1/")
    assert error_of(source(tmp_path, away)).code == "E0461"
    denied = source(tmp_path, shop.url("#mysql.user"))
    assert error_of(denied).code == "E0463"


def test_a_value_that_no_time_can_hold_is_refused(server: MariaDb, tmp_path: Path) -> None:
    database = server.database()
    database.execute(
        "SET sql_mode = ''",
        "CREATE TABLE odd (id INT PRIMARY KEY, day DATE)",
        "INSERT INTO odd VALUES (1, '0000-00-00')",
    )
    error = error_of(source(tmp_path, database.url("#odd")))
    assert (error.code, "0000-00-00" in error.message) == ("E0466", True)


def test_a_lost_connection_loses_nothing(shop: Database, server: MariaDb, tmp_path: Path) -> None:
    polled = source(tmp_path, shop.url("#orders"))
    assert ids(polled.poll()) == [1, 2, 3]
    server.stop()
    assert error_of(polled).code == "E0461"
    server.start()
    shop.execute(order(4))
    assert ids(polled.poll()) == [1, 2, 3, 4]


def test_a_lock_is_waited_for_no_longer_than_allowed(shop: Database, tmp_path: Path) -> None:
    with closing(shop.server.owner(shop.name)) as owner, owner.cursor() as cursor:
        cursor.execute("LOCK TABLES orders WRITE")
        polled = source(tmp_path, shop.url("#orders"), idle_seconds=1)
        assert error_of(polled).code == "E0473"


def test_a_look_tells_columns_and_key(shop: Database, tmp_path: Path) -> None:
    found = look_at_database(shop.url("#orders"), IngestSettings(), tmp_path)
    assert found.columns == (
        ("id", "INT"),
        ("amount", "DECIMAL(10, 2)"),
        ("note", "STRING"),
        ("at", "TIMESTAMP(6)"),
    )
    assert found.key == ("id",)
