"""`kill -9` while a root reads changes of PostgreSQL: nothing lost, nothing twice, nothing cut."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from odfbuild.odf.model import AddData
from tests.apply.killer import Killer
from tests.apply.tiny import Tiny
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


def project(root: Path, database: Database, schema: str) -> Tiny:
    tiny = Tiny.fresh(root)
    (root / "datasets" / "derived.yaml").unlink()
    url = database.url(f"?changes={slot_of(database)}#t")
    (root / "datasets" / "root.yaml").write_text(ROOT.format(url=url, schema=schema))
    return tiny


def test_an_apply_that_is_killed_at_any_step_is_completed_by_the_next(
    tmp_path: Path, server: Postgres
) -> None:
    """The engine of this test appends all that it gets, so a change that came twice would show."""
    table = "CREATE TABLE t (id bigint PRIMARY KEY, value bigint, event_time timestamptz)"
    database = with_table(server, table, table="t")
    tiny = project(tmp_path / "p", database, "event_time TIMESTAMP, id BIGINT, value BIGINT")

    def insert(first: int) -> None:
        for number in (first, first + 1):
            database.execute(f"INSERT INTO t VALUES ({number}, 1, '2026-01-01')")

    with Killer("adbc_driver_postgresql.dbapi", "odfbuild.cli.source") as killer:
        insert(0)
        assert killer.run(tiny.root, "source", "create", "root")[0] == 0
        insert(2)
        for kill_at in range(100):
            code, _ = killer.run(tiny.root, "apply", "-y", kill_at=kill_at)
            if code == 0:
                break
            assert code == KILLED
            insert(10 + 2 * kill_at)
            assert killer.run(tiny.root, "apply", "-y")[0] == 0, (tiny.root / "run.log").read_text()
            expected = [row[0] for row in database.rows("SELECT id FROM t ORDER BY id")]
            assert sorted(tiny.ids("root")) == expected, f"killed at step {kill_at}"
            insert(1000 + 2 * kill_at)
        else:
            raise AssertionError("an apply has a number of steps")
        assert kill_at >= len(["object", "block", "head"])
        killer.run(tiny.root, "source", "drop", "root", "-y")


TRANSACTIONS = 100_000
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
@pytest.mark.slow  # Spark merges 100,000 transactions: some minutes.
@pytest.mark.spark
def test_a_hundred_thousand_transactions_come_whole_while_applies_are_killed(
    tmp_path: Path, server: Postgres
) -> None:
    """Each transaction moves money from one account to another, so after whole transactions the sum
    is what it was; and each record that takes back another one is equal to it."""
    database = with_table(
        server,
        "CREATE TABLE t (id int PRIMARY KEY, value bigint)",
        f"INSERT INTO t SELECT n, 1000 FROM generate_series(1, {ACCOUNTS}) n",
        table="t",
    )
    tiny = project(tmp_path / "p", database, "id BIGINT, value BIGINT")
    with (tiny.root / "odfbuild.yaml").open("a") as file:
        file.write("  ingest: {targetRecordsPerSlice: 25000}\n")
    walk = random.Random(29)

    def pay(odd: int) -> None:
        with admin(server, database.name) as execute:
            execute("SET deadlock_timeout = '10ms'")
            left = TRANSACTIONS // 2
            while left > 0:
                some = min(left, 500)
                try:
                    execute(PAYMENTS.format(number=some, odd=odd, accounts=ACCOUNTS))
                except Exception as error:
                    if "deadlock" not in str(error):
                        raise
                else:
                    left -= some

    with Killer("adbc_driver_postgresql.dbapi", "odfbuild.cli.source", spark=True) as killer:
        assert killer.run(tiny.root, "source", "create", "root")[0] == 0
        assert killer.run(tiny.root, "apply", "-y")[0] == 0, (tiny.root / "run.log").read_text()
        payers = [threading.Thread(target=pay, args=(odd,)) for odd in (0, 1)]
        for each in payers:
            each.start()
        killed = 0
        while any(each.is_alive() for each in payers):
            code, _ = killer.run(tiny.root, "apply", "-y", kill_at=walk.randint(0, 20))
            assert code in (0, KILLED), (tiny.root / "run.log").read_text()
            killed += code == KILLED
        for each in payers:
            each.join()
        while killer.run(tiny.root, "apply", "-y", kill_at=walk.randint(0, 20))[0] == KILLED:
            killed += 1
        assert killer.run(tiny.root, "apply", "-y")[0] == 0, (tiny.root / "run.log").read_text()
        killer.run(tiny.root, "source", "drop", "root", "-y")
    state = replayed(tiny)
    assert {key: each["value"] for key, each in state.items()} == dict(
        database.rows("SELECT id, value FROM t")
    )
    assert killed > 5


def replayed(tiny: Tiny) -> dict[int, dict[str, Any]]:
    """The state after all blocks; after each of them, transactions are whole."""
    events = [each for each in tiny.events("root") if isinstance(each, AddData) and each.new_data]
    ends = {each.new_data.offset_interval.end for each in events if each.new_data}
    state: dict[int, dict[str, Any]] = {}
    changes = 0
    for each in tiny.records("root"):
        record = {k: v for k, v in each.items() if k not in ("op", "offset", "system_time")}
        if each["op"] in (1, 2):
            assert state.pop(each["id"]) == record
        else:
            assert each["id"] not in state
            state[each["id"]] = record
        changes += each["op"] == 2
        if each["offset"] in ends:
            assert sum(each["value"] for each in state.values()) == 1000 * ACCOUNTS
    assert changes > TRANSACTIONS
    return state
