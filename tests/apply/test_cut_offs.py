"""Readers that use no corrected column compute nothing, and have the result of a full step."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from odfbuild.apply import cut_offs
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
CITIES = (
    "SELECT max(o.event_time) AS event_time, c.city, COUNT(*) AS n FROM orders o"
    " LEFT JOIN customers c ON o.customer = c.id GROUP BY c.city"
)
PHONES = "SELECT max(event_time) AS event_time, phone, COUNT(*) AS n FROM customers GROUP BY phone"
SIZES = "SELECT max(event_time) AS event_time, n, COUNT(*) AS m FROM cities GROUP BY n"
QUERIES = {"cities": CITIES, "phones": PHONES, "sizes": SIZES}
NAMES = ("orders", "customers", "cities", "pieces")
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
            (tiny.root / "data" / name).mkdir(exist_ok=True)
        for name, query in queries.items():
            inputs = [each for each in NAMES if f" {each}" in query]
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


WALKED = {
    "cities": CITIES,
    "sizes": SIZES,
    "pairs": "SELECT o.event_time, o.id, c.city FROM orders o JOIN customers c"
    " ON o.customer = c.id",
    "pieces": "SELECT event_time, id, upper(city) AS city, x FROM customers WHERE id > 1",
    "places": "SELECT DISTINCT event_time, city FROM pieces",
    "newest": "SELECT event_time, id, city FROM (SELECT event_time, id, city, ROW_NUMBER() OVER"
    " (PARTITION BY city ORDER BY id DESC, event_time) AS row FROM customers) WHERE row = 1",
    "known": "SELECT max(event_time) AS event_time, COUNT(*) AS n FROM orders WHERE EXISTS"
    " (SELECT 1 FROM customers c WHERE c.id = customer AND c.city <> 'Rome')",
    "rows": "SELECT max(event_time) AS event_time, COUNT(*) AS n FROM customers",
}


def walk(shop: Shop, seed: int, steps: int) -> list[str]:
    """Let orders and customers come, and customers be corrected; what each apply said."""
    chance = random.Random(seed)
    customers: dict[int, list[Any]] = {}
    said = []
    for step in range(steps):
        if step == 0 or chance.random() < 0.3:
            ids = range(step * 9, step * 9 + 3)
            shop.arrive("orders", *(f"{DAY},{n},{chance.randrange(6)},{n % 3}" for n in ids))
        changed = set(range(4)) if step == 0 else {chance.randrange(4), chance.randrange(4)}
        column = chance.randrange(4)
        for each in sorted(changed):
            made = [chance.choice(["Oslo", "Rome"]), chance.randrange(1000), chance.choice("01")]
            old = customers.get(each, made)
            customers[each] = [
                new if at == column else was
                for at, (was, new) in enumerate(zip(old, made, strict=True))
            ]
        rows = [f"{DAY},{n},{','.join(map(str, customers[n]))}" for n in sorted(changed)]
        if column == 3 and chance.random() < 0.5:
            rows.append(f"{DAY},{step + 10},Rome,1,0")
        shop.arrive("customers", *rows)
        said.append(shop.run("apply", "-y"))
    return said


SLOW = [pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 9)]
"""More walks of the same kind, a quarter of a minute each."""


@pytest.mark.parametrize("seed", [1, *SLOW])
def test_what_is_not_computed_is_what_a_full_step_gives(
    near: Callable[[Path], Tiny], tmp_path: Path, seed: int
) -> None:
    shop = Shop(near(tmp_path / "tiny"), WALKED)
    said = "".join(walk(shop, seed, steps=8))
    cut = [line.split()[1] for line in said.splitlines() if NOTHING in line]
    assert {"cities", "pairs", "newest", "known", "rows"} & set(cut)
    assert "pieces" not in cut, "where records are handled alone, corrections are passed on"
    assert "recomputed" in shop.run("verify")  # each step in full


def test_a_reader_that_is_cut_off_by_mistake_does_not_pass_verify(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(cut_offs, "may_read", lambda *_: False)
        assert NOTHING in shop.run("apply", "-y", "--select", "phones")
    assert shop.tiny.run("verify", "phones").returncode != 0


def test_what_is_kept_of_corrections_is_worth_time_only(shop: Shop) -> None:
    kept = [*shop.tiny.root.rglob("corrections.bin")]
    assert {each.parent.name for each in kept} >= {"customers", "cities", "phones"}
    whole = kept[0].read_bytes()
    for file in kept:
        file.write_bytes(file.read_bytes()[:-1])
    assert NOTHING not in shop.run("apply", "-y")
    assert whole not in [each.read_bytes() for each in kept]
    shop.arrive("customers", f"{DAY},1,Oslo,113,0.0")
    assert shop.run("apply", "-y").count(NOTHING) == 1
    shop.run("verify")


def test_corrections_that_another_query_made_may_change_more_than_they_say(
    near: Callable[[Path], Tiny], tmp_path: Path
) -> None:
    """The record that such a correction takes back is not there, so it adds one."""
    pieces = "SELECT event_time, id, city, phone FROM customers"
    rows = "SELECT max(event_time) AS event_time, COUNT(*) AS n FROM pieces"
    shop = Shop(near(tmp_path / "tiny"), {"pieces": pieces, "rows": rows})
    shop.arrive("orders", f"{DAY},1,1,10")
    shop.arrive("customers", f"{DAY},1,Oslo,111,0.0")
    shop.run("apply", "-y")
    changed = {"pieces": pieces.replace("city", "upper(city) AS city"), "rows": rows}
    shop = Shop(shop.tiny, changed)
    shop.arrive("customers", f"{DAY},1,Oslo,112,0.0")
    assert NOTHING not in shop.run("apply", "-y")
    assert shop.blocks("rows")[-1].new_data is not None
    shop.run("verify")
