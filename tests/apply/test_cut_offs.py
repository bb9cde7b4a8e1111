"""Steps of readers that use no corrected column: nothing is computed, and the result is the same."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from odfbuild.odf.model import ExecuteTransform
from tests.apply.tiny import NO_JVM, Tiny

pytestmark = pytest.mark.spark

NOTHING = "no column that its query uses changed: nothing is computed"
SOURCE = """\
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {{kind: FilesGlob, path: data/{name}/*.csv, order: ByName}}
      read: {{kind: Csv, header: true, schema: [event_time TIMESTAMP, {columns}]}}
      merge: {{kind: {merge}, primaryKey: [id]}}
"""
READER = """\
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{inputs}]
      transform:
        kind: Sql
        engine: spark
        query: |
          {query}
"""
ORDERS = "id BIGINT, customer BIGINT, amount BIGINT"
CUSTOMERS = "id BIGINT, city STRING, phone STRING, x DOUBLE"
BY_CITY = (
    "SELECT max(o.event_time) AS event_time, c.city, COUNT(*) AS n FROM orders o"
    " LEFT JOIN customers c ON o.customer = c.id GROUP BY c.city"
)
PHONES = (
    "SELECT max(event_time) AS event_time, phone, COUNT(*) AS n FROM customers GROUP BY phone"
)
SIZES = "SELECT max(event_time) AS event_time, n, COUNT(*) AS m FROM cities GROUP BY n"
QUERIES = {"cities": BY_CITY, "phones": PHONES, "sizes": SIZES}
DAY = "2024-01-01 00:00:00"


class Shop:
    """Orders, and customers whose records are corrected."""

    def __init__(self, tiny: Tiny, queries: Mapping[str, str] = QUERIES) -> None:
        self.tiny = tiny
        for file in (tiny.root / "datasets").iterdir():
            file.unlink()
        for name, columns, merge in (
            ("orders", ORDERS, "Ledger"),
            ("customers", CUSTOMERS, "UpsertStream"),
        ):
            self._define(name, SOURCE.format(name=name, columns=columns, merge=merge))
            (tiny.root / "data" / name).mkdir()
        for name, query in queries.items():
            inputs = [each for each in ("orders", "customers", "cities") if each in query]
            listed = ", ".join(f"{{datasetRef: {each}}}" for each in inputs)
            self._define(name, READER.format(name=name, inputs=listed, query=query))

    def _define(self, name: str, text: str) -> None:
        (self.tiny.root / "datasets" / f"{name}.yaml").write_text(text)

    def arrive(self, name: str, *rows: str) -> None:
        """A further file of a source."""
        columns = ORDERS if name == "orders" else CUSTOMERS
        header = ",".join(["event_time", *re.findall(r"(\w+) [A-Z]+", columns)])
        folder = self.tiny.root / "data" / name
        file = folder / f"{len(list(folder.iterdir())):03}.csv"
        file.write_text("\n".join([header, *rows, ""]))

    def run(self, *arguments: str, env: Mapping[str, str] | None = None) -> str:
        """What a command says, which must succeed."""
        said = self.tiny.run(*arguments, env=env)
        assert said.returncode == 0, said.stdout + said.stderr
        return said.stdout

    def blocks(self, name: str) -> list[ExecuteTransform]:
        """The steps of a derivative, the newest last."""
        store = self.tiny.workspace().dataset(name)
        head = store.head()
        assert head is not None
        events = [block.event for _, block in store.walk(head)]
        return [each for each in reversed(events) if isinstance(each, ExecuteTransform)]


@pytest.fixture
def shop(near: Callable[[Path], Tiny], tmp_path: Path) -> Shop:
    """All is up to date, and then phones of two customers are corrected."""
    made = Shop(near(tmp_path / "tiny"))
    made.arrive("orders", f"{DAY},1,1,10", f"{DAY},2,2,20", f"{DAY},3,2,30")
    made.arrive("customers", f"{DAY},1,Oslo,111,0.0", f"{DAY},2,Rome,222,")
    made.run("apply", "-y")
    made.arrive("customers", f"{DAY},1,Oslo,112,0.0", f"{DAY},2,Rome,223,")
    made.run("apply", "-y", "--select", "customers")
    return made


def test_a_plan_says_who_is_affected_by_corrections_and_apply_needs_no_spark_for_others(
    shop: Shop,
) -> None:
    said = shop.run("plan")
    assert "nothing is computed: it uses no column that is corrected (customers.phone)" in said
    assert "1 reader of customers affected: no other one uses a column that changed." in said
    assert "sizes" not in said
    alone = shop.run("plan", "--select", "cities")
    assert "0 readers of customers affected" in alone
    assert "nothing is computed" in shop.run("explain", "cities")
    document = json.loads(shop.run("plan", "--format", "json"))
    ways = {each["name"]: each["pending"] for each in document["datasets"] if each["pending"]}
    assert ways["cities"]["computation"]["way"] == "nothing"
    assert ways["cities"]["reads"]["most"] == 0
    done = shop.run("apply", "-y", "--select", "cities", env=NO_JVM)
    assert NOTHING in done
    step = shop.blocks("cities")[-1]
    assert step.new_data is None
    assert step.query_inputs[1].new_offset == 5
    assert NOTHING not in shop.run("apply", "-y")
    assert "up to date" in shop.run("plan")
    shop.run("verify")
