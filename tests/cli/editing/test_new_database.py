"""`odfbuild new database`: columns, key, cursor and merge as the table itself has them."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apply.in_process import Program
from tests.apply.tiny import Tiny
from tests.report.golden import assert_golden
from tests.servers.postgres import PASSWORD, Database, postgres

ORDERS = (
    "CREATE TABLE orders (id bigint, line smallint, amount numeric(10, 2), rate numeric, "
    'note text, "paidAt" timestamp, "modifiedAt" timestamptz, tags text[], '
    "PRIMARY KEY (line, id))"
)


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with postgres() as server:
        found = server.database()
        found.execute(ORDERS, "CREATE VIEW big AS SELECT * FROM orders WHERE amount > 100")
        yield found


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", PASSWORD)


def proposed(odfbuild: Program, database: Database, rest: str, *options: str) -> str:
    url = database.url(rest, password="${{ env.SHOP_PASSWORD }}")
    text = odfbuild.ok("new", "database", "orders", url, "-n", *options).out
    place = f"127.0.0.1:{database.server.port}/{database.name}"
    return text.replace(place, "db.example.org/shop")


def test_a_table_is_proposed_with_its_types_key_and_time_of_change(
    odfbuild: Program, database: Database
) -> None:
    assert_golden("new-database.txt", proposed(odfbuild, database, "#orders").rstrip())


@pytest.mark.parametrize(
    ("rest", "options", "there", "absent"),
    [
        ("#orders", ["--merge", "snapshot"], ["shop#orders", "kind: Snapshot"], ["cursor"]),
        (
            "#orders",
            ["--merge", "append"],
            ["?cursor=modifiedAt&overlap=0#orders", "kind: Append"],
            ["primaryKey"],
        ),
        ("#orders", ["--merge", "ledger", "--key", "id"], ["kind: Ledger", "- id\n"], ["- line\n"]),
        ("?cursor=id#orders", [], ["shop?cursor=id#orders", "UpsertStream"], ["eventTimeColumn"]),
        ("#big", ["--key", "id"], ["cursor=modifiedAt", "that was asked for"], []),
    ],
)
def test_what_was_asked_for_is_kept(
    odfbuild: Program,
    database: Database,
    rest: str,
    options: list[str],
    there: list[str],
    absent: list[str],
) -> None:
    text = proposed(odfbuild, database, rest, *options)
    assert [each for each in there if each not in text] == []
    assert [each for each in absent if each in text] == []


def test_a_proposal_is_valid(odfbuild: Program, database: Database) -> None:
    url = database.url("#orders", password="${{ env.SHOP_PASSWORD }}")
    odfbuild.ok("new", "database", "shop.orders", url)
    assert "all valid" in odfbuild.ok("validate").out


def test_what_cannot_be_proposed_is_told(
    odfbuild: Program, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sqlite3.connect(tmp_path / "x.db") as file:
        file.execute("CREATE TABLE t (a INTEGER)")
    mine = database.url("#orders")
    cases = {
        (): "needs to know the address",
        ("https://example.org",): "is not one address of a database",
        (database.url("#big"),): "has no primary key that could be found",
        (f"sqlite:{tmp_path}/x.db#t", "--merge", "ledger"): "looks like the time of a change",
        (database.url("?cursor=id#orders"), "--merge", "snapshot"): "a snapshot is the whole table",
        (mine, "--key", "no"): "'no' (--key) is no column",
        (mine, "--read", "csv"): "a database tells its columns itself",
        (database.url("#order"),): "error[E0463]",
        (mine.replace(f":{database.server.port}", ":1"),): "error[E0461]",
    }
    for arguments, said in cases.items():
        found = odfbuild("new", "database", "orders", *arguments)
        assert (found.code, said in found.err) == (1, True), found.err
        assert "help: " in found.err
        assert PASSWORD not in found.out + found.err


def test_lint_says_what_a_cursor_does_not_see(odfbuild: Program, database: Database) -> None:
    url = "postgresql://reader:${{ env.SHOP_PASSWORD }}@db.example.org/shop?cursor=at%s#t"
    for merge, more, seen in (
        ("UpsertStream", "", "deleted rows and updates that leave 'at' as it is"),
        ("Ledger", "", "deleted rows and updates of rows that were read"),
        ("Append", "&overlap=0", "rows that are committed after others with larger values"),
    ):
        text = f"""kind: DatasetSnapshot
version: 1
content:
  name: orders
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {{kind: Url, url: "{url % more}"}}
      read: {{kind: Parquet}}
      merge: {{kind: {merge}{"" if merge == "Append" else ", primaryKey: [id]"}}}
    - kind: SetInfo
      description: Orders
"""
        (odfbuild.root / "datasets" / "orders.yaml").write_text(text)
        said = odfbuild.ok("lint", "orders").out
        assert "warning[L026 cursor-misses]" in said
        assert seen in said
        assert "warning[L008 open-transport]: what comes over postgresql: can be read" in said
        assert "sslmode=verify-full" in said
    (odfbuild.root / "datasets" / "orders.yaml").write_text(
        text.replace("cursor=at", "sslmode=require").replace("&overlap=0", "")
    )
    assert odfbuild.ok("lint", "orders").out == "No issues found.\n"
    for scheme, more, said in (
        ("mysql", "", "add `ssl-mode=VERIFY_IDENTITY`"),
        ("mariadb", "?ssl-mode=REQUIRED", "No issues found."),
    ):
        url = f"{scheme}://reader:${{{{ env.SHOP_PASSWORD }}}}@db.example.org/shop{more}#t"
        (odfbuild.root / "datasets" / "orders.yaml").write_text(
            re.sub(r'url: ".*"', f'url: "{url}"', text)
        )
        assert said in odfbuild.ok("lint", "orders").out


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    return Tiny.fresh(tmp_path / "p")
