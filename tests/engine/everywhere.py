"""Run queries by random increments on one configuration, and print the hashes of what they append.

`python -m tests.engine.everywhere PARTITIONS SEED QUERIES [ENGINE]`, where `QUERIES` are `all` or
`one of each`; cores and heap as the environment says, or as `ENGINE` does, the `engine:` of a
project in JSON.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from odfbuild.declared_settings import read
from odfbuild.engine.contract import Engine
from odfbuild.engine.settings import EngineSettings
from odfbuild.engine.spark.engine import SparkEngine
from odfbuild.engine.spark.results import small_jobs as few
from odfbuild.engine.spark.results import sorted_parts
from odfbuild.engine.spark.start import start_engine
from odfbuild.odf.model import TransformSql
from tests.engine.inputs import sql
from tests.engine.queries import ALL, ONE_OF_EACH
from tests.engine.stepwise import Derived, Source, millis

BLOCKS = 6
EVENTS = [
    pa.field("id", pa.int64()),
    pa.field("city", pa.string()),
    pa.field("amount", pa.int64()),
    pa.field("x", pa.float64()),
    pa.field("tags", pa.string()),
]
PEOPLE = [
    pa.field("id", pa.int64()),
    pa.field("name", pa.string()),
    pa.field("city", pa.string()),
]
CITIES = ["Oslo", "Paris", "Rome", "Zürich", None]


class Varied(SparkEngine):
    """The engine with other settings that must not matter."""

    def __init__(self, engine: SparkEngine, partitions: int) -> None:
        super().__init__(engine._recovery)
        self.partitions = partitions

    @contextmanager
    def request(self, dataset: str, transform: TransformSql | None = None) -> Iterator[Any]:
        with super().request(dataset, transform) as spark:
            spark.conf.set("spark.sql.shuffle.partitions", str(self.partitions))
            spark.conf.set("spark.sql.adaptive.enabled", str(self.partitions > 1).lower())
            if self.partitions > 1:
                spark.conf.set(few.MARK, "false")
            spark.conf.set("spark.sql.files.maxPartitionBytes", str(1 << (12 + self.partitions)))
            yield spark


def sources(folder: Path) -> list[Source]:
    """Two inputs in six blocks each, with late records and equal ones; the same every time."""
    choice = random.Random(5)
    events, people = Source(folder, "events", EVENTS), Source(folder, "people", PEOPLE)
    start = millis("00:00")
    for block in range(BLOCKS):
        rows = []
        for _ in range(choice.choice([0, 5, 40])):
            time = start + block * 3_600_000 + choice.randrange(-2_400, 3_600) * 1000
            number = choice.randrange(30)
            x = choice.choice([0.1, 0.2, -0.0, 0.0, 1e16, choice.random()])
            tags = " ".join(choice.sample(["a", "b", "c"], choice.randrange(4)))
            rows.append((time, number, choice.choice(CITIES), choice.randrange(100), x, tags))
        events.add(rows[:1] * 2 + rows)
        people.add(
            [
                (start + block * 3_600_000 + n * 1000, choice.randrange(30), f"p{n % 3}", city)
                for n, city in enumerate(choice.sample(CITIES, 3))
            ]
        )
    return [events, people]


def unread(folder: Path) -> Source:
    """An input that no query reads; its watermark is ahead, so that nothing waits for it."""
    spare = Source(folder, "spare", [pa.field("id", pa.int64())])
    for block in range(BLOCKS):
        spare.add([("2024-06-01T00:00:00", block)])
    return spare


def by_increments(engine: Engine, query: str, folder: Path, cuts: Sequence[int]) -> Derived:
    """The result after steps that end before these blocks."""
    folder.mkdir()
    given = sources(folder)
    read = [*(source for source in given if source.alias in query), unread(folder)]
    derived = Derived(engine, folder / "derived", sql(query), read)
    for cut in (*cuts, BLOCKS):
        derived.step(*[cut] * len(read))
    return derived


def cuts(query: str, seed: int) -> list[int]:
    """Where a query's increments end, other than at the last block."""
    choice = random.Random(f"{seed} {query}")
    return sorted(choice.sample(range(1, BLOCKS), choice.randrange(1, 4)))


def hashes(engine: SparkEngine, queries: Sequence[str], partitions: int, seed: int) -> Any:
    """Hashes of what each of `queries` appends."""
    varied = Varied(engine, partitions)
    with tempfile.TemporaryDirectory() as name:

        def run(numbered: tuple[int, str]) -> list[str]:
            number, query = numbered
            where = Path(name) / str(number)
            return by_increments(varied, query, where, cuts(query, seed)).hashes

        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(run, enumerate(queries)))


def main(partitions: str, seed: str, queries: str, settings: str = "{}") -> None:
    if int(partitions) > 3:
        sorted_parts.IN_MEMORY = -1
    engine = start_engine(read(EngineSettings, json.loads(settings)))
    found = hashes(engine, ALL if queries == "all" else ONE_OF_EACH, int(partitions), int(seed))
    engine.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
