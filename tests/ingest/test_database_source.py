"""Tables and queries of databases as sources: `postgresql://host/db?cursor=updated_at#orders`."""

from __future__ import annotations

import io
import math
import sqlite3
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfbuild.errors import EnvironmentProblem, IngestError, OdfbuildError
from odfbuild.ingest.check import problems_of
from odfbuild.ingest.fetch import fetch
from odfbuild.ingest.fetch.database import address
from odfbuild.ingest.fetch.database.postgresql import Postgresql
from odfbuild.ingest.fetch.url import check_url
from odfbuild.odf.model import (
    FetchStepUrl,
    MergeStrategy,
    MergeStrategyAppend,
    MergeStrategyLedger,
    MergeStrategySnapshot,
    MergeStrategyUpsertStream,
    ReadStepCsv,
    ReadStepParquet,
    RequestHeader,
    SetPollingSource,
)
from tests.ingest.contexts import Poller, at
from tests.servers.postgres import PASSWORD, Database, Postgres, connect, postgres

ORDERS = "CREATE TABLE orders (id int PRIMARY KEY, amount numeric(10, 2), at timestamptz)"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres() as started:
        yield started


@pytest.fixture
def shop(server: Postgres) -> Database:
    """A table of three orders, one a minute from noon on."""
    database = server.database()
    database.execute(ORDERS, *(order(each) for each in (1, 2, 3)))
    return database


def order(number: int, minute: int | None = None) -> str:
    minute = number if minute is None else minute
    at = f"timestamptz '{NOON.isoformat()}' + interval '{minute} minutes'"
    return f"INSERT INTO orders VALUES ({number}, {number}.5, {at})"


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
    return raised.value


LONG = "1.23456789012345678901234567890123456789012345"
UUID = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
VALUES = {
    "smallint": ("1", 1, pa.int16()),
    "integer": ("2", 2, pa.int32()),
    "bigint": (str(2**62), 2**62, pa.int64()),
    "real": ("1.5", 1.5, pa.float32()),
    "float8": ("0.1", 0.1, pa.float64()),
    "numeric(10, 2)": ("1.5", Decimal("1.50"), pa.decimal128(10, 2)),
    "numeric(38, 0)": ("9" * 38, Decimal("9" * 38), pa.decimal128(38, 0)),
    "numeric(40, 2)": ("1.5", "1.50", pa.string()),
    "numeric": (LONG, LONG, pa.string()),
    "boolean": ("true", True, pa.bool_()),
    "text": ("'ä'", "ä", pa.string()),
    "varchar(3)": ("'abc'", "abc", pa.string()),
    "bytea": (r"'\x00ff'", b"\x00\xff", pa.binary()),
    "date": ("'0044-03-15'", date(44, 3, 15), pa.date32()),
    "timestamptz": (
        "'2026-01-01 01:00:00.000001+02'",
        datetime(2025, 12, 31, 23, 0, 0, 1, UTC),
        pa.timestamp("us", "UTC"),
    ),
    "timestamp": (
        "'2026-01-01 01:00:00'",
        datetime(2026, 1, 1, 1, tzinfo=UTC),
        pa.timestamp("us", "UTC"),
    ),
    "time": ("'01:02:03.5'", "01:02:03.5", pa.string()),
    "interval": ("'1 day 2 hours'", "P1DT2H", pa.string()),
    "uuid": (f"'{UUID.upper()}'", UUID, pa.string()),
    "json": ("""'{"b":1, "a":2}'""", '{"b":1, "a":2}', pa.string()),
    "jsonb": ("""'{"b":1}'""", '{"b": 1}', pa.string()),
    "text[]": ("ARRAY['x', 'y,z']", '{x,"y,z"}', pa.string()),
    "money": ("1.2", "1.20", pa.string()),
    "mood": ("'good'", "good", pa.string()),
    "inet": ("'10.0.0.1/8'", "10.0.0.1/8", pa.string()),
    "oid": (str(2**32 - 1), 2**32 - 1, pa.int64()),
}


