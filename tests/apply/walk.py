"""A project that is changed at random, as a team changes one over months: a model of its files.

It knows what is defined and writes it; whether odfbuild keeps up is for the tests to say.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

_PROJECT: dict[str, Any] = {
    "kind": "Project",
    "version": 1,
    "content": {"name": "walk", "datasets": "datasets", "state": "chains"},
}
_COLUMNS: Sequence[str] = ["event_time TIMESTAMP", "id BIGINT", "k STRING", "v BIGINT"]
_MERGES: Sequence[str] = ("Ledger", "Append", "Snapshot", "UpsertStream")
_OF_ONE: Sequence[str] = (
    "SELECT event_time, id, k, v * {n} AS v FROM a",
    "SELECT event_time, id, k, v FROM a WHERE v > {n}",
    "SELECT event_time, id, upper(k) AS k, coalesce(v, 0) AS v, v + 1 AS extra FROM a",
    "SELECT DISTINCT event_time, id, k, v FROM a",
    "SELECT max(event_time) AS event_time, count(id) AS id, k, sum(v) AS v FROM a GROUP BY k",
    "SELECT window.start AS event_time, count(*) AS id, k, sum(v) AS v FROM a"
    " GROUP BY window(event_time, '{n} days'), k",
    "SELECT event_time, id, k, v FROM (SELECT *, row_number() OVER (PARTITION BY k"
    " ORDER BY v DESC, id, event_time) AS n FROM a) WHERE n <= {n}",
)
_OF_TWO: Sequence[str] = (
    "SELECT event_time, id, k, v FROM a UNION ALL SELECT event_time, id, k, v FROM b",
    "SELECT a.event_time, a.id, a.k, b.v FROM a JOIN b ON a.id = b.id",
    "SELECT a.event_time, a.id, a.k, b.v FROM a LEFT JOIN b ON a.id = b.id AND a.k = b.k",
    "SELECT a.event_time, a.id, a.k, b.v FROM a JOIN b ON a.id = b.id"
    " AND a.event_time BETWEEN b.event_time AND b.event_time + INTERVAL {n} DAYS",
    "SELECT event_time, id, k, v FROM a WHERE id NOT IN (SELECT id FROM b WHERE id IS NOT NULL)",
    "SELECT max(a.event_time) AS event_time, count(*) AS id, a.k, sum(b.v) AS v"
    " FROM a JOIN b ON a.k = b.k GROUP BY a.k",
)


@dataclass
class Defined:
    """A dataset as its file says; `steady` while all records are of its present definition."""

    content: dict[str, Any]
    inputs: list[str] = field(default_factory=list)
    files: int = 0
    steady: bool = True

    @property
    def is_root(self) -> bool:
        return bool(self.content["kind"] == "Root")

    @property
    def query(self) -> str:
        return str(self.content["metadata"][0]["transform"]["query"])


class Walk:
    """The definitions and sources in `root`, and changes of them drawn from `chance`.

    `waiting` are files that came since the last apply, which a new column is to be in; `checked`
    are the results of runs that the test has looked at.
    """

    columns, merges = _COLUMNS, _MERGES
    of_one, of_two = _OF_ONE, _OF_TWO

    def __init__(self, root: Path, chance: random.Random) -> None:
        self.root = root
        self.chance = chance
        self.datasets: dict[str, Defined] = {}
        self.waiting: dict[str, list[Path]] = {}
        self.checked: set[Path] = set()
        self._number = 0
        self._config = yaml.safe_load(yaml.safe_dump(_PROJECT))
        (root / "datasets").mkdir(parents=True)
        self._configure()
        for _ in range(2):
            self.add_root()
        for _ in range(2):
            self.add_derivative()

    def changes(self) -> list[Callable[[], str | None]]:
        """Each gives what it did, and nothing where it could do nothing; the usual ones often."""
        return [
            *[self.arrive] * 5,
            *[self.change_query] * 3,
            *[self.add_derivative] * 2,
            self.add_root,
            self.add_white_space,
            self.change_inputs,
            self.add_column,
            self.describe,
            self.rename,
            self.remove,
        ]

    # --- Looking ---

    def derivatives(self) -> list[str]:
        return [name for name, each in self.datasets.items() if not each.is_root]

    def below(self, name: str) -> set[str]:
        """All that read a dataset, however far."""
        found: set[str] = set()
        waiting = [name]
        while waiting:
            one = waiting.pop()
            more = {n for n, each in self.datasets.items() if one in each.inputs} - found
            found |= more
            waiting += more
        return found

    def unsettle(self, name: str) -> None:
        """From here on old and new records of a dataset may be of different definitions."""
        for each in (name, *self.below(name)):
            self.datasets[each].steady = False

    # --- Changing ---

    def arrive(self, name: str | None = None) -> str:
        """The next file of a root, or another state of a snapshot."""
        roots = [n for n, each in self.datasets.items() if each.is_root]
        name = name or self.chance.choice(roots)
        root = self.datasets[name]
        source = root.content["metadata"][0]
        columns = [each.split()[0] for each in source["read"]["schema"]]
        rows = [self.row() for _ in range(self.chance.randint(0, 8))]
        if source["merge"]["kind"] != "Append":
            rows = list({row[1]: row for row in rows}.values())
        lines = [",".join([*row, *["x"] * (len(columns) - len(row))]) for row in rows]
        is_state = source["merge"]["kind"] == "Snapshot"
        file = self.root / "data" / name / ("now.csv" if is_state else f"{root.files:04}.csv")
        self.put(file, "\n".join([",".join(columns), *lines, ""]))
        root.files += 1
        self.waiting.setdefault(name, []).append(file)
        return f"arrive {name}"

    def put(self, file: Path, text: str) -> None:
        """Renamed into place: a source that is looked at by its times is never written in place."""
        file.parent.mkdir(parents=True, exist_ok=True)
        staged = file.with_suffix(".new")
        staged.write_text(text)
        staged.replace(file)

    def fetched(self, name: str, merge: str) -> dict[str, Any]:
        """Where a new root has its files from."""
        if merge == "Snapshot":
            return {"kind": "Url", "url": (self.root / "data" / name / "now.csv").as_uri()}
        return {"kind": "FilesGlob", "path": f"data/{name}/*.csv", "order": "ByName"}

    def row(self) -> list[str]:
        """A record as text, with the declared columns."""
        chance = self.chance
        time = f"2024-{chance.randint(1, 3):02}-{chance.randint(1, 28):02}"
        value = chance.choice(["", str(chance.randint(-5, 50))])
        return [
            f"{time} {chance.randint(0, 23):02}:00:00",
            str(chance.randint(1, 30)),
            chance.choice("abc"),
            value,
        ]

    def add_root(self) -> str:
        name = self._new_name("r")
        merge = self.chance.choice(self.merges)
        source = {
            "kind": "SetPollingSource",
            "fetch": self.fetched(name, merge),
            "read": {"kind": "Csv", "header": True, "schema": list(self.columns)},
            "merge": {"kind": merge, **({} if merge == "Append" else {"primaryKey": ["id"]})},
        }
        self.datasets[name] = Defined({"name": name, "kind": "Root", "metadata": [source]})
        self._write(name)
        self.arrive(name)
        return f"new {name}"

    def add_derivative(self) -> str:
        name = self._new_name("d")
        self.datasets[name] = Defined({"name": name, "kind": "Derivative", "metadata": [None]})
        self._draw_inputs(name)
        self._draw_query(name)
        return f"new {name}: {self.datasets[name].query}"

    def add_twin(self, name: str) -> str:
        """A derivative that is defined as another one, and begins now."""
        twin = self._new_name("t")
        like = self.datasets[name]
        content = {**like.content, "name": twin, "metadata": [like.content["metadata"][0]]}
        self.datasets[twin] = Defined(content, list(like.inputs))
        self._write(twin)
        return twin

    def change_query(self) -> str:
        name = self.chance.choice(self.derivatives() or [self._added()])
        self._draw_query(name)
        self.unsettle(name)
        return f"query {name}: {self.datasets[name].query}"

    def change_inputs(self) -> str:
        name = self.chance.choice(self.derivatives() or [self._added()])
        self._draw_inputs(name)
        self._draw_query(name)
        self.unsettle(name)
        return f"inputs {name}: {self.datasets[name].inputs}"

    def add_white_space(self) -> str:
        name = self.chance.choice(self.derivatives() or [self._added()])
        transform = self.datasets[name].content["metadata"][0]["transform"]
        transform["query"] = transform["query"].replace(" FROM", "  /* c */\n FROM", 1)
        self._write(name)
        return f"white space {name}"

    def add_column(self) -> str | None:
        name = self.chance.choice([n for n, each in self.datasets.items() if each.is_root])
        source = self.datasets[name].content["metadata"][0]
        columns = source["read"]["schema"]
        if len(columns) > len(self.columns) + 1:
            return None
        columns.append(f"c{len(columns)} STRING")
        self._write(name)
        for file in self.waiting.get(name, ()):
            header, *rows = file.read_text().splitlines()
            lines = [f"{header},c{len(columns) - 1}", *[f"{row},x" for row in rows]]
            self.put(file, "\n".join([*lines, ""]))
        if source["merge"]["kind"] == "Snapshot":
            self.arrive(name)
        return f"column {name}"

    def describe(self) -> str:
        name = self.chance.choice(list(self.datasets))
        info = {"kind": "SetInfo", "description": f"v{self.chance.randint(0, 99)}"}
        self.datasets[name].content["metadata"][1:] = [info]
        self._write(name)
        return f"describe {name}"

    def rename(self) -> str | None:
        if not self.derivatives():
            return None
        old = self.chance.choice(self.derivatives())
        new = self._new_name("d")
        self._file(old).unlink()
        self.datasets[new] = self.datasets.pop(old)
        self.datasets[new].content["name"] = new
        for each in self.datasets.values():
            each.inputs = [new if one == old else one for one in each.inputs]
            for given in each.content["metadata"][0].get("inputs", ()):
                if given["datasetRef"] == old:
                    given["datasetRef"] = new
        for name in self.datasets:
            self._write(name)
        origin = self._waiting_as(old) or old
        if (self.root / "chains" / origin).exists():
            self._moved[origin] = new
            self._configure()
        return f"rename {old} {new}"

    def remove(self, name: str | None = None) -> str | None:
        """Take a definition away; its chain stays."""
        free = [n for n in self.derivatives() if not self.below(n)]
        if not free:
            return None
        name = name or self.chance.choice(free)
        self._file(name).unlink()
        del self.datasets[name]
        if (origin := self._waiting_as(name)) is not None:
            del self._moved[origin]
            self._configure()
        return f"remove {name}"

    # --- Writing ---

    @property
    def _moved(self) -> dict[str, str]:
        """What the configuration says of renames."""
        moved: dict[str, str] = self._config["content"].setdefault("moved", {})
        return moved

    def _waiting_as(self, name: str) -> str | None:
        """The name that a chain still has until the next apply renames it to `name`."""
        found = (old for old, new in self._moved.items() if new == name)
        return next((old for old in found if (self.root / "chains" / old).exists()), None)

    def _added(self) -> str:
        self.add_derivative()
        return self.derivatives()[-1]

    def _draw_inputs(self, name: str) -> None:
        pool = [n for n in self.datasets if n != name and n not in self.below(name)]
        self.datasets[name].inputs = self.chance.sample(pool, self.chance.choice([1, 1, 2]))

    def _draw_query(self, name: str) -> None:
        one = self.datasets[name]
        query = self.chance.choice(self.of_one if len(one.inputs) == 1 else self.of_two)
        pairs = zip(one.inputs, "ab", strict=False)
        one.content["metadata"][0] = {
            "kind": "SetTransform",
            "inputs": [{"datasetRef": n, "alias": alias} for n, alias in pairs],
            "transform": {
                "kind": "Sql",
                "engine": "spark",
                "query": query.format(n=self.chance.randint(1, 9)),
            },
        }
        self._write(name)

    def _new_name(self, letter: str) -> str:
        self._number += 1
        return f"{letter}{self._number}"

    def _file(self, name: str) -> Path:
        return self.root / "datasets" / f"{name}.yaml"

    def _write(self, name: str) -> None:
        content = self.datasets[name].content
        data = {"kind": "DatasetSnapshot", "version": 1, "content": content}
        self._file(name).write_text(yaml.safe_dump(data, sort_keys=False))

    def _configure(self) -> None:
        text = yaml.safe_dump(self._config, sort_keys=False)
        (self.root / "odfbuild.yaml").write_text(text)
