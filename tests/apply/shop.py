"""A project whose root reads a table of PostgreSQL, and what must be true of its chain."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from odfbuild.odf.model import AddData
from tests.apply.tiny import Tiny
from tests.servers.postgres import Database

SCHEMA = ("id BIGINT", "value DECIMAL(12, 3)", "note STRING", "changed TIMESTAMP(6)")
TABLE = (
    "CREATE TABLE orders (id int PRIMARY KEY, value numeric(10, 2) NOT NULL, note text, "
    "changed timestamptz NOT NULL DEFAULT now())"
)
TOUCH = (
    "CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN NEW.changed = clock_timestamp(); RETURN NEW; END $$",
    "CREATE TRIGGER touch BEFORE INSERT OR UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION touch()",
)
_ROOT = """\
kind: DatasetSnapshot
version: 1
content:
  name: root
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch:
        kind: Url
        url: {url}
      read:
        kind: Parquet
        schema: [{schema}]
      merge:
        kind: {merge}{key}
"""


@dataclass(frozen=True)
class Shop:
    """A project and its database."""

    tiny: Tiny
    database: Database

    @classmethod
    def fresh(cls, root: Path, database: Database) -> Shop:
        tiny = Tiny.fresh(root)
        (root / "datasets" / "derived.yaml").unlink()
        database.execute(TABLE, *TOUCH)
        return cls(tiny, database)

    def define(
        self, rest: str, merge: str, *, schema: tuple[str, ...] = SCHEMA, password: str = ""
    ) -> None:
        """Define the root; `rest` is what follows in the address."""
        key = "\n        primaryKey: [id]" if merge != "Append" else ""
        url = self.database.url(rest, **({"password": password} if password else {}))
        columns = ", ".join(f'"{each}"' for each in schema)
        text = _ROOT.format(url=f'"{url}"', schema=columns, merge=merge, key=key)
        (self.tiny.root / "datasets" / "root.yaml").write_text(text)

    def table(self) -> dict[int, tuple[Any, ...]]:
        """The rows of the table, by their key."""
        sql = "SELECT id, value::text, note, changed::text FROM orders"
        return {row[0]: row for row in self.database.rows(sql)}

    def state(self) -> dict[int, tuple[Any, ...]]:
        """What the chain says: the last record of each key, without deleted ones."""
        found: dict[int, Mapping[str, Any]] = {}
        for each in self.tiny.records("root"):
            if each["op"] in (0, 3):
                found[each["id"]] = each
            elif each["op"] == 1:
                del found[each["id"]]
        return {key: _row(each) for key, each in found.items()}

    def positions(self) -> list[str]:
        """Source states of all blocks, in order."""
        events = [each for each in self.tiny.events("root") if isinstance(each, AddData)]
        return [each.new_source_state.value for each in events if each.new_source_state]


def _row(record: Mapping[str, Any]) -> tuple[Any, ...]:
    moment = record["changed"]
    text = moment.strftime("%Y-%m-%d %H:%M:%S")
    micros = f"{moment.microsecond:06}".rstrip("0")
    return (
        record["id"],
        f"{record['value']:.2f}",
        record["note"],
        f"{text}{'.' + micros if micros else ''}+00",
    )


def change(random_: random.Random, database: Database, *, deletes: bool) -> None:
    """One transaction with some changes."""
    statements = []
    for _ in range(random_.randint(1, 6)):
        key = random_.randint(1, 30)
        match random_.choice(["put", "put", "put", "delete" if deletes else "put"]):
            case "put":
                value = random_.randint(0, 99999) / 100
                note = random_.choice(["NULL", "'ä'", "''", "'x'"])
                statements.append(
                    f"INSERT INTO orders VALUES ({key}, {value}, {note}) ON CONFLICT (id) "
                    f"DO UPDATE SET value = {value}, note = {note}"
                )
            case "delete":
                statements.append(f"DELETE FROM orders WHERE id = {key}")
    database.execute(f"DO $$ BEGIN {'; '.join(statements)}; END $$")