@pytest.mark.parametrize("rest", ["#typed", "?query=SELECT%20*%20FROM%20typed"])
def test_every_type_comes_without_loss_and_null_as_null(
    server: Postgres, tmp_path: Path, rest: str
) -> None:
    database = server.database()
    columns = ", ".join(f"c{at} {kind}" for at, kind in enumerate(VALUES))
    values = ", ".join(value for value, _, _ in VALUES.values())
    database.execute(
        "CREATE TYPE mood AS ENUM ('good', 'bad')",
        f"CREATE TABLE typed (n int PRIMARY KEY, {columns})",
        f"INSERT INTO typed VALUES (1, {values})",
        "INSERT INTO typed (n) VALUES (2)",
    )
    (data,) = source(tmp_path, database.url(rest)).poll()
    table = pq.read_table(io.BytesIO(data))
    names = dict(zip(VALUES, table.schema.names[1:], strict=True))
    full, empty = sorted(table.to_pylist(), key=lambda each: each["n"])
    assert {kind: full[names[kind]] for kind in VALUES} == {k: v for k, (_, v, _) in VALUES.items()}
    assert {kind: table.schema.field(names[kind]).type for kind in VALUES} == {
        kind: expected for kind, (_, _, expected) in VALUES.items()
    }
    assert {empty[name] for name in names.values()} == {None}


def test_a_whole_table_is_news_only_if_a_value_changed(shop: Database, tmp_path: Path) -> None:
    orders = source(tmp_path, shop.url("#public.orders"))
    assert ids(orders.poll()) == [1, 2, 3]
    shop.execute("UPDATE orders SET amount = amount WHERE id = 1", "VACUUM FULL orders")
    assert orders.poll() == []
    shop.execute("UPDATE orders SET amount = 7 WHERE id = 1")
    assert rows(orders.poll())[0]["amount"] == Decimal("7.00")
    shop.execute("DELETE FROM orders")
    assert rows(orders.poll()) == []
    assert orders.poll() == []


def test_rows_without_a_key_have_an_order_too(server: Postgres, tmp_path: Path) -> None:
    database = server.database()
    database.execute(
        "CREATE TABLE notes (body json)", """INSERT INTO notes VALUES ('{"b":1}'), ('{"a":1}')"""
    )
    for rest in ("#notes", "?query=TABLE notes"):
        notes = source(tmp_path, database.url(rest))
        assert [each["body"] for each in rows(notes.poll())] == ['{"a":1}', '{"b":1}']
        database.execute("UPDATE notes SET body = body WHERE body::text LIKE '%a%'")
        assert notes.poll() == []


def test_a_cursor_reads_new_rows_and_those_of_its_overlap(shop: Database, tmp_path: Path) -> None:
    orders = source(tmp_path, shop.url("?cursor=at&overlap=90s#orders"))
    assert ids(orders.poll()) == [1, 2, 3]
    assert orders.state.value.startswith("2026-01-01T12:03:00.000000Z f1220")
    assert orders.poll() == []
    shop.execute(order(4))
    assert ids(orders.poll()) == [2, 3, 4]
    shop.execute("UPDATE orders SET amount = 9, at = at + interval '1 hour' WHERE id = 1")
    assert ids(orders.poll()) == [3, 4, 1]
    assert orders.poll() == []


def test_without_overlap_only_rows_behind_the_position_come(shop: Database, tmp_path: Path) -> None:
    orders = source(tmp_path, shop.url("?cursor=id&overlap=0#orders"))
    assert ids(orders.poll()) == [1, 2, 3]
    assert orders.state.value == "3"
    assert orders.poll() == []
    shop.execute(order(7))
    assert ids(orders.poll()) == [7]


def test_a_transaction_that_commits_late_is_read_within_the_overlap(
    shop: Database, tmp_path: Path
) -> None:
    orders = source(tmp_path, shop.url("?cursor=at&overlap=10m#orders"))
    with connect(shop) as late:
        with late.cursor() as cursor:
            cursor.execute(order(9, minute=2))
        shop.execute(order(4))
        assert ids(orders.poll()) == [1, 2, 3, 4]
        assert orders.poll() == []
        late.commit()
    # The largest value is as it was.
    assert ids(orders.poll()) == [1, 2, 9, 3, 4]
    assert orders.poll() == []


