"""Windows hold the same records however files are divided into runs, through three levels.

Feeds are drawn at random: records in time, late by minutes or hours, files without news. The same
files are applied one by one, all at once, and in a random division; each time in a project of its
own.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, pairwise
from pathlib import Path

import pytest

from odfbuild.engine.contract import Engine
from tests.apply.in_process import NearTiny

pytestmark = [pytest.mark.spark]

_ROOT = """\
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch:
        kind: FilesGlob
        path: data/{name}/*.csv
        order: ByName
      read:
        kind: Csv
        header: true
        schema: [event_time TIMESTAMP, id BIGINT]
      merge:
        kind: Append
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
_PROJECT = """\
kind: Project
version: 1
content:
  name: feeds
  datasets: datasets
  state: chains
"""

Queries = dict[str, tuple[dict[str, str], str]]
"""By name of a derivative: its inputs by what the query calls them, and the query."""

_ROWS = "SELECT event_time, id FROM"


def by_window(source: str, length: str = "1 hour") -> str:
    return (
        f"SELECT window.start AS event_time, count(*) AS id FROM {source} GROUP BY"
        f" window(event_time, '{length}')"
    )


def of_one_root(feed: str) -> Queries:
    """Derivatives of a root: mapped, united with itself, joined, and windows over each."""
    return {
        f"{feed}.m": ({"a": f"{feed}.a"}, f"{_ROWS} a WHERE id % 5 < 4"),
        f"{feed}.v": ({"m": f"{feed}.m"}, f"{_ROWS} m WHERE id % 3 > 0"),
        f"{feed}.u": (
            {"m": f"{feed}.m", "v": f"{feed}.v"},
            f"{_ROWS} m UNION ALL {_ROWS} v",
        ),
        f"{feed}.j": (
            {"m": f"{feed}.m", "v": f"{feed}.v"},
            "SELECT v.event_time, v.id FROM m JOIN v ON v.id % 4 = m.id % 4"
            " AND v.event_time BETWEEN m.event_time AND m.event_time + INTERVAL '1' HOURS",
        ),
        f"{feed}.window.of-map": ({"m": f"{feed}.m"}, by_window("m")),
        f"{feed}.window.of-map-of-map": ({"v": f"{feed}.v"}, by_window("v", "90 minutes")),
        f"{feed}.window.of-union": ({"u": f"{feed}.u"}, by_window("u")),
        f"{feed}.window.of-join": ({"j": f"{feed}.j"}, by_window("j")),
        f"{feed}.window.of-window": (
            {"w": f"{feed}.window.of-union"},
            by_window("w", "2 hours"),
        ),
    }


def of_other_times(feed: str) -> Queries:
    """Derivatives whose records have other times than those of what they are made of."""
    return {
        f"{feed}.m": ({"a": f"{feed}.a"}, f"{_ROWS} a"),
        f"{feed}.s": (
            {"m": f"{feed}.m"},
            "SELECT event_time - INTERVAL '90' MINUTES AS event_time, id FROM m",
        ),
        f"{feed}.j": (
            {"m": f"{feed}.m", "s": f"{feed}.s"},
            "SELECT m.event_time, s.id FROM m JOIN s ON m.id % 7 = s.id % 7",
        ),
        f"{feed}.window.of-shifted": ({"s": f"{feed}.s"}, by_window("s")),
        f"{feed}.window.of-join": ({"j": f"{feed}.j"}, by_window("j")),
        f"{feed}.window.long": ({"m": f"{feed}.m"}, by_window("m", "90 minutes")),
        f"{feed}.window.short": ({"w": f"{feed}.window.long"}, by_window("w", "30 minutes")),
    }


def of_two_roots(feed: str) -> Queries:
    """Derivatives of two roots."""
    both = {"a": f"{feed}.a", "b": f"{feed}.b"}
    return {
        f"{feed}.u": (both, f"{_ROWS} a UNION ALL {_ROWS} b"),
        f"{feed}.j": (
            both,
            "SELECT a.event_time, b.id FROM a JOIN b ON a.id % 3 = b.id % 3"
            " AND a.event_time >= b.event_time",
        ),
        f"{feed}.window.of-two": (both, by_window(f"({_ROWS} a UNION ALL {_ROWS} b)")),
        f"{feed}.window.of-union": ({"u": f"{feed}.u"}, by_window("u")),
        f"{feed}.window.of-join": ({"j": f"{feed}.j"}, by_window("j")),
        f"{feed}.window.of-window": (
            {"w": f"{feed}.window.of-join"},
            by_window("w", "1 day"),
        ),
    }


Files = list[list[tuple[int, int]]]
"""Records of each file: minute and id."""


def drawn(chance: random.Random, files: int, late: float, ids: Iterator[int]) -> Files:
    """Files whose watermarks move on together, each by up to two hours."""
    found: Files = []
    reached = 0
    for _ in range(files):
        following = reached + chance.choice([10, 30, 45, 60, 90, 120])
        rows = [(following, next(ids))]
        for _ in range(chance.choice([0, 1, 1, 2, 3])):
            minute = chance.randint(reached, following)
            if chance.random() < late:
                minute = max(0, reached - chance.choice([1, 20, 60, 200]))
            rows.append((minute, next(ids)))
        chance.shuffle(rows)
        found.append(rows)
        reached = following
    return found


@dataclass
class Feeds:
    """A project for given files: `roots` by name, and `queries`."""

    tiny: NearTiny
    roots: dict[str, Files]

    @classmethod
    def fresh(cls, tiny: NearTiny, roots: dict[str, Files], queries: Queries) -> Feeds:
        (tiny.root / "datasets").mkdir(parents=True)
        (tiny.root / "odfbuild.yaml").write_text(_PROJECT)
        for name in roots:
            (tiny.root / "data" / name).mkdir(parents=True)
            (tiny.root / "datasets" / f"{name}.yaml").write_text(_ROOT.format(name=name))
        for name, (inputs, query) in queries.items():
            listed = ", ".join(f"{{datasetRef: {of}, alias: {a}}}" for a, of in inputs.items())
            text = _DERIVED.format(name=name, inputs=listed, query=query)
            (tiny.root / "datasets" / f"{name}.yaml").write_text(text)
        return cls(tiny, roots)

    def arrive(self, name: str, number: int) -> None:
        lines = [
            f"2024-01-01 {m // 60:02}:{m % 60:02}:00,{id}" for m, id in self.roots[name][number]
        ]
        text = "\n".join(["event_time,id", *lines, ""])
        (self.tiny.root / "data" / name / f"{number:03}.csv").write_text(text)

    def apply(self, rounds: Sequence[int]) -> None:
        """Let files with these numbers come, of all roots, in one run."""
        for name in self.roots:
            for number in rounds:
                self.arrive(name, number)
        self.tiny.apply()

    def windows(self) -> dict[str, list[str]]:
        """The records of all windows."""
        names = [path.stem for path in sorted((self.tiny.root / "datasets").glob("*.window.*"))]
        return {name: self.records(name) for name in names}

    def records(self, name: str) -> list[str]:
        return sorted(
            f"{each['event_time']:%H:%M} {each['id']} {each['op']}"
            for each in self.tiny.records(name)
        )


def divided(chance: random.Random, files: int) -> list[list[int]]:
    """The numbers of files in order, in runs of any length."""
    cuts = sorted({0, files, *(chance.randint(1, files) for _ in range(chance.randint(0, 2)))})
    return [list(range(*pair)) for pair in pairwise(cuts)]


@pytest.fixture
def project(
    tmp_path: Path, spark_engine: Engine, capsys: pytest.CaptureFixture[str]
) -> Callable[[dict[str, Files], Queries], Feeds]:
    made = 0

    def fresh(roots: dict[str, Files], queries: Queries) -> Feeds:
        nonlocal made
        made += 1
        root = tmp_path / str(made)
        shutil.rmtree(root, ignore_errors=True)
        return Feeds.fresh(NearTiny(root, spark_engine, capsys), roots, queries)

    return fresh


Project = Callable[[dict[str, Files], Queries], Feeds]


def assert_same_in_all_divisions(
    project: Project, chance: random.Random, roots: dict[str, Files], queries: Queries
) -> None:
    files = len(next(iter(roots.values())))
    divisions = [[[n] for n in range(files)], [list(range(files))], divided(chance, files)]
    found = []
    for each in divisions:
        feeds = project(roots, queries)
        for rounds in each:
            feeds.apply(rounds)
        found.append(feeds.windows())
    assert found[1] == found[0]
    assert found[2] == found[0], divisions[2]


def test_a_window_over_a_map_leaves_the_same_late_record_out_in_one_run_and_in_three(
    project: Project,
) -> None:
    files = [[(10, 1), (120, 2)], [(20, 3)], [(300, 4)]]
    queries: Queries = {
        "m": ({"a": "a"}, f"{_ROWS} a"),
        "x.window.direct": ({"a": "a"}, by_window("a")),
        "x.window.mapped": ({"m": "m"}, by_window("m")),
    }
    for runs in ([[0], [1], [2]], [[0, 1, 2]], [[0, 1], [2]], [[0], [1, 2]]):
        feeds = project({"a": files}, queries)
        for run in runs:
            feeds.apply(run)
        found = feeds.windows()
        assert found["x.window.direct"] == found["x.window.mapped"] == ["00:00 1 0", "02:00 1 0"]


def feeds_of(chance: random.Random, seed: int) -> tuple[dict[str, Files], Queries]:
    """Two roots and what is made of them; each root of two has watermarks of its own."""
    roots: dict[str, Files] = {
        "one.a": drawn(chance, 4, 0.4, count(seed)),
        "other.a": drawn(chance, 4, 0.4, count(seed)),
    }
    return roots, of_one_root("one") | of_other_times("other")


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 30))]
)
def test_windows_do_not_depend_on_the_division_of_files_into_runs(
    project: Project, seed: int
) -> None:
    chance = random.Random(seed)
    roots, queries = feeds_of(chance, seed)
    assert_same_in_all_divisions(project, chance, roots, queries)


@pytest.mark.parametrize(
    ("seed", "late"),
    [(0, 0.0), *(pytest.param(n, 0.0, marks=pytest.mark.slow) for n in range(1, 20))],
)
def test_windows_over_several_roots_without_late_records_do_not_either(
    project: Project, seed: int, late: float
) -> None:
    chance = random.Random(seed)
    roots = {f"two.{each}": drawn(chance, 4, late, count(seed)) for each in "ab"}
    assert_same_in_all_divisions(project, chance, roots, of_two_roots("two"))
