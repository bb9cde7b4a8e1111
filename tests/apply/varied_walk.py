"""The same walk over more types, sources and settings, which two projects can go side by side.

Their definitions are equal: which endpoint has their objects, and where files are, is said by
variables of the environment.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.apply.walk import Walk
from tests.servers.objects import BUCKET, Objects

_ALL = "event_time, id, k, v, p, at, x"
_BOTH = "a.event_time, a.id, a.k, b.v, a.p, b.at, a.x"
_TOTALS = "max(p) AS p, min(at) AS at, max(x) AS x"
_RULES: dict[str, Any] = {
    "watermarks": [{"match": ["r1"], "delay": "1d"}],
    "checks": [{"match": ["r2"], "notNull": ["id", "k"], "severity": "warn"}],
}


class VariedWalk(Walk):
    """Its sources lie in `root`, and in the bucket of `objects` below a prefix of the project."""

    columns = (
        "event_time TIMESTAMP",
        "id BIGINT",
        "k STRING",
        "v BIGINT",
        "p DECIMAL(12,2)",
        "at TIMESTAMP",
        "x DOUBLE",
    )
    merges = ("Ledger", "Append", "Append", "Snapshot", "UpsertStream")
    of_one = (
        "SELECT event_time, id, k, v * {n} AS v, p * 2 AS p, at, x FROM a",
        f"SELECT {_ALL} FROM a WHERE v > {{n}}",
        f"SELECT {_ALL} FROM a WHERE v > 1000 + {{n}}",
        f"SELECT {_ALL}, named_struct('k', k, 'v', v) AS s, array(v, id) AS l FROM a",
        f"SELECT {_ALL}, CAST(at AS DATE) AS day, x > 0 AS up, CAST(v AS FLOAT) AS f FROM a",
        "SELECT event_time, id, upper(k) AS k, coalesce(v, 0) AS v, CAST(p AS DECIMAL(12,1)) AS p,"
        " coalesce(at, event_time) AS at, -x AS x, v + 1 AS extra FROM a",
        f"SELECT DISTINCT {_ALL} FROM a",
        "SELECT max(event_time) AS event_time, count(id) AS id, k, sum(v) AS v, sum(p) AS p,"
        " max(at) AS at, min(x) AS x FROM a GROUP BY k",
        f"SELECT max(event_time) AS event_time, id, k, count(*) AS v, {_TOTALS} FROM a"
        " GROUP BY id, k HAVING count(*) > 1",
        f"SELECT window.start AS event_time, count(*) AS id, k, sum(v) AS v, {_TOTALS} FROM a"
        " GROUP BY window(event_time, '{n} days'), k",
        f"SELECT {_ALL} FROM (SELECT *, row_number() OVER (PARTITION BY k"
        " ORDER BY v DESC, id, event_time, p, at, x) AS n FROM a) WHERE n <= {n}",
        f"SELECT {_ALL} FROM a ORDER BY v, id, event_time, k, p, at, x LIMIT {{n}}",
    )
    of_two = (
        f"SELECT {_ALL} FROM a UNION ALL SELECT {_ALL} FROM b",
        f"SELECT {_ALL} FROM a UNION SELECT {_ALL} FROM b",
        f"SELECT {_BOTH} FROM a JOIN b ON a.id = b.id",
        f"SELECT {_BOTH} FROM a LEFT JOIN b ON a.id = b.id AND a.k = b.k",
        f"SELECT {_BOTH} FROM a FULL JOIN b ON a.id = b.id AND a.v = b.v",
        f"SELECT {_BOTH} FROM a JOIN b ON a.id = b.id"
        " AND a.event_time BETWEEN b.event_time AND b.event_time + INTERVAL {n} DAYS",
        f"SELECT {_ALL} FROM a WHERE id NOT IN (SELECT id FROM b WHERE id IS NOT NULL)",
        f"SELECT {_ALL} FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k <=> a.k AND b.v > a.v)",
        "SELECT max(a.event_time) AS event_time, count(*) AS id, a.k, sum(b.v) AS v,"
        " sum(a.p) AS p, max(b.at) AS at, max(a.x) AS x FROM a JOIN b ON a.k = b.k GROUP BY a.k",
    )

    def __init__(
        self, root: Path, chance: random.Random, objects: Objects, storage: str | None = None
    ) -> None:
        self._objects = objects
        self.variables = {
            "WALK_FILES": str(root / "data"),
            "AWS_ENDPOINT_URL": objects.endpoint,
        }
        self._more = {**_RULES, **({"storage": storage} if storage else {})}
        super().__init__(root, chance)

    def _configure(self) -> None:
        self._config["content"].update(self._more)
        super()._configure()

    def changes(self) -> list[Callable[[], str | None]]:
        """Also sources with nothing new, and one that is given another time."""
        return [*super().changes(), self.add_root, self.come_again]

    def come_again(self) -> None:
        """Write the files that wait again, as they are."""
        for files in self.waiting.values():
            for file in files:
                self.put(file, file.read_text())

    def put(self, file: Path, text: str) -> None:
        super().put(file, text)
        self._objects.put(self._key(file.parent.name, file.name), text.encode())

    def fetched(self, name: str, merge: str) -> dict[str, Any]:
        is_object = self.chance.random() < 0.6
        if merge == "Snapshot":
            here = f"file://${{{{ env.WALK_FILES }}}}/{name}"
            place = f"s3://{BUCKET}/{self._key(name)}" if is_object else here
            return {"kind": "Url", "url": f"{place}/now.csv"}
        if not is_object:
            return super().fetched(name, merge)
        path = f"s3://{BUCKET}/{self._key(name, '*.csv')}"
        return {"kind": "FilesGlob", "path": path, "order": "ByName"}

    def _key(self, *names: str) -> str:
        return "/".join(("raw", self.root.name, *names))

    def row(self) -> list[str]:
        chance = self.chance

        def time(places: str) -> str:
            day = f"2024-{chance.randint(1, 3):02}-{chance.randint(1, 28):02}"
            return f"{day}T{chance.randint(0, 23):02}:00:0{chance.randint(0, 9)}{places}Z"

        def or_nothing(value: object, share: float = 0.2) -> str:
            return "" if chance.random() < share else str(value)

        return [
            time(chance.choice(["", "", ".250"])),
            str(chance.randint(1, 30)),
            or_nothing(chance.choice("abc"), 0.1),
            or_nothing(chance.randint(-5, 50)),
            or_nothing(f"{chance.randint(-999, 999)}.{chance.randint(0, 99):02}"),
            or_nothing(time(".125")),
            or_nothing(
                chance.choice(["0.1", "-2.5", "1e10", "0.30000000000000004", "-0.0", "7.0"])
            ),
        ]