@pytest.mark.parametrize(
    ("kind", "values", "overlap", "states", "again"),
    [
        ("bigint", ("10", "2000"), "1000", ("10", "2000"), [2]),
        ("date", ("'2026-01-01'", "'2026-02-01'"), "36h", ("2026-01-01", "2026-02-01"), [2]),
        (
            "timestamp",
            ("'2026-01-01 00:00'", "'2026-01-01 00:05'"),
            "10m",
            ("2026-01-01T00:00:00.000000", "2026-01-01T00:05:00.000000"),
            [1, 2],
        ),
    ],
)
def test_cursors_are_numbers_dates_or_times(
    server: Postgres,
    tmp_path: Path,
    kind: str,
    values: tuple[str, str],
    overlap: str,
    states: tuple[str, str],
    again: list[int],
) -> None:
    database = server.database()
    database.execute(
        f"CREATE TABLE t (id int PRIMARY KEY, c {kind})", f"INSERT INTO t VALUES (1, {values[0]})"
    )
    found = source(tmp_path, database.url(f"?cursor=c&overlap={overlap}#t"))
    assert ids(found.poll()) == [1]
    assert found.state.value.split(" ")[0] == states[0]
    database.execute(f"INSERT INTO t VALUES (2, {values[1]})")
    assert 2 in ids(found.poll())
    assert found.state.value.split(" ")[0] == states[1]
    database.execute("INSERT INTO t SELECT 3, max(c) FROM t")
    assert ids(found.poll()) == [*again, 3]
    assert found.poll() == []


