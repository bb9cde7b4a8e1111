"""Roots that read changes of PostgreSQL: what the chain says is what the table says."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from odfbuild.engine.contract import Engine
from tests.apply.in_process import Program, share
from tests.apply.tiny import Tiny
from tests.servers.changes import postgres_with_changes, slot_of, with_table
from tests.servers.postgres import Database, Postgres, connect

pytestmark = pytest.mark.spark

STEPS = {"ChangelogStream": 6, "UpsertStream": 3}
TABLE = "CREATE TABLE orders (id int PRIMARY KEY, value numeric(10, 2) NOT NULL, note text)"
COLUMNS = ("id BIGINT", "value DECIMAL(12, 3)", "note STRING")
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
      merge: {{kind: {merge}, primaryKey: [id]}}
"""
DERIVED = """\
kind: DatasetSnapshot
version: 1
content:
  name: derived
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{datasetRef: root}]
      transform:
        kind: Sql
        engine: spark
        queries:
          - query: >-
              SELECT max(event_time) AS event_time, note, count(*) AS n, sum(value) AS total
              FROM root GROUP BY note
"""


class Shop:
    """A project whose root reads the changes of a table."""

    def __init__(self, root: Path, server: Postgres) -> None:
        self.tiny = Tiny.fresh(root)
        self.database = with_table(server, TABLE)
        (root / "datasets" / "derived.yaml").write_text(DERIVED)

    def define(self, merge: str, columns: tuple[str, ...] = COLUMNS) -> None:
        url = self.database.url(f"?changes={slot_of(self.database)}#orders")
        schema = ", ".join(f'"{each}"' for each in columns)
        text = ROOT.format(url=url, schema=schema, merge=merge)
        (self.tiny.root / "datasets" / "root.yaml").write_text(text)

    def table(self) -> dict[int, tuple[Any, ...]]:
        rows = self.database.rows("SELECT id, value::text, note FROM orders")
        return {row[0]: row for row in rows}

    def state(self) -> dict[int, tuple[Any, ...]]:
        """What the records amount to; one that takes back another one is equal to it."""
        found: dict[int, Mapping[str, Any]] = {}
        for each in self.tiny.records("root"):
            record = {k: v for k, v in each.items() if k not in ("op", "offset", "system_time")}
            if each["op"] in (1, 2):
                assert found.pop(each["id"]) == record
            else:
                assert each["id"] not in found
                found[each["id"]] = record
        return {
            key: (key, f"{record['value']:.2f}", record["note"]) for key, record in found.items()
        }

    def totals(self) -> Counter[tuple[Any, ...]]:
        """What the records of the derivative amount to."""
        found: Counter[tuple[Any, ...]] = Counter()
        for each in self.tiny.records("derived"):
            sign = -1 if each["op"] in (1, 2) else 1
            found[(each["note"], each["n"], f"{each['total']:.2f}")] += sign
        return +found

    def expected_totals(self) -> Counter[tuple[Any, ...]]:
        rows = self.database.rows(
            "SELECT note, count(*), sum(value)::numeric(20, 2)::text FROM orders GROUP BY note"
        )
        return Counter(rows)


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres_with_changes() as started:
        yield started


