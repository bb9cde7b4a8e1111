"""A shop with personal columns, and the same shop without: customers, orders, events, visits."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfbuild import Project

_PROJECT = """\
kind: Project
version: 1
content:
  name: shop
"""
PERSONAL = """\
  personal:
    - match: [customers]
      columns: [name, email]
      subject: customer_id
    - match: [orders, profiles]
      columns: [address]
      subject: customer_id
    - match: [events]
      columns: [ip]
      subject: customer_id
    - match: [contacts, mail, shouted, near, latest, both]
      columns: [name, email, address, ip]
      subject: customer_id
    - match: [domains, counted]
      disclose: [domain, names, customers]
"""
MACHINE = """\
kind: Machine
version: 1
content:
  personal:
    keys: {keys}
    wrapping: {wrapping}
    {more}
"""
_ROOT = """\
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {{kind: FilesGlob, path: data/{name}-*.csv, order: ByName}}
      read:
        kind: Csv
        header: true
        schema: [{columns}]
      merge: {merge}
"""
_DERIVED = """\
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
ROOTS = {
    "customers": (
        "event_time TIMESTAMP, customer_id BIGINT, name STRING, email STRING, country STRING",
        "{kind: Snapshot, primaryKey: [customer_id]}",
    ),
    "orders": (
        "event_time TIMESTAMP, order_id BIGINT, customer_id BIGINT, address STRING, amount BIGINT",
        "{kind: Ledger, primaryKey: [order_id]}",
    ),
    "events": (
        "event_time TIMESTAMP, customer_id BIGINT, ip STRING, page STRING",
        "{kind: Append}",
    ),
    "profiles": (
        "event_time TIMESTAMP, customer_id BIGINT, address STRING",
        "{kind: UpsertStream, primaryKey: [customer_id]}",
    ),
}
DERIVED = {
    "shouted": "SELECT event_time, customer_id, upper(ip) AS ip, page FROM events",
    "mail": "SELECT event_time, customer_id, email FROM customers WHERE email LIKE '%1%'",
    "contacts": "SELECT o.event_time, o.order_id, c.customer_id, c.name, c.email, o.address"
    " FROM orders o JOIN customers c ON o.customer_id = c.customer_id",
    "latest": "SELECT max(event_time) AS event_time, customer_id, max(address) AS address"
    " FROM profiles GROUP BY customer_id",
    "domains": "SELECT max(event_time) AS event_time, split_part(email, '@', 2) AS domain,"
    " count(DISTINCT name) AS names FROM customers GROUP BY split_part(email, '@', 2)",
    "near": "SELECT o.event_time, o.customer_id, o.address, e.ip FROM orders o JOIN events e"
    " ON o.customer_id = e.customer_id AND e.event_time BETWEEN"
    " o.event_time - INTERVAL 1 DAY AND o.event_time + INTERVAL 1 DAY",
    "both": "SELECT event_time, customer_id, email FROM mail",
    "counted": "SELECT max(event_time) AS event_time, country, count(*) AS customers"
    " FROM customers WHERE name IS NOT NULL GROUP BY country",
}
SECRETS = ("zephyrine", "quixotic", "10.77.", "Elmstreet")
"""What stands in personal values of this shop, and nowhere else."""


@dataclass(frozen=True)
class Shop:
    """A project folder, and the source files that come into it."""

    root: Path

    @classmethod
    def fresh(cls, root: Path, *, personal: bool, derived: dict[str, str] = DERIVED) -> Shop:
        """The project, never applied."""
        (root / "datasets").mkdir(parents=True)
        (root / "data").mkdir()
        (root / "odfbuild.yaml").write_text(_PROJECT + (PERSONAL if personal else ""))
        shop = cls(root)
        for name, (columns, merge) in ROOTS.items():
            text = _ROOT.format(name=name, columns=columns, merge=merge)
            (root / "datasets" / f"{name}.yaml").write_text(text)
        for name, query in derived.items():
            shop.derive(name, query)
        return shop

    def derive(self, name: str, query: str) -> None:
        """Define a derivative of whatever its query names."""
        sources = [each for each in (*ROOTS, *DERIVED) if f" {each}" in query]
        inputs = ", ".join(f"{{datasetRef: {each}, alias: {each}}}" for each in sources)
        text = _DERIVED.format(name=name, inputs=inputs, query=query)
        (self.root / "datasets" / f"{name}.yaml").write_text(text)

    def arrive(self, number: int) -> None:
        """Put the source files of a day there: new records, and corrections of earlier ones."""
        dice = random.Random(number)
        day = f"2024-03-{number:02d}"
        people = range(1, 8 + 2 * number)
        rows = {
            "customers": [
                f"{day} 00:00:00,{i},quixotic{i % 5}{'' if i % 3 else number},"
                + ("" if i % 6 == 0 else f"zephyrine{i}{number if i % 4 == 0 else ''}@d{i % 3}.org")
                + f",c{i % 2}"
                for i in people
                if (i + number) % 7
            ],
            "orders": [
                f"{day} 0{i % 9}:00:00,{number * 5 + i},{dice.choice(people)},Elmstreet {i % 4},{i}"
                for i in range(9)
            ],
            "events": [
                f"{day} 0{i % 9}:30:00,{dice.choice(people)},10.77.{i % 3}.{number},p{i % 2}"
                for i in range(9)
            ],
            "profiles": [
                f"{day} 0{i % 9}:00:00,{dice.choice(people)},Elmstreet {dice.randrange(4)}"
                for i in range(5)
            ],
        }
        for name, lines in rows.items():
            header = ",".join(each.split()[0] for each in ROOTS[name][0].split(", "))
            text = "\n".join([header, *dict.fromkeys(lines)]) + "\n"
            (self.root / "data" / f"{name}-{number}.csv").write_text(text)

    @property
    def project(self) -> Project:
        """Its Python interface."""
        return Project(self.root)

    def apply(self) -> None:
        """Do all there is to do; every dataset must succeed."""
        outcome = self.project.apply()
        assert all(each.error is None for each in outcome.datasets), [
            (each.name, each.error, each.error and each.error.notes) for each in outcome.datasets
        ]

    def records(self, name: str) -> pa.Table:
        """The history of a dataset without times of the system."""
        return self.project[name].history.to_arrow().drop_columns(["system_time"])


def files_with(folder: Path, *texts: str) -> list[Path]:
    """The files below a folder, but for sources, that have one of the texts: in bytes or values."""
    found = []
    for file in folder.rglob("*"):
        if not file.is_file() or file.relative_to(folder).parts[0] == "data":
            continue
        data = file.read_bytes()
        if data[:4] == b"PAR1":
            table = pq.read_table(pa.BufferReader(data))
            data += repr(table.to_pydict()).encode()
        if any(each.encode() in data or each.upper().encode() in data for each in texts):
            found.append(file)
    return found


def machine(folder: Path, monkeypatch: pytest.MonkeyPatch, more: str = "show: true") -> Path:
    """The configuration of a machine with keys, outside of any project."""
    folder.mkdir(exist_ok=True)
    file = folder / "machine.yaml"
    text = MACHINE.format(keys=folder / "keys", wrapping=folder / "wrapping-key", more=more)
    file.write_text(text)
    monkeypatch.setenv("ODFBUILD_CONFIG", str(file))
    return file