def test_all_statements_of_a_run_see_one_moment(
    shop: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody commits before each statement."""
    numbers = iter(range(10, 1000))
    batches = Postgresql.batches

    def disturbed(self: Postgresql, sql: str) -> Iterator[Any]:
        number = next(numbers)
        shop.execute(order(number, minute=number * 60))
        return batches(self, sql)

    monkeypatch.setattr(Postgresql, "batches", disturbed)
    orders = source(tmp_path, shop.url("?cursor=at&overlap=0#orders"))
    read: list[int] = []
    for _ in range(3):
        found = rows(orders.poll())
        newest = max(each["at"] for each in found)
        assert orders.state.value == f"{newest.replace(tzinfo=None).isoformat()}.000000Z"
        read += [each["id"] for each in found]
    monkeypatch.undo()
    read += ids(orders.poll())
    assert read == [1, 2, 3, *range(10, next(numbers))]


def test_declared_columns_are_read_and_no_others(shop: Database, tmp_path: Path) -> None:
    step = FetchStepUrl(url=shop.url("?cursor=at#orders"))
    context = at(tmp_path)
    for columns, expected in (
        (("amount", "id", "op"), ["id", "amount"]),
        (None, ["id", "amount", "at"]),
    ):
        (found,) = fetch(step, None, replace(context, columns=columns))
        assert pq.read_schema(found.file).names == expected


def test_a_declared_column_that_a_table_has_not_is_told_unless_it_may_be_missing(
    shop: Database, tmp_path: Path
) -> None:
    step = FetchStepUrl(url=shop.url("#orders"))
    declared = replace(at(tmp_path), columns=("id", "total", "op"))
    with pytest.raises(IngestError, match=r"'orders' of .* has no column 'total'") as raised:
        list(fetch(step, None, declared))
    assert raised.value.code == "E0420"
    assert raised.value.notes == ("its columns are: id, amount, at",)
    lenient = at(tmp_path, on_schema_change={"*": "ignore"})
    (found,) = fetch(step, None, replace(lenient, columns=declared.columns))
    assert pq.read_schema(found.file).names == ["id"]


WRONG = {
    "#order": ("E0463", "the table 'order' of", 'relation "order" does not exist'),
    "#shop.orders": ("E0463", "the table 'shop.orders' of", "does not exist"),
    "?cursor=att#orders": ("E0464", "the cursor 'att' is no column", None),
    "?query=SELECT no FROM orders": ("E0464", "a column that is not there", '"no" does not exist'),
    "?cursor=amount#orders": ("E0465", "'amount' (numeric(10, 2))", None),
    "?cursor=at&overlap=10#orders": ("E0465", "the overlap", None),
    "?cursor=id&overlap=10m#orders": ("E0465", "the overlap", None),
    "?query=SELEC": ("E0472", "the query of", "syntax error"),
    "?query=SELECT 1/0 AS n": ("E0472", "the query of", "division by zero"),
    "?query=DELETE FROM orders RETURNING *": ("E0472", "the query of", "syntax error"),
}


@pytest.mark.parametrize("rest", WRONG)
def test_what_a_database_does_not_have_is_an_error(
    shop: Database, tmp_path: Path, rest: str
) -> None:
    code, message, note = WRONG[rest]
    error = error_of(source(tmp_path, shop.url(rest)))
    assert error.code == code
    assert message in error.message
    assert note is None or note in " ".join(error.notes)
    assert PASSWORD not in str([error.message, error.notes, error.help])
    assert error.help
    assert str(error.location) == "fetch.url"


def test_wrong_login_host_and_database_are_told_apart(shop: Database, tmp_path: Path) -> None:
    url = shop.url("#orders")
    port = f":{shop.server.port}/"
    wrong = {
        shop.url("#orders", password="not-the-one"): ("E0462", "password authentication failed"),
        url.replace(shop.name, "no_shop"): ("E0462", '"no_shop" does not exist'),
        url.replace("reader:", "nobody-here:"): ("E0462", "nobody-here"),
        url.replace(port, ":1/"): ("E0461", "Connection refused"),
        url.replace("127.0.0.1", "host.invalid"): ("E0461", "host.invalid"),
        url.replace("#", "?sslmode=require#"): ("E0461", "SSL"),
    }
    for address_, (code, said) in wrong.items():
        error = error_of(source(tmp_path, address_))
        assert (error.code, said in error.notes[0]) == (code, True), error
        assert "not-the-one" not in str([error.message, error.notes])


def test_a_table_that_this_user_may_not_read_is_told(server: Postgres, tmp_path: Path) -> None:
    database = server.database()
    database.execute(ORDERS, "REVOKE ALL ON orders FROM public")
    database.execute("REVOKE pg_read_all_data FROM reader")
    try:
        error = error_of(source(tmp_path, database.url("#orders")))
    finally:
        database.execute("GRANT pg_read_all_data TO reader")
    assert error.code == "E0463"
    assert "may not be read by this user" in error.message


@pytest.mark.parametrize(
    ("change", "column"),
    [
        ("UPDATE orders SET at = 'infinity' WHERE id = 2", "at"),
        ("UPDATE orders SET at = '-infinity' WHERE id = 2", "at"),
        ("UPDATE orders SET at = '0044-03-15 BC' WHERE id = 2", "at"),
        ("UPDATE orders SET at = '12000-01-01' WHERE id = 2", "at"),
        ("UPDATE orders SET amount = 'NaN' WHERE id = 2", "amount"),
    ],
)
def test_a_value_that_no_dataset_can_hold_is_refused(
    shop: Database, tmp_path: Path, change: str, column: str
) -> None:
    shop.execute(change)
    error = error_of(source(tmp_path, shop.url("#orders")))
    assert error.code == "E0466"
    assert f"column '{column}'" in error.message
    text = f"?query=SELECT id, CAST({column} AS text) AS {column} FROM orders"
    assert len(rows(source(tmp_path, shop.url(text)).poll())) == 3


def test_a_cursor_that_is_null_is_refused(shop: Database, tmp_path: Path) -> None:
    shop.execute("INSERT INTO orders (id) VALUES (9)")
    error = error_of(source(tmp_path, shop.url("?cursor=at#orders")))
    assert error.code == "E0467"
    without = shop.url("?cursor=at&query=SELECT * FROM orders WHERE at IS NOT NULL")
    assert ids(source(tmp_path, without).poll()) == [1, 2, 3]


def test_a_cursor_that_goes_back_is_refused_and_the_position_is_kept(
    shop: Database, tmp_path: Path
) -> None:
    orders = source(tmp_path, shop.url("?cursor=at&overlap=30s#orders"))
    orders.poll()
    shop.execute("DELETE FROM orders WHERE id > 1")
    error = error_of(orders)
    assert error.code == "E0468"
    assert "2026-01-01T12:01:00.000000Z" in error.message
    assert orders.state.value.startswith("2026-01-01T12:03:00")
    shop.execute(order(5))
    assert ids(orders.poll()) == [5]


def test_an_emptied_table_has_no_news(shop: Database, tmp_path: Path) -> None:
    orders = source(tmp_path, shop.url("?cursor=id&overlap=0#orders"))
    orders.poll()
    shop.execute("DELETE FROM orders")
    assert orders.poll() == []
    shop.execute(order(4))
    assert ids(orders.poll()) == [4]


def test_a_cursor_whose_type_changed_is_refused(shop: Database, tmp_path: Path) -> None:
    orders = source(tmp_path, shop.url("?cursor=id#orders"))
    orders.poll()
    shop.execute("ALTER TABLE orders ALTER id TYPE timestamptz USING to_timestamp(id)")
    error = error_of(orders)
    assert error.code == "E0465"
    assert "'3', is no such value" in error.message


def test_a_locked_table_is_waited_for_as_long_as_a_source_may_be_silent(
    shop: Database, tmp_path: Path
) -> None:
    with connect(shop) as busy:
        with busy.cursor() as cursor:
            cursor.execute("LOCK TABLE orders IN ACCESS EXCLUSIVE MODE")
        error = error_of(source(tmp_path, shop.url("#orders"), idle_seconds=0.2))
    assert error.code == "E0473"


@pytest.mark.parametrize(
    ("encoding", "byte", "expected"),
    [("LATIN1", "\\xe4", "ä"), ("SQL_ASCII", "\\xc3a4", "ä"), ("SQL_ASCII", "\\xe4", None)],
)
def test_text_is_utf_8_whatever_the_database_keeps(
    server: Postgres, tmp_path: Path, encoding: str, byte: str, expected: str | None
) -> None:
    database = server.database(encoding)
    text = f"convert_from(bytea '{byte}', '{encoding}')"
    database.execute("CREATE TABLE t (a text)", f"INSERT INTO t VALUES ({text})")
    found = source(tmp_path, database.url("#t"))
    if expected is None:
        error = error_of(found)
        assert error.code == "E0472"
        assert 'invalid byte sequence for encoding "UTF8": 0xe4' in error.notes[0]
    else:
        assert rows(found.poll()) == [{"a": expected}]


def test_more_bytes_than_a_project_allows_are_refused(shop: Database, tmp_path: Path) -> None:
    error = error_of(source(tmp_path, shop.url("#orders"), max_bytes=10))
    assert error.code == "E0409"


def test_a_query_that_fails_or_is_too_slow_behind_its_first_rows_is_told(
    shop: Database, tmp_path: Path
) -> None:
    query = "?query=SELECT 1 / (90000 - id) AS n FROM generate_series(1, 100000) AS id"
    error = error_of(source(tmp_path, shop.url(query)))
    assert (error.code, "division by zero" in error.notes[0]) == ("E0472", True)
    query = "?query=SELECT id, pg_sleep(0.001) IS NULL AS n FROM generate_series(1, 9000) AS id"
    error = error_of(source(tmp_path, shop.url(query), total_seconds=0.5))
    assert error.code == "E0473"


def test_a_connection_that_is_lost_while_rows_come_loses_nothing(
    shop: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.execute(
        "CREATE TABLE wide AS SELECT id, repeat(md5(id::text), 60) FROM "
        "generate_series(1, 20000) AS id"
    )
    wide = source(tmp_path, shop.url("#wide"))
    batches = Postgresql.batches
    ended = []

    def ending(self: Postgresql, sql: str) -> Iterator[Any]:
        for batch in batches(self, sql):
            if batch.num_rows > 1 and not ended:
                ended.append(1)
                shop.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename='reader'"
                )
            yield batch

    monkeypatch.setattr(Postgresql, "batches", ending)
    error = error_of(wide)
    assert (error.code, ended) == ("E0461", [1])
    assert "run `odfbuild apply` again" in error.help
    assert len(rows(wide.poll())) == 20_000


def test_a_server_that_crashes_and_comes_back_is_read_on(server: Postgres, tmp_path: Path) -> None:
    database = server.database()
    database.execute(ORDERS, order(1))
    orders = source(tmp_path, database.url("?cursor=at#orders"))
    orders.poll()
    server.stop("immediate")
    try:
        assert error_of(orders).code == "E0461"
    finally:
        server.start()
    database.execute(order(2))
    assert ids(orders.poll()) == [1, 2]


def test_a_password_from_the_environment_may_have_any_characters(
    server: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "p@ss/w:o#r?d&100% sure"
    database = server.database()
    database.execute(ORDERS, order(1), f"ALTER ROLE reader PASSWORD '{secret}'")
    monkeypatch.setenv("SHOP_PASSWORD", secret)
    template = database.url("?cursor=at#orders", password="${{ env.SHOP_PASSWORD }}")
    try:
        orders = source(tmp_path, template)
        assert ids(orders.poll()) == [1]
        (found,) = orders.found
        assert found.display_name == f"postgresql://127.0.0.1:{server.port}/{database.name}#orders"
        monkeypatch.setenv("SHOP_PASSWORD", "not-the-one")
        error = error_of(orders)
    finally:
        database.execute(f"ALTER ROLE reader PASSWORD '{PASSWORD}'")
    assert error.code == "E0462"
    assert "not-the-one" not in str([error.message, error.notes])


def test_the_whole_address_may_come_from_the_environment(
    shop: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_URL", shop.url())
    orders = source(tmp_path, "${{ env.SHOP_URL }}?cursor=at#orders")
    assert ids(orders.poll()) == [1, 2, 3]
    assert orders.poll() == []
    assert orders.found[0].display_name == "${{ env.SHOP_URL }}#orders"


def test_a_missing_driver_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql.dbapi", None)
    with pytest.raises(EnvironmentProblem, match="databases") as error:
        source(tmp_path, "postgresql://host.invalid/shop#orders").poll()
    assert error.value.code == "E0903"


def test_sqlite_rows_have_one_type_a_column_or_are_text(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "shop.db") as file:
        file.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, amount, note TEXT, raw BLOB, v)")
        file.execute(
            "INSERT INTO orders VALUES (1, 1.5, 'a', x'00ff', 1), (2, 2.5, NULL, NULL, 'x')"
        )
    orders = source(tmp_path, "sqlite:shop.db?cursor=id#orders")
    assert rows(orders.poll()) == [
        {"id": 1, "amount": 1.5, "note": "a", "raw": b"\x00\xff", "v": "1"},
        {"id": 2, "amount": 2.5, "note": None, "raw": None, "v": "x"},
    ]
    assert orders.poll() == []
    with sqlite3.connect(tmp_path / "shop.db") as file:
        file.execute("INSERT INTO orders VALUES (3, 1, 'c', NULL, 2)")
    assert [each["amount"] for each in rows(orders.poll())] == ["1.5", "2.5", "1"]
    query = f"sqlite:{tmp_path}/shop.db?query=SELECT count(*) AS n FROM orders"
    assert rows(source(tmp_path, query).poll()) == [{"n": 3}]


def test_sqlite_rounds_no_number_that_stands_among_others(tmp_path: Path) -> None:
    """A NUMERIC column has whole numbers as integers, and text of SQLite has 15 digits."""
    given = [1, 0.1 + 0.2, 52.123456789012345, 5.25, None, math.inf, 1e300]
    with sqlite3.connect(tmp_path / "shop.db") as file:
        file.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, v NUMERIC)")
        file.executemany("INSERT INTO orders (v) VALUES (?)", [(each,) for each in given])
    found = rows(source(tmp_path, "sqlite:shop.db#orders").poll())
    assert [each["v"] and float(each["v"]) for each in found] == given
    assert [found[0]["v"], found[3]["v"]] == ["1", "5.25"]


def test_duckdb_rows_have_the_types_of_their_columns(tmp_path: Path) -> None:
    import duckdb

    file = str(tmp_path / "shop.duckdb")
    with duckdb.connect(file) as database:
        database.execute(
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, amount DECIMAL(10, 2), "
            "moment TIMESTAMPTZ, tags VARCHAR[], u UUID, big HUGEINT)"
        )
        database.execute(
            "INSERT INTO orders VALUES (1, 1.5, '2026-01-01 12:00+00', ['a'], "
            "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 1)"
        )
    orders = source(tmp_path, "duckdb:shop.duckdb?cursor=moment#main.orders")
    assert rows(orders.poll()) == [
        {
            "id": 1,
            "amount": Decimal("1.50"),
            "moment": NOON,
            "tags": '["a"]',
            "u": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            "big": "1",
        }
    ]
    assert orders.poll() == []
    assert orders.state.value.startswith("2026-01-01T12:00:00.000000Z f1220")
    outside = f"duckdb:shop.duckdb?query=SELECT * FROM read_csv('{tmp_path}/x.csv')"
    assert error_of(source(tmp_path, outside)).code == "E0472"


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_files_of_databases_that_lack_something_are_told(tmp_path: Path, kind: str) -> None:
    import duckdb

    file = tmp_path / "shop.db"
    assert error_of(source(tmp_path, f"{kind}:shop.db#orders")).code == "E0404"
    with duckdb.connect(str(file)) if kind == "duckdb" else sqlite3.connect(file) as database:
        database.execute("CREATE TABLE orders (id INTEGER)")
    assert error_of(source(tmp_path, f"{kind}:shop.db#order")).code == "E0463"
    assert error_of(source(tmp_path, f"{kind}:shop.db?cursor=no#orders")).code == "E0464"
    assert error_of(source(tmp_path, f"{kind}:shop.db?query=SELEC 1")).code == "E0472"
    file.write_bytes(b"this is no database, whatever its name says" * 100)
    assert error_of(source(tmp_path, f"{kind}:shop.db#orders")).code in ("E0461", "E0472")


BAD_ADDRESSES = {
    "postgresql://host/shop": "names no table and no query",
    "postgresql://host/shop?query=SELECT 1#orders": "a table and a query",
    "postgresql://host/shop?query= ;": "its `query` is empty",
    "postgresql://host/shop?curser=at#orders": "'curser' is no parameter",
    "postgresql://host/shop?cursor=#orders": "names no cursor",
    "postgresql://host/shop?overlap=1#orders": "names no cursor",
    "postgresql://host/shop?cursor=at&overlap=soon#orders": "`overlap` is 'soon'",
    "postgresql://host/shop?cursor=at&overlap=9999999d#orders": "`overlap` is",
    "postgresql://host/shop?cursor=a&cursor=b#orders": "'cursor' twice",
    "postgresql://u:${{ env.P }}@host/shop?password=x#orders": "a password does not belong",
    "postgresql://host/shop#a.b.c": "'a.b.c' is no name of a table",
    "sqlite:shop.db?sslmode=require#orders": "'sslmode' is no parameter",
    "sqlite://shop.db#orders": "names no file",
}


@pytest.mark.parametrize("url", BAD_ADDRESSES)
def test_a_wrong_address_is_found_before_anything_is_read(url: str) -> None:
    with pytest.raises(IngestError) as error:
        check_url(url)
    assert error.value.code == "E0470"
    assert BAD_ADDRESSES[url] in error.value.message
    assert error.value.help


def test_a_query_may_have_several_lines() -> None:
    found = address.wanted("postgresql://h/d?query=SELECT a -- why\nFROM b", "")
    assert found.query == "SELECT a -- why\nFROM b"


@pytest.mark.parametrize(
    ("rest", "merge", "codes"),
    [
        ("#t", MergeStrategySnapshot(primary_key=("id",)), []),
        ("?cursor=at#t", MergeStrategySnapshot(primary_key=("id",)), ["E0469"]),
        ("?cursor=at#t", MergeStrategyUpsertStream(primary_key=("id",)), []),
        ("?cursor=at#t", MergeStrategyLedger(primary_key=("id",)), []),
        ("?cursor=at#t", MergeStrategyAppend(), ["E0469"]),
        ("?cursor=at&overlap=0#t", MergeStrategyAppend(), []),
    ],
)
def test_a_merge_that_contradicts_the_cursor_is_refused(
    shop: Database, tmp_path: Path, rest: str, merge: MergeStrategy, codes: list[str]
) -> None:
    polled = SetPollingSource(
        fetch=FetchStepUrl(url=f"postgresql://u:${{{{ env.P }}}}@h/d{rest}"),
        read=ReadStepParquet(),
        merge=merge,
    )
    assert [error.code for _, error in problems_of(polled)] == codes
    # An address that comes from the environment as a whole is known when it is read.
    context = replace(at(tmp_path), merge=merge)
    step = FetchStepUrl(url=shop.url(rest.replace("#t", "#orders")))
    if codes:
        with pytest.raises(IngestError) as error:
            list(fetch(step, None, context))
        assert error.value.code == "E0469"
    else:
        assert len(list(fetch(step, None, context))) == 1


def test_a_definition_that_reads_rows_as_something_else_is_refused() -> None:
    polled = SetPollingSource(
        fetch=FetchStepUrl(
            url="postgresql://h/d#t", headers=(RequestHeader(name="X-Token", value="x"),)
        ),
        read=ReadStepCsv(),
        merge=MergeStrategySnapshot(primary_key=("id",)),
    )
    assert [error.code for _, error in problems_of(polled)] == ["E0470", "E0471"]


def test_another_login_or_overlap_is_the_same_source_and_another_table_is_not() -> None:
    one = address.place_of("postgresql://a:${{ env.A }}@h/d?cursor=at&overlap=1m#t")
    assert one == address.place_of("postgresql://b:${{ env.B }}@h/d?sslmode=require&cursor=at#t")
    assert one != address.place_of("postgresql://a@h/d?cursor=at#u")
    assert one != address.place_of("postgresql://a@h/d?cursor=id#t")
    assert one != address.place_of("postgresql://a@i/d?cursor=at#t")
    assert address.place_of("https://a@h/d?x=1") == "https://a@h/d?x=1"