@pytest.fixture
def made(
    server: Postgres,
    tmp_path: Path,
    spark_engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[tuple[Shop, Program]]:
    share(spark_engine, monkeypatch)
    shop = Shop(tmp_path / "shop", server)
    program = Program(shop.tiny.root, monkeypatch, capsys)
    yield shop, program
    program("source", "drop", "root", "-y")


def change(walk: random.Random, database: Database) -> None:
    """One transaction with some changes, whose keys change, too."""
    statements = []
    for _ in range(walk.randint(1, 8)):
        key = walk.randint(1, 25)
        note = walk.choice(["NULL", "'ä'", "''", "'x'"])
        value = walk.randint(0, 99999) / 100
        match walk.choice(["put", "put", "put", "delete", "move"]):
            case "put":
                statements.append(
                    f"INSERT INTO orders (id, value, note) VALUES ({key}, {value}, {note}) "
                    f"ON CONFLICT (id) DO UPDATE SET value = {value}, note = {note}"
                )
            case "delete":
                statements.append(f"DELETE FROM orders WHERE id = {key}")
            case "move":
                statements.append(
                    f"UPDATE orders SET id = {key + 100} WHERE id = {key} AND NOT EXISTS "
                    f"(SELECT FROM orders WHERE id = {key + 100})"
                )
    end = walk.choice(["", "", "RAISE EXCEPTION 'no';"])
    database.execute(
        f"DO $$ BEGIN BEGIN {'; '.join(statements)}; {end} "
        "EXCEPTION WHEN raise_exception THEN NULL; END; END $$"
    )


@pytest.mark.parametrize("merge", STEPS)
def test_after_any_changes_chain_and_derivatives_say_what_the_table_says(
    made: tuple[Shop, Program], server: Postgres, merge: str
) -> None:
    """Transactions that commit late or not at all, crashes of the server, columns that come and
    go, rows that are rewritten, new slots."""
    shop, program = made
    walk = random.Random(merge)
    shop.define(merge)
    for _ in range(3):
        change(walk, shop.database)
    program.ok("source", "create", "root")
    late: list[Any] = []
    for step in range(STEPS[merge]):
        for _ in range(walk.randint(0, 4)):
            change(walk, shop.database)
        event = walk.choice(["open", "commit", "crash", "rewrite", "column", "type", "again"])
        if event == "open" and not late and step:
            late.append(connect(shop.database))
            with late[0].cursor() as cursor:
                cursor.execute(f"INSERT INTO orders VALUES ({1000 + step}, 1, 'late')")
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
            shop.database.execute(
                "ALTER TABLE orders ALTER value TYPE numeric(11, 2) USING least(value + 1, 9999)"
            )
        elif event == "again" and not late:
            program.ok("source", "create", "root", "--resnapshot")
        program.apply()
        assert shop.state() == shop.table(), (step, event)
        assert shop.totals() == shop.expected_totals(), (step, event)
    if late:
        late[0].commit()
        late.pop().close()
        program.apply()
    assert shop.state() == shop.table()
    assert "up to date" in program.apply().out or "unchanged" in program.apply().out
    program.ok("verify")


def test_what_the_table_was_in_between_is_in_the_chain(made: tuple[Shop, Program]) -> None:
    shop, program = made
    shop.define("ChangelogStream")
    program.ok("source", "create", "root")
    program.apply()
    for value in (1, 2, 3):
        shop.database.execute(
            f"INSERT INTO orders VALUES (1, {value}, 'x') ON CONFLICT (id) DO UPDATE "
            f"SET value = {value}"
        )
    shop.database.execute("DELETE FROM orders")
    program.apply()
    found = [(each["op"], int(each["value"])) for each in shop.tiny.records("root")]
    assert found == [(0, 1), (2, 1), (3, 2), (2, 2), (3, 3), (1, 3)]


def test_a_new_column_that_is_declared_later_brings_its_values(made: tuple[Shop, Program]) -> None:
    shop, program = made
    shop.define("UpsertStream")
    shop.database.execute("INSERT INTO orders VALUES (1, 1, 'x'), (2, 2, 'y')")
    program.ok("source", "create", "root")
    program.apply()
    shop.database.execute("ALTER TABLE orders ADD COLUMN country text DEFAULT 'DE'")
    shop.database.execute("INSERT INTO orders VALUES (3, 3, 'z', 'FR')")
    program.apply()
    shop.define("UpsertStream", (*COLUMNS, "country STRING"))
    program.apply()
    newest = {each["id"]: each.get("country") for each in shop.tiny.records("root")}
    assert newest == {1: "DE", 2: "DE", 3: "FR"}


def test_the_verbs_say_what_there_is_and_plan_connects_to_nothing(
    made: tuple[Shop, Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    shop, program = made
    shop.define("ChangelogStream")
    slot = slot_of(shop.database)
    assert f"root  {slot}  absent" in program.ok("source", "status").out
    said = program("apply", "-y", "-s", "root")
    assert (said.code, "error[E0490]" in said.err) == (1, True)
    assert "run `odfbuild source create root`" in said.err
    assert f"slot and publication '{slot}'" in program.ok("source", "create", "ROOT").out
    assert program.ok("source", "create", "root", "--json").data == {
        "name": "root",
        "slot": slot,
        "result": "kept",
    }
    (status,) = program.ok("source", "status", "root", "--json").data
    assert (status["status"], status["in_use"]) == ("ready", False)
    for arguments in (("source", "create", "derived"), ("source", "status", "nobody")):
        said = program(*arguments)
        assert (said.code, "error[E0301]" in said.err) == (1, True)
    from adbc_driver_postgresql import dbapi

    with monkeypatch.context() as patch:
        patch.setattr(dbapi, "connect", None)
        for command in ("plan", "validate", "lint", "status", "freshness"):
            program(command)
        assert "root" in program.ok("plan").out
    assert program.ok("freshness", "--deep").err == ""
    doctor = program("doctor", "--deep").out
    assert "answered for root (3 columns)" in doctor
    assert "ready for root" in doctor
    from odfbuild.ingest.fetch.database.changes import manage

    monkeypatch.setattr(manage, "MUCH_BYTES", 0)
    assert f"'{slot}' holds back" in program("freshness", "--deep").err
    assert f"'{slot}' holds back" in program("doctor", "--deep").out
    said = program("source", "drop", "root")
    assert (said.code, "error[E0334]" in said.err) == (1, True)
    assert (
        f"Dropped replication slot and publication '{slot}'"
        in program.ok("source", "drop", "root", "-y").out
    )
    assert "There is no" in program.ok("source", "drop", "root", "-y").out
    assert "is absent: run `odfbuild source create root`" in program("freshness", "--deep").err
    server_gone = program.root / "datasets" / "root.yaml"
    server_gone.write_text(server_gone.read_text().replace("127.0.0.1:", "127.0.0.1:1"))
    assert "error[E0461]" in program("freshness", "--deep").err


def test_python_creates_and_drops_sources_too(made: tuple[Shop, Program]) -> None:
    from odfbuild import Project

    shop, program = made
    shop.define("ChangelogStream")
    project = Project(program.root)
    assert project.create_source("root") == "created"
    assert project.create_source("root", resnapshot=True) == "created"
    assert [each.status for each in project.source_status()] == ["ready"]
    assert project.drop_source("root") == "dropped"


def test_new_database_proposes_a_root_that_reads_changes(made: tuple[Shop, Program]) -> None:
    shop, program = made
    (program.root / "datasets" / "root.yaml").unlink()
    (program.root / "datasets" / "derived.yaml").unlink()
    url = shop.database.url(f"?changes={slot_of(shop.database)}#orders")
    program.ok("new", "database", "root", url)
    text = (program.root / "datasets" / "root.yaml").read_text()
    assert "kind: ChangelogStream" in text
    assert "odfbuild source create" in text
    said = program("new", "database", "other", url, "--merge", "snapshot")
    assert (said.code, "no updates and deletions" in said.err) == (1, True)
    shop.database.execute("INSERT INTO orders VALUES (1, 1, 'x')")
    program.ok("source", "create", "root")
    program.apply()
    assert shop.state() == shop.table()
