"""Changes of a table: `postgresql://host/db?changes=SLOT#orders`, read from a real server."""

from __future__ import annotations

import io
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from odfbuild.errors import IngestError
from odfbuild.ingest.fetch import fetch
from odfbuild.ingest.fetch.database import address
from odfbuild.ingest.fetch.database.address import reads_changes
from odfbuild.ingest.fetch.database.changes import manage, read
from odfbuild.ingest.fetch.url import check_url
from odfbuild.odf.model import (
    FetchStepUrl,
    MergeStrategy,
    MergeStrategyChangelogStream,
    MergeStrategyLedger,
    MergeStrategySnapshot,
    MergeStrategyUpsertStream,
)
from odfbuild.odf.timestamp import Timestamp
from tests.ingest.changes.reader import Reader
from tests.ingest.contexts import SETTINGS, at
from tests.ingest.test_database_source import VALUES
from tests.servers.changes import postgres_with_changes, slot_of, with_table
from tests.servers.postgres import PASSWORD, USER, Database, Postgres, admin, connect, postgres

ORDERS = "CREATE TABLE orders (id int PRIMARY KEY, amount numeric(10, 2), note text)"


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres_with_changes() as started:
        yield started


@pytest.fixture
def shop(server: Postgres) -> Database:
    return with_table(server, ORDERS)


@pytest.fixture
def orders(shop: Database, tmp_path: Path) -> Iterator[Reader]:
    """A source that was created, and read once."""
    shop.execute("INSERT INTO orders VALUES (1, 1.5, 'a'), (2, 2.5, 'b')")
    reader = Reader(tmp_path, shop)
    assert reader.create() == "created"
    assert (reader.poll(), reader.wholes) == (0, 1)
    yield reader
    reader.source.drop()  # A slot keeps the log of all databases of the server.


def table(database: Database, columns: str = "id, amount, note") -> dict[Any, tuple[Any, ...]]:
    return {row[0]: row for row in database.rows(f"SELECT {columns} FROM orders")}


def says(reader: Reader) -> dict[Any, tuple[Any, ...]]:
    """The same, with numbers as the client of `table` gives them."""
    return {
        key: tuple(str(each) if isinstance(each, Decimal) else each for each in row.values())
        for key, row in reader.state.items()
    }


def error_of(do: Callable[[], object]) -> IngestError:
    with pytest.raises(IngestError) as raised:
        do()
    assert PASSWORD not in str([raised.value.message, raised.value.notes, raised.value.help])
    assert raised.value.help
    return raised.value


def test_each_change_comes_once_in_the_order_of_commits(shop: Database, orders: Reader) -> None:
    assert says(orders).keys() == {1, 2}
    shop.execute(
        "INSERT INTO orders VALUES (3, 3, 'c'), (4, 4, NULL)",
        "UPDATE orders SET note = 'x' WHERE id = 1",
        "UPDATE orders SET id = 9 WHERE id = 2",
        "UPDATE orders SET note = note",  # changes nothing
        "DELETE FROM orders WHERE id = 3",
        "DO $$ BEGIN UPDATE orders SET amount = 7; DELETE FROM orders WHERE id = 4; END $$",
        "DO $$ BEGIN INSERT INTO orders VALUES (50, 1, ''); RAISE 'no'; "
        "EXCEPTION WHEN others THEN NULL; END $$",
    )
    orders.poll()
    operations = [(operation, row["id"]) for operation, row in orders.changes]
    assert operations == [
        (0, 3), (0, 4), (2, 1), (3, 1), (1, 2), (0, 9), (1, 3),
        (2, 4), (3, 4), (2, 1), (3, 1), (2, 9), (3, 9), (1, 4),
    ]  # fmt: skip
    assert says(orders) == table(shop)
    assert orders.poll() == 0
    assert len(orders.poller.found) == 2


def test_the_event_time_of_a_batch_is_that_of_its_last_commit(
    shop: Database, orders: Reader
) -> None:
    shop.execute("INSERT INTO orders VALUES (3, 3, 'c')")
    orders.poll()
    ((now,),) = shop.rows("SELECT (extract(epoch FROM now()) * 1000)::bigint")
    found = orders.poller.found[-1].event_time
    assert found is not None
    assert Timestamp.from_millis(now - 60_000) < found <= Timestamp.from_millis(now)


