"""`kill -9` while a root reads changes of PostgreSQL: nothing lost, nothing twice, nothing cut."""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from odfbuild.ingest.fetch.database.changes.position import parse_lsn, parse_position
from odfbuild.odf.model import AddData
from tests.apply.killer import Killer
from tests.apply.tiny import Tiny
from tests.servers.binlog import mariadb_with_changes, rows, url_of
from tests.servers.binlog import with_table as table_of_mariadb
from tests.servers.changes import postgres_with_changes, slot_of, with_table
from tests.servers.postgres import Database, Postgres, admin

pytestmark = pytest.mark.long

KILLED = -9
ROOT = """\
kind: DatasetSnapshot
version: 1
content:
  name: root
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {{kind: Url, url: "{url}"}}
      read:
        kind: Parquet
        schema: [{schema}]
      merge: {{kind: ChangelogStream, primaryKey: [id]}}
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres_with_changes() as started:
        yield started


def url_with_slot(database: Database) -> str:
    return database.url(f"?changes={slot_of(database)}#t")


def project(root: Path, url: str, schema: str) -> Tiny:
    tiny = Tiny.fresh(root)
    (root / "datasets" / "derived.yaml").unlink()
    (root / "datasets" / "root.yaml").write_text(ROOT.format(url=url, schema=schema))
    return tiny


def test_an_apply_that_is_killed_at_any_step_is_completed_by_the_next(
    tmp_path: Path, server: Postgres
) -> None:
    """The engine of this test appends all that it gets, so a change that came twice would show."""
    table = "CREATE TABLE t (id bigint PRIMARY KEY, value bigint, event_time timestamptz)"
    database = with_table(server, table, table="t")
    url = url_with_slot(database)
    tiny = project(tmp_path / "p", url, "event_time TIMESTAMP, id BIGINT, value BIGINT")

    with Killer("adbc_driver_postgresql.dbapi", "odfbuild.cli.source") as killer:
        insert(database, 0)
        assert killer.run(tiny.root, "source", "create", "root")[0] == 0
        insert(database, 2)
        complete(killer, tiny, database, lambda sql: [row[0] for row in database.rows(sql)])
        killer.run(tiny.root, "source", "drop", "root", "-y")


def test_the_same_is_true_of_a_binary_log(tmp_path: Path) -> None:
    table = "CREATE TABLE t (id bigint PRIMARY KEY, value bigint, event_time datetime)"
    with mariadb_with_changes() as server, Killer("pymysqlreplication") as killer:
        database = table_of_mariadb(server, table)
        url = url_of(database, table="t")
        tiny = project(tmp_path / "p", url, "event_time TIMESTAMP, id BIGINT, value BIGINT")
        insert(database, 0)
        complete(killer, tiny, database, lambda sql: [each["id"] for each in rows(database, sql)])


def insert(database: Any, first: int) -> None:
    for number in (first, first + 1):
        database.execute(f"INSERT INTO t VALUES ({number}, 1, '2026-01-01')")


def complete(killer: Killer, tiny: Tiny, database: Any, ids: Callable[[str], list[int]]) -> None:
    """Kill an apply at each of its steps in turn, and let another one complete it."""
    for kill_at in range(100):
        code, _ = killer.run(tiny.root, "apply", "-y", kill_at=kill_at)
        if code == 0:
            break
        assert code == KILLED
        insert(database, 10 + 2 * kill_at)
        assert killer.run(tiny.root, "apply", "-y")[0] == 0, (tiny.root / "run.log").read_text()
        expected = ids("SELECT id FROM t ORDER BY id")
        assert sorted(tiny.ids("root")) == expected, f"killed at step {kill_at}"
        insert(database, 1000 + 2 * kill_at)
    else:
        raise AssertionError("an apply has a number of steps")
    assert kill_at >= len(["object", "block", "head"])


ACCOUNTS = 50
PAYMENTS = """
DO $$ DECLARE one int; BEGIN FOR n IN 1..{number} LOOP
one := 1 + (random() * 24)::int * 2 + {odd};
UPDATE t SET value = value - n WHERE id = least(one, {accounts});
UPDATE t SET value = value + n WHERE id = 1 + (one + 7) % {accounts};
IF random() < 0.01 THEN DELETE FROM t WHERE id = 1000 + one;
ELSIF random() < 0.01 THEN INSERT INTO t VALUES (1000 + one, 0) ON CONFLICT DO NOTHING; END IF;
COMMIT; END LOOP; END $$
"""


@pytest.mark.timeout(3600)
@pytest.mark.spark
@pytest.mark.parametrize(
    ("transactions", "a_slice"),
    [
        (1_000, 1_000),
        # Slow: Spark merges 100,000 transactions, which takes some minutes.
        pytest.param(100_000, 25_000, marks=pytest.mark.slow),
    ],
)
def test_transactions_come_whole_while_applies_are_killed(
    tmp_path: Path, server: Postgres, transactions: int, a_slice: int
) -> None:
    """Each transaction moves money from one account to another, so after whole transactions the sum
    is what it was; and after each block the records say what another reader of the server's log
    says of the table at that position."""
    database = with_table(
        server,
        "CREATE TABLE t (id int PRIMARY KEY, value bigint)",
        f"INSERT INTO t SELECT n, 1000 FROM generate_series(1, {ACCOUNTS}) n",
        table="t",
    )
    witness = f"witness_{database.name}"
    database.rows(f"SELECT pg_create_logical_replication_slot('{witness}', 'test_decoding')::text")
    tiny = project(tmp_path / "p", url_with_slot(database), "id BIGINT, value BIGINT")
    with (tiny.root / "odfbuild.yaml").open("a") as file:
        file.write(f"  ingest: {{targetRecordsPerSlice: {a_slice}}}\n")
    walk = random.Random(29)

    def pay(odd: int) -> None:
        with admin(server, database.name) as execute:
            execute("SET deadlock_timeout = '10ms'")
            left = transactions // 2
            while left > 0:
                some = min(left, 500)
                try:
                    execute(PAYMENTS.format(number=some, odd=odd, accounts=ACCOUNTS))
                except Exception as error:
                    if "deadlock" not in str(error):
                        raise
                else:
                    left -= some

    def apply() -> bool:
        """Whether it was killed: at a step, or at any moment."""
        after = 3 * walk.random() if walk.random() < 0.5 else None
        kill_at = walk.randint(0, 20) if after is None else None
        code, _ = killer.run(tiny.root, "apply", "-y", kill_at=kill_at, after=after)
        assert code in (0, KILLED), (tiny.root / "run.log").read_text()
        return code == KILLED

    with Killer("adbc_driver_postgresql.dbapi", "odfbuild.cli.source", spark=True) as killer:
        assert killer.run(tiny.root, "source", "create", "root")[0] == 0
        assert killer.run(tiny.root, "apply", "-y")[0] == 0, (tiny.root / "run.log").read_text()
        payers = [threading.Thread(target=pay, args=(odd,)) for odd in (0, 1)]
        for each in payers:
            each.start()
        killed = 0
        while any(each.is_alive() for each in payers):
            killed += apply()
        for each in payers:
            each.join()
        while apply():
            killed += 1
        assert killer.run(tiny.root, "apply", "-y")[0] == 0, (tiny.root / "run.log").read_text()
        killer.run(tiny.root, "source", "drop", "root", "-y")
    print(f"{killed} applies were killed")
    assert replayed(tiny, transactions_of(database, witness)) > transactions
    assert values_of(tiny) == dict(database.rows("SELECT id, value FROM t"))
    database.rows(f"SELECT pg_drop_replication_slot('{witness}')::text")
    assert killed > 5 or transactions < 10_000


CHANGE = re.compile(r"table public\.t: (INSERT|UPDATE|DELETE):(.*)")
VALUE = re.compile(r"(id|value)\[[a-z]+\]:(-?\d+)")


Written = list[tuple[int, int | None]]
"""Rows by their keys, with new values; `None`: deleted."""


def transactions_of(database: Database, slot: str) -> Iterator[tuple[int, Written]]:
    """What transactions did to the table, and where in the log they end."""
    written: Written = [(each, 1000) for each in range(1, ACCOUNTS + 1)]
    yield 0, written
    sql = f"SELECT lsn::text, data FROM pg_logical_slot_peek_changes('{slot}', NULL, NULL)"
    for lsn, data in database.rows(sql):
        found = CHANGE.fullmatch(data)
        if found is not None:
            row = dict(VALUE.findall(found[2].rpartition("new-tuple:")[2]))
            written.append((int(row["id"]), None if found[1] == "DELETE" else int(row["value"])))
        elif data.startswith("BEGIN"):
            written = []
        elif data.startswith("COMMIT"):
            yield parse_lsn(lsn), written


def replayed(tiny: Tiny, tables: Iterator[tuple[int, Written]]) -> int:
    """How many corrections there are; records fit each other, and the table after each block."""
    events = [each for each in tiny.events("root") if isinstance(each, AddData) and each.new_data]
    positions = {
        each.new_data.offset_interval.end: parse_position(each.new_source_state.value)
        for each in events
        if each.new_data and each.new_source_state
    }
    state: dict[int, dict[str, Any]] = {}
    changes = compared = 0
    table: dict[int, int] = {}
    waiting = next(tables, None)
    for each in tiny.records("root"):
        record = {k: v for k, v in each.items() if k not in ("op", "offset", "system_time")}
        if each["op"] in (1, 2):
            assert state.pop(each["id"]) == record
        else:
            assert each["id"] not in state
            state[each["id"]] = record
        changes += each["op"] == 2
        position = positions.get(each["offset"])
        if position is None:
            continue
        values = {key: record["value"] for key, record in state.items()}
        assert sum(values.values()) == 1000 * ACCOUNTS
        if position.seen is None:
            while waiting is not None and waiting[0] <= position.lsn:
                for row, value in waiting[1]:
                    table.pop(row, None)
                    if value is not None:
                        table[row] = value
                waiting = next(tables, None)
            compared += 1
            assert values == table
    assert compared
    return changes


def values_of(tiny: Tiny) -> dict[int, int]:
    """The state after all blocks."""
    state: dict[int, int] = {}
    for each in tiny.records("root"):
        if each["op"] in (0, 3):
            state[each["id"]] = each["value"]
        elif each["op"] == 1:
            del state[each["id"]]
    return state
