"""The example with servers: what its page shows, and that chains say what the servers say."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from examples.shop.project.day import PAYMENTS, PRICES, VISITS
from odfbuild import Project
from tests.docs.console import ROOT, Command, commands, run_all
from tests.servers.programs import program

COLUMNS = {
    "orders": ("id", "ordered_at", "customer", "sku", "quantity", "status"),
    "customers": ("id", "name", "city", "since"),
}


def test_a_python_without_the_libraries_is_told_what_to_install(tmp_path: Path) -> None:
    script = ROOT / "examples" / "shop" / "start.py"
    command = [sys.executable, "-S", str(script), str(tmp_path / "shop")]  # without its packages
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "confluent_kafka" in done.stderr
    assert "-m pip install 'odfbuild[spark,jre,databases,kafka,office,serve]'" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "shop").exists()


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the example, and a shell that knows the variables of the shop when it is open.

    Each command of a page has a shell of its own; a user has one, in which `. ./env.sh` lasts.
    """
    program("psql")
    folder = tmp_path / "odfbuild"
    folder.mkdir()
    (folder / "examples").symlink_to(ROOT / "examples")
    monkeypatch.setenv("BASH_ENV", str(tmp_path / "shop" / "env.sh"))
    # Spark starts once for them, and not once for each.
    monkeypatch.setenv("ODFBUILD_RESIDENT", "auto")
    monkeypatch.setenv("ODFBUILD_IDLE_MINUTES", "2")
    yield folder
    started = tmp_path / "shop.pid"
    if started.exists():
        subprocess.run(["bash", "-c", f"kill $(cat {started}) 2>/dev/null"], check=False)


@pytest.mark.spark
def test_two_days_of_the_shop_go_as_its_page_shows_and_chains_say_what_servers_say(
    clone: Path,
) -> None:
    first, second, end = days(commands(ROOT / "docs" / "shop.md"))
    project, left = clone.parent / "shop", scratch_folders()
    assert run_all(first, clone) == []
    chains_say_what_servers_say(project, days=(1,))
    assert run_all(second, project) == []
    chains_say_what_servers_say(project, days=(1, 2))
    stopped = Command("odfbuild engine stop", "")
    assert run_all([stopped], project) == []
    assert run_all(end, project.parent / "odfbuild") == []
    assert scratch_folders() == left


def days(listed: list[Command]) -> tuple[list[Command], list[Command], list[Command]]:
    """The commands of the first day, of the second, and those that end it."""
    texts = [each.text for each in listed]
    second, end = texts.index("python day.py 2"), texts.index("kill $(cat ../shop.pid)")
    return listed[:second], listed[second:end], listed[end:]


def scratch_folders() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob("odfbuild-shop-*"))


def chains_say_what_servers_say(project: Path, days: tuple[int, ...]) -> None:
    orders, customers = (rows_of_server(project, each) for each in COLUMNS)
    for table, rows in (("orders", orders), ("customers", customers)):
        assert [
            tuple(as_text(row[each]) for each in COLUMNS[table]) for row in state(project, table)
        ] == rows

    prices = {sku: Decimal(str(price)) for sku, (_, price) in PRICES[2 * (max(days) // 2)].items()}
    assert {each["sku"]: each["price"] for each in state(project, "prices")} == prices
    payments = {each[0]: each for day in days for each in PAYMENTS[day]}
    assert {
        (each["id"], each["order_id"], each["amount"]) for each in state(project, "payments")
    } == {(id, order, Decimal(cents) / 100) for id, _, order, cents in payments.values()}
    visits = [each for day in days for each in VISITS[day]]
    assert sorted((each["visitor"], each["page"]) for each in state(project, "visits")) == sorted(
        (visitor, page) for visitor, _, page in visits
    )

    cities = {id: city for id, _, city, _ in customers}
    totals = {id: int(quantity) * prices[sku] for id, _, _, sku, quantity, _ in orders}
    assert {
        str(each["id"]): (each["city"], each["total"]) for each in state(project, "orders.priced")
    } == {id: (cities[customer], totals[id]) for id, _, customer, *_ in orders}
    revenue: dict[str, Decimal] = defaultdict(Decimal)
    for id, at, *_ in orders:
        revenue[at[:10]] += totals[id]
    assert {
        str(each["event_time"].date()): each["revenue"] for each in state(project, "revenue.daily")
    } == revenue
    assert {each["id"] for each in state(project, "payments.unmatched")} == {
        id
        for id, _, order, cents in payments.values()
        if totals.get(str(order)) != Decimal(cents) / 100
    }
    assert sum(each["visits"] for each in state(project, "visits.daily")) == len(visits)


def rows_of_server(project: Path, table: str) -> list[tuple[str, ...]]:
    """The rows of a table, as text."""
    command = (
        "PGTZ=UTC psql -X -A -t postgresql://shop:$SHOP_PASSWORD@$SHOP_SERVER/shop "
        f"-c 'SELECT * FROM {table} ORDER BY id'"
    )
    done = subprocess.run(
        ["bash", "-c", command], cwd=project, check=True, capture_output=True, text=True
    )
    return [tuple(line.split("|")) for line in done.stdout.splitlines()]


def state(project: Path, name: str) -> list[dict[str, Any]]:
    """The current records of a dataset."""
    rows = Project(project)[f"shop.{name}"].to_arrow().to_pylist()
    return sorted(rows, key=lambda each: each.get("id", 0))


def as_text(value: Any) -> str:
    """A value as PostgreSQL prints it."""
    return value.strftime("%Y-%m-%d %H:%M:%S+00") if hasattr(value, "strftime") else str(value)