def test_every_type_comes_as_change_as_it_comes_from_the_table(
    server: Postgres, tmp_path: Path
) -> None:
    columns = ", ".join(f"c{at} {kind}" for at, kind in enumerate(VALUES))
    values = ", ".join(value for value, _, _ in VALUES.values())
    database = with_table(
        server,
        "CREATE TYPE mood AS ENUM ('good', 'bad')",
        "CREATE DOMAIN small AS int",
        f"CREATE TABLE orders (id int PRIMARY KEY, {columns}, d small, f float8, g float4, "
        "b char(3))",
    )
    reader = Reader(tmp_path, database)
    reader.create()
    reader.poll()
    database.execute(
        f"INSERT INTO orders VALUES (1, {values}, 5, 'NaN', '-Infinity', 'x')",
        "INSERT INTO orders (id, f, g) VALUES (2, 1e-300, 0.1)",
        "DELETE FROM orders WHERE id = 2",
        "INSERT INTO orders (id, f, g) VALUES (2, 1e300, 3.4e38)",
    )
    reader.poll()
    streamed = pq.read_table(io.BytesIO(reader.poller.committed[-1] or b""))
    assert reader.create(again=True) == "created"
    reader.poll()
    read_whole = pq.read_table(io.BytesIO(reader.poller.committed[-1] or b""))
    names = read_whole.schema.names
    assert streamed.select(names).schema == read_whole.schema
    last = {row["id"]: row for row in streamed.select(names).to_pylist()}
    whole = {row["id"]: row for row in read_whole.to_pylist()}
    assert repr(last) == repr(whole)  # NaN is not equal to itself
    reader.source.drop()


def test_long_values_that_an_update_leaves_are_there(shop: Database, orders: Reader) -> None:
    """The server does not send them again; they come from the old row."""
    long = "(SELECT string_agg(md5(n::text), '') FROM generate_series(1, 5000) n)"
    shop.execute(
        "ALTER TABLE orders ALTER note SET STORAGE EXTERNAL",
        f"INSERT INTO orders VALUES (5, 1, {long})",
        "UPDATE orders SET amount = 2 WHERE id = 5",
    )
    orders.poll()
    orders.poll()
    assert says(orders) == table(shop)
    assert len(orders.state[5]["note"]) == 160_000


@pytest.mark.parametrize("crash", ["before", "after"])
def test_a_run_that_is_killed_before_or_after_a_commit_neither_loses_nor_doubles(
    shop: Database, orders: Reader, crash: str
) -> None:
    for number in range(10, 16):
        shop.execute(f"INSERT INTO orders VALUES ({number}, 1, 'n')")
        orders.poll(crash=crash)
    orders.poll()
    assert says(orders) == table(shop)
    assert len(orders.changes) == 6


def test_a_block_never_cuts_a_transaction(shop: Database, tmp_path: Path) -> None:
    reader = Reader(tmp_path, shop, target_records=10)
    reader.create()
    reader.poll()
    for number in range(8):
        first = number * 100
        shop.execute(
            f"INSERT INTO orders SELECT n, 1, '{number}' FROM "
            f"generate_series({first}, {first + 30}) n"
        )
    reader.poll()
    contents = [pq.read_table(io.BytesIO(each or b"")) for each in reader.poller.committed[1:]]
    assert [each.num_rows for each in contents] == [31] * 8
    assert [{*each["note"].to_pylist()} for each in contents] == [{str(n)} for n in range(8)]
    reader.source.drop()


def test_a_transaction_of_many_rows_is_written_as_it_comes(
    shop: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from odfbuild.ingest.fetch.database.changes import transactions

    held = []
    flush = transactions._File.flush

    def counted(self: Any) -> None:
        held.append(len(self._rows))
        flush(self)

    monkeypatch.setattr(transactions._File, "flush", counted)
    reader = Reader(tmp_path, shop)
    reader.create()
    reader.poll()
    shop.execute(
        "INSERT INTO orders SELECT n, n, repeat('x', 100) FROM generate_series(1, 70000) n"
    )
    assert reader.poll() == 70_000
    assert max(held) <= 65_536
    assert len(held) > 1
    reader.source.drop()


def test_the_table_and_its_changes_join_exactly_while_others_write(
    shop: Database, tmp_path: Path
) -> None:
    """Writers never stop while the slot is created and the table is read for the first time."""
    shop.execute("INSERT INTO orders SELECT n, 0, '' FROM generate_series(1, 40) n")
    stop = threading.Event()
    failed: list[BaseException] = []

    def write(seed: int) -> None:
        import random

        walk = random.Random(seed)
        try:
            with admin(shop.server, shop.name) as execute:
                while not stop.is_set():
                    one = walk.randint(1, 40)
                    execute(
                        f"DO $$ BEGIN UPDATE orders SET amount = amount + 1 WHERE id = {one}; "
                        f"INSERT INTO orders VALUES ({one + 100 * seed}, 1, 'w') "
                        f"ON CONFLICT (id) DO UPDATE SET amount = orders.amount + 1; "
                        f"IF random() < 0.2 THEN DELETE FROM orders WHERE id = {one + 100 * seed}; "
                        "END IF; END $$"
                    )
        except BaseException as error:
            failed.append(error)

    writers = [threading.Thread(target=write, args=(seed,)) for seed in (1, 2, 3)]
    for each in writers:
        each.start()
    try:
        for round_ in range(2):
            reader = Reader(tmp_path / str(round_), shop)
            (tmp_path / str(round_)).mkdir()
            reader.create(again=round_ > 0)
            for _ in range(3):
                reader.poll()
            assert reader.wholes == 1
    finally:
        stop.set()
        for each in writers:
            each.join()
    assert failed == []
    reader.poll()
    assert says(reader) == table(shop)
    assert reader.changes
    reader.source.drop()


def test_transactions_that_are_open_while_the_table_is_read_come_as_changes(
    shop: Database, tmp_path: Path
) -> None:
    shop.execute("INSERT INTO orders VALUES (1, 1, '')")
    reader = Reader(tmp_path, shop, idle_seconds=0.5)
    reader.create()
    with connect(shop) as late:
        with late.cursor() as cursor:
            cursor.execute("INSERT INTO orders VALUES (2, 2, 'late')")
        # It might be in the log already, so the snapshot waits for it.
        error = error_of(reader.poll)
        assert (error.code, "do not end" in error.message) == ("E0473", True)
        late.commit()
    reader.poll()
    assert says(reader) == table(shop)
    with connect(shop) as late:
        with late.cursor() as cursor:
            cursor.execute("INSERT INTO orders VALUES (3, 3, 'later')")
        shop.execute("INSERT INTO orders VALUES (4, 4, '')")
        assert reader.poll() == 1
        late.commit()
    assert reader.poll() == 1
    assert says(reader) == table(shop)
    reader.source.drop()


COLUMN_CHANGES = {
    "a column with a default": "ALTER TABLE orders ADD COLUMN extra int DEFAULT 5",
    "a wider type": "ALTER TABLE orders ALTER id TYPE bigint",
    "a renamed column": "ALTER TABLE orders RENAME note TO remark",
    "a dropped column": "ALTER TABLE orders DROP COLUMN note",
    "new values of the same type": "ALTER TABLE orders ALTER amount TYPE numeric(10, 2) "
    "USING amount * 2",
    "a column that is dropped and back": "ALTER TABLE orders DROP COLUMN note; "
    "ALTER TABLE orders ADD COLUMN note text",
}


@pytest.mark.parametrize("what", COLUMN_CHANGES)
def test_where_columns_change_the_table_is_read_again(
    shop: Database, orders: Reader, what: str
) -> None:
    """The server tells nothing of what this did to rows."""
    shop.execute(
        "INSERT INTO orders VALUES (3, 3, 'before')",
        *COLUMN_CHANGES[what].split("; "),
        "INSERT INTO orders (id, amount) VALUES (4, 4)",
    )
    orders.poll()
    assert orders.wholes == 2
    assert says(orders) == table(shop, "*")
    shop.execute("UPDATE orders SET amount = 8 WHERE id = 4", "DELETE FROM orders WHERE id = 1")
    orders.poll()
    assert orders.wholes == 2
    assert says(orders) == table(shop, "*")


def test_changes_before_a_change_of_columns_come_one_by_one(shop: Database, orders: Reader) -> None:
    shop.execute(
        "INSERT INTO orders VALUES (3, 3, 'x')",
        "DELETE FROM orders WHERE id = 3",
        "ALTER TABLE orders ADD COLUMN extra int",
        "INSERT INTO orders VALUES (4, 4, 'y', 1)",
    )
    orders.poll()
    assert [operation for operation, _ in orders.changes] == [0, 1]
    assert (orders.wholes, orders.state[4]["extra"]) == (2, 1)


def test_a_change_of_columns_within_a_transaction_is_no_different(
    shop: Database, orders: Reader
) -> None:
    shop.execute(
        "INSERT INTO orders VALUES (3, 3, 'x')",
        "DO $$ BEGIN INSERT INTO orders VALUES (4, 4, 'y'); ALTER TABLE orders ADD COLUMN e int "
        "DEFAULT 1; INSERT INTO orders VALUES (5, 5, 'z', 2); END $$",
    )
    orders.poll()
    assert says(orders) == table(shop, "*")
    assert len(orders.changes) == 1


def test_a_declared_column_that_is_renamed_is_told_behind_the_changes_before(
    shop: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_URL", shop.url())
    step = FetchStepUrl(url=f"${{{{ env.SHOP_URL }}}}?changes={slot_of(shop)}#orders")
    assert reads_changes(step.url)
    source = manage.ChangesSource("some.data", step.url, SETTINGS)
    source.create(again=False)
    context = replace(at(tmp_path), columns=("id", "note", "op"))
    (whole,) = fetch(step, None, context)
    shop.execute("INSERT INTO orders VALUES (3, 3, 'x')", "ALTER TABLE orders RENAME note TO notes")
    found = fetch(step, whole.state, context)
    changes = next(found)
    rows = pq.read_table(changes.file).to_pylist()
    assert rows == [{"op": 0, "id": 3, "note": "x"}]
    error = error_of(lambda: next(found))
    assert (error.code, error.help) == ("E0420", "did you mean 'notes'?")
    assert error.notes == ("its columns are: id, amount, notes",)
    shop.execute("ALTER TABLE orders RENAME notes TO note")
    (again,) = fetch(step, changes.state, context)
    assert again.whole
    source.drop()


def test_columns_that_are_not_declared_change_nothing(shop: Database, tmp_path: Path) -> None:
    slot = slot_of(shop)
    step = FetchStepUrl(url=shop.url(f"?changes={slot}#orders"))
    source = manage.ChangesSource("some.data", step.url, SETTINGS)
    source.create(again=False)
    context = replace(at(tmp_path), columns=("id", "note", "op"))
    shop.execute("INSERT INTO orders VALUES (1, 1, 'x')")
    (whole,) = fetch(step, None, context)
    assert pq.read_schema(whole.file).names == ["id", "note"]
    shop.execute(
        "ALTER TABLE orders ADD COLUMN bad timestamptz DEFAULT 'infinity'",
        "UPDATE orders SET amount = 2",
        "UPDATE orders SET note = 'y'",
    )
    (changes,) = fetch(step, whole.state, context)
    found = pq.read_table(changes.file).to_pylist()
    assert found == [{"op": 2, "id": 1, "note": "x"}, {"op": 3, "id": 1, "note": "y"}]
    (again,) = fetch(step, changes.state, replace(context, columns=("id", "amount")))
    assert (again.whole, pq.read_schema(again.file).names) == (True, ["id", "amount"])
    source.drop()


def test_without_changes_of_the_table_the_position_moves_with_the_log(
    shop: Database, orders: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.execute("CREATE TABLE other (a text)", "INSERT INTO other VALUES ('x')")
    assert orders.poll() == 0
    assert len(orders.poller.found) == 1
    monkeypatch.setattr(read, "IDLE_BYTES", 1)
    orders.poll()
    moved = orders.poller.found[1:]
    assert [each.file for each in moved] == [None] * len(moved)
    assert moved
    assert "the position moved" in moved[0].note
    monkeypatch.undo()
    shop.execute("INSERT INTO orders VALUES (3, 3, 'c')")
    assert orders.poll() == 1
    assert says(orders) == table(shop)


def test_a_server_that_crashes_and_comes_back_is_read_on(
    server: Postgres, shop: Database, orders: Reader
) -> None:
    shop.execute("INSERT INTO orders VALUES (3, 3, 'c')")
    orders.poll(crash="after")
    shop.execute("INSERT INTO orders VALUES (4, 4, 'd')")
    server.stop("immediate")
    try:
        assert error_of(orders.poll).code == "E0461"
    finally:
        server.start()
    orders.poll()
    assert says(orders) == table(shop)
    assert len(orders.changes) == 2


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("TRUNCATE orders", "the table was truncated"),
        (
            "ALTER TABLE orders REPLICA IDENTITY DEFAULT; UPDATE orders SET note = 'q'; "
            "ALTER TABLE orders REPLICA IDENTITY FULL",
            "an update came without the old row",
        ),
        (
            "ALTER TABLE orders REPLICA IDENTITY DEFAULT; DELETE FROM orders; "
            "ALTER TABLE orders REPLICA IDENTITY FULL",
            "a deletion came without the old row",
        ),
    ],
)
def test_a_change_that_tells_too_little_is_refused_behind_those_before_it(
    shop: Database, orders: Reader, statement: str, said: str
) -> None:
    shop.execute("INSERT INTO orders VALUES (3, 3, 'c')", *statement.split("; "))
    shop.execute("INSERT INTO orders VALUES (4, 4, 'd')")
    for _ in range(2):
        error = error_of(orders.poll)
        assert (error.code, said in error.message) == ("E0493", True)
    assert orders.state.keys() == {1, 2, 3}
    assert "odfbuild source create some.data --resnapshot" in (error.help or "")
    orders.create(again=True)
    orders.poll()
    assert says(orders) == table(shop)


def test_a_value_that_no_dataset_can_hold_is_refused_behind_those_before_it(
    shop: Database, tmp_path: Path
) -> None:
    shop.execute("ALTER TABLE orders ADD at date")
    reader = Reader(tmp_path, shop)
    reader.create()
    reader.poll()
    shop.execute(
        "INSERT INTO orders VALUES (1, 1, 'good', '2026-01-01')",
        "INSERT INTO orders VALUES (2, 2, 'bad', 'infinity')",
        "UPDATE orders SET at = '2026-01-02' WHERE id = 2",
    )
    error = error_of(reader.poll)
    assert (error.code, "'infinity'" in error.message) == ("E0466", True)
    assert reader.state.keys() == {1}
    reader.create(again=True)
    reader.poll()
    assert says(reader) == table(shop, "*")
    reader.source.drop()


def test_a_source_that_was_not_created_is_told(shop: Database, tmp_path: Path) -> None:
    error = error_of(Reader(tmp_path, shop).poll)
    assert error.code == "E0490"
    assert "odfbuild source create some.data" in (error.help or "")


LOST = {
    "dropped slot": (
        "SELECT pg_drop_replication_slot('{slot}')::text",
        "its replication slot is gone",
    ),
    "dropped publication": ("DROP PUBLICATION {slot}", "its publication is gone"),
    "another table": (
        "ALTER PUBLICATION {slot} DROP TABLE orders",
        "its publication has not all changes",
    ),
    "fewer operations": (
        "ALTER PUBLICATION {slot} SET (publish = 'insert')",
        "its publication has not all changes",
    ),
    "fewer rows": (
        "ALTER PUBLICATION {slot} SET TABLE ONLY orders WHERE (id > 5)",
        "its publication has not all changes",
    ),
    "fewer columns": (
        "ALTER PUBLICATION {slot} SET TABLE ONLY orders (id, amount, note)",
        "its publication has not all changes",
    ),
    "moved": (
        "SELECT pg_replication_slot_advance('{slot}', pg_current_wal_lsn())::text",
        "somebody else confirmed changes",
    ),
    "another slot of that name": (
        "SELECT pg_drop_replication_slot('{slot}')::text; "
        "SELECT pg_create_logical_replication_slot('{slot}', 'pgoutput')::text",
        "somebody else confirmed changes",
    ),
}


@pytest.mark.parametrize("what", LOST)
def test_changes_that_the_server_does_not_have_any_more_are_told_and_nothing_is_lost(
    shop: Database, orders: Reader, what: str
) -> None:
    statements, said = LOST[what]
    shop.execute("INSERT INTO orders VALUES (3, 3, 'c')", "DELETE FROM orders WHERE id = 1")
    for each in statements.format(slot=slot_of(shop)).split("; "):
        (shop.rows if each.startswith("SELECT") else shop.execute)(each)
    error = error_of(orders.poll)
    assert (error.code, said in error.message) == ("E0491", True)
    assert orders.state.keys() == {1, 2}
    if what not in ("moved", "another slot of that name"):
        assert orders.source.status().status in ("incomplete", "lost")
        assert error_of(orders.create).code == "E0491"
    assert orders.create(again=True) == "created"
    orders.poll()
    assert says(orders) == table(shop)


def test_a_slot_that_the_server_gave_up_is_told(tmp_path: Path) -> None:
    small = ("max_slot_wal_keep_size=1MB", "max_wal_size=32MB", "min_wal_size=32MB")
    with postgres_with_changes(*small) as server:
        shop = with_table(server, ORDERS)
        reader = Reader(tmp_path, shop)
        reader.create()
        reader.poll()
        shop.execute("CREATE TABLE filler (a text)")
        for _ in range(4):
            shop.execute(
                "INSERT INTO filler SELECT repeat('x', 1000) FROM generate_series(1, 20000)",
                "SELECT pg_switch_wal()",
                "CHECKPOINT",
            )
        assert reader.source.status().status == "lost"
        error = error_of(reader.poll)
        assert (error.code, "gave it up" in error.message) == ("E0491", True)
        shop.execute("INSERT INTO orders VALUES (3, 3, 'c')")
        reader.create(again=True)
        reader.poll()
        assert says(reader) == table(shop)


def test_a_server_that_was_restored_from_a_backup_is_told(shop: Database, orders: Reader) -> None:
    state = orders.poller.state
    assert state is not None
    lsn, _, rest = state.value.partition(" ")
    orders.poller.state = replace(state, value=f"F{lsn} {rest}")
    error = error_of(orders.poll)
    assert (error.code, "restored from a backup" in error.message) == ("E0491", True)


def test_a_slot_that_somebody_reads_is_waited_for(
    server: Postgres, shop: Database, tmp_path: Path
) -> None:
    reader = Reader(tmp_path, shop, connect_seconds=0.5)
    reader.create()
    reader.poll()
    slot = slot_of(shop)
    shop.execute("INSERT INTO orders VALUES (1, 1, 'x')")
    is_active = f"SELECT active FROM pg_replication_slots WHERE slot_name = '{slot}'"
    other = subprocess.Popen(
        [
            str(server.bin / "pg_recvlogical"),
            f"--dbname=postgresql://postgres@127.0.0.1:{server.port}/{shop.name}",
            f"--slot={slot}",
            "--start",
            "--file=-",
            "--option=proto_version=1",
            f"--option=publication_names={slot}",
            "--status-interval=0",
        ],
        stdout=subprocess.DEVNULL,
    )
    try:
        while shop.rows(is_active) == [(False,)]:
            assert other.poll() is None
            time.sleep(0.05)
        error = error_of(reader.poll)
        assert (error.code, slot in error.message) == ("E0494", True)
        assert reader.source.status().in_use
    finally:
        other.kill()  # without telling the server that it has anything
        other.wait()
    patient = Reader(tmp_path, shop)
    patient.poller.state, patient.state = reader.poller.state, reader.state
    patient.poll()
    assert says(patient) == table(shop)
    reader.source.drop()


UNSUITABLE = {
    "CREATE TABLE orders (id int PRIMARY KEY); ALTER TABLE orders REPLICA IDENTITY DEFAULT": (
        "its replica identity is DEFAULT",
        "ALTER TABLE public.orders REPLICA IDENTITY FULL",
    ),
    "CREATE TABLE orders (id int PRIMARY KEY); ALTER TABLE orders REPLICA IDENTITY NOTHING": (
        "its replica identity is NOTHING",
        "REPLICA IDENTITY FULL",
    ),
    "CREATE TABLE orders (id int) PARTITION BY RANGE (id)": ("no ordinary table", "each partition"),
    "CREATE UNLOGGED TABLE orders (id int PRIMARY KEY)": ("no ordinary table", "Snapshot"),
    "CREATE VIEW orders AS SELECT 1 AS id": ("no ordinary table", "Snapshot"),
}


@pytest.mark.parametrize("statements", UNSUITABLE)
def test_a_table_whose_changes_are_not_told_is_refused(
    server: Postgres, tmp_path: Path, statements: str
) -> None:
    said, help = UNSUITABLE[statements]
    database = server.database()
    database.execute(*statements.split("; "))
    if "VIEW" not in statements and "REPLICA" not in statements:
        database.execute("ALTER TABLE orders REPLICA IDENTITY FULL")
    error = error_of(lambda: Reader(tmp_path, database).create())
    assert (error.code, said in error.message) == ("E0492", True)
    assert help in (error.help or "")


KEYS = {
    "id int, UNIQUE (id)": "give the table a primary key",
    "id int PRIMARY KEY DEFERRABLE": "give the table a primary key",
    "id int NOT NULL, a int NOT NULL, PRIMARY KEY (id, a)": "set `merge.primaryKey` to [a, id]",
    "id int": "give the table a primary key",
}


@pytest.mark.parametrize("columns", KEYS)
def test_a_key_that_does_not_tell_rows_apart_is_refused(
    server: Postgres, tmp_path: Path, columns: str
) -> None:
    database = with_table(server, f"CREATE TABLE orders ({columns})")
    reader = Reader(tmp_path, database)
    reader.create()
    context = replace(at(tmp_path), merge=MergeStrategyChangelogStream(primary_key=("id",)))
    error = error_of(lambda: list(fetch(reader.poller.step, None, context)))
    assert (error.code, KEYS[columns] in (error.help or "")) == ("E0492", True)
    reader.source.drop()


def test_a_column_of_the_name_of_the_column_of_operations_is_refused(
    shop: Database, orders: Reader
) -> None:
    shop.execute("ALTER TABLE orders ADD op int")
    error = error_of(orders.poll)
    assert (error.code, "a column 'op'" in error.message) == ("E0492", True)


def test_a_server_without_a_log_for_changes_is_refused(tmp_path: Path) -> None:
    with postgres() as server:
        shop = with_table(server, ORDERS)
        error = error_of(lambda: Reader(tmp_path, shop).create())
    assert (error.code, "`wal_level` is replica" in error.message) == ("E0492", True)
    assert "ALTER SYSTEM SET wal_level = logical" in (error.help or "")


def test_a_user_who_may_not_create_gets_the_statements_and_nothing_is_left(
    server: Postgres, shop: Database, tmp_path: Path
) -> None:
    reader = Reader(tmp_path, shop)
    shop.execute("ALTER TABLE orders OWNER TO postgres")
    error = error_of(reader.create)
    slot = slot_of(shop)
    assert error.code == "E0495"
    assert f'CREATE PUBLICATION "{slot}" FOR TABLE ONLY public.orders' in (error.help or "")
    assert "must be owner" in error.notes[0]
    shop.execute(f"ALTER TABLE orders OWNER TO {USER}", f"ALTER ROLE {USER} NOREPLICATION")
    try:
        error = error_of(reader.create)
        assert error.code == "E0495"
        assert f"SELECT pg_create_logical_replication_slot('{slot}', 'pgoutput')" in (
            error.help or ""
        )
        assert reader.source.status().status == "absent"
        # Somebody else can create them.
        shop.execute(f"CREATE PUBLICATION {slot} FOR TABLE ONLY orders")
        shop.rows(
            f"SELECT slot_name::text FROM pg_create_logical_replication_slot('{slot}', 'pgoutput')"
        )
        assert reader.source.status().status == "ready"
        shop.execute("INSERT INTO orders VALUES (3, 3, 'c')")
        error = error_of(reader.poll)
        assert (error.code, "REPLICATION" in (error.help or "")) == ("E0495", True)
    finally:
        shop.execute(f"ALTER ROLE {USER} REPLICATION")
    reader.poll()
    error = error_of(reader.source.drop)
    assert (error.code, f'DROP PUBLICATION "{slot}"' in (error.help or "")) == ("E0495", True)
    assert reader.source.status().status == "ready"
    shop.execute(f"DROP PUBLICATION {slot}")
    assert reader.source.drop() == "dropped"


def test_creating_and_dropping_say_what_they_found(shop: Database, orders: Reader) -> None:
    assert orders.create() == "kept"
    status = orders.source.status()
    assert (status.status, status.slot, status.warning) == ("ready", slot_of(shop), "")
    assert replace(status, held_bytes=3 << 30).warning.startswith(
        f"some.data: the replication slot '{status.slot}' holds back 3.0 GiB"
    )
    assert orders.source.drop() == "dropped"
    assert orders.source.drop() == "absent"
    assert "odfbuild source create some.data" in orders.source.status().warning


def test_a_slot_of_another_plugin_or_database_is_left_alone(
    server: Postgres, shop: Database, tmp_path: Path
) -> None:
    slot = slot_of(shop)
    other = server.database()
    create = f"SELECT slot_name::text FROM pg_create_logical_replication_slot('{slot}', 'pgoutput')"
    other.rows(create)
    reader = Reader(tmp_path, shop)
    for do in (reader.create, reader.source.drop):
        error = error_of(do)
        assert (error.code, "another database" in error.message) == ("E0492", True)
    other.rows(f"SELECT pg_drop_replication_slot('{slot}')::text")


BAD_ADDRESSES = {
    "postgresql://host/shop?changes=Slot#orders": "no name for `changes`",
    "postgresql://host/shop?changes=#orders": "no name for `changes`",
    "postgresql://host/shop?changes=s&cursor=id#orders": "changes are those of a table",
    "postgresql://host/shop?changes=s&query=SELECT 1": "changes are those of a table",
    "sqlite:shop.db?changes=s#orders": "only PostgreSQL and MariaDB tell changes",
}


@pytest.mark.parametrize("url", BAD_ADDRESSES)
def test_a_wrong_address_is_found_before_anything_is_read(url: str) -> None:
    error = error_of(lambda: check_url(url))
    assert (error.code, BAD_ADDRESSES[url] in error.message) == ("E0470", True)


@pytest.mark.parametrize(
    ("merge", "fits"),
    [
        (MergeStrategyChangelogStream(primary_key=("id",)), True),
        (MergeStrategyUpsertStream(primary_key=("id",)), True),
        (MergeStrategySnapshot(primary_key=("id",)), False),
        (MergeStrategyLedger(primary_key=("id",)), False),
    ],
)
def test_a_merge_that_takes_no_changes_is_refused(merge: MergeStrategy, fits: bool) -> None:
    url = "postgresql://host/shop?changes=s#orders"
    asked = address.wanted(url, url)
    if fits:
        address.check_merge(asked, merge, url)
    else:
        assert error_of(lambda: address.check_merge(asked, merge, url)).code == "E0469"


def test_another_slot_is_another_source() -> None:
    one = address.place_of("postgresql://a@h/d?changes=s#t")
    assert one == address.place_of("postgresql://b@h/d?sslmode=require&changes=s#t")
    assert one != address.place_of("postgresql://a@h/d?changes=r#t")
    assert one != address.place_of("postgresql://a@h/d#t")
