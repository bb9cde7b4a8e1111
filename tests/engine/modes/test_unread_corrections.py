"""Corrections of columns that a query does not read affect no keys, and slices stay the same."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from odfbuild.engine import affected_records
from odfbuild.engine.contract import Engine
from odfbuild.odf.multihash import Multihash
from odfbuild.records.corrected import corrected_columns
from odfbuild.sql.increments import parts
from odfbuild.store.corrections import keep_corrections
from tests.engine.inputs import sql
from tests.engine.modes.test_affected_keys import BLOCKS, EVENTS, PEOPLE, Walk
from tests.engine.stepwise import VOCAB, Derived, Source, millis

pytestmark = pytest.mark.spark
QUERIES = [
    "SELECT MAX(event_time) AS event_time, city, COUNT(DISTINCT amount) AS n FROM events"
    " GROUP BY city",
    "SELECT e.event_time, e.id, p.city FROM events e LEFT JOIN people p ON e.id = p.id",
    "SELECT DISTINCT event_time, id, x FROM events",
    "SELECT MAX(event_time) AS event_time, city, COUNT(*) AS n FROM (SELECT * FROM events)"
    " GROUP BY city HAVING COUNT(*) > 1",
]


@pytest.fixture(autouse=True)
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Histories are short here, and most of their keys are affected."""
    monkeypatch.setattr(parts, "FEWEST", 0)
    monkeypatch.setattr(parts, "LARGEST_SHARE", 100)
    monkeypatch.setattr(affected_records, "MANY_RECORDS", 1 << 30)


def told(source: Source) -> None:
    """Let it be known what the corrections of an input change."""
    for file, _, _ in source.blocks:
        found = corrected_columns(file.path, VOCAB) if file is not None else None
        if file is not None and found is not None:
            side_cars = source.folder / "side-cars" / source.alias
            keep_corrections(side_cars, Multihash.sha3_256(b""), {file.path.name: found})


def compared(engine: Engine, folder: Path, query: str, sources: Sequence[Source]) -> None:
    """Each slice over affected records equals that over all records."""
    folder.mkdir()
    inputs = [each for each in sources if each.alias in query]
    whole, part = (
        Derived(engine, folder / name, sql(query), inputs, continued=name == "part")
        for name in ("whole", "part")
    )
    for block in range(1, BLOCKS + 1):
        whole.step(*[block] * len(inputs))
        part.step(*[block] * len(inputs))
    assert [f.read_bytes() for f in part.files] == [f.read_bytes() for f in whole.files]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("query", QUERIES)
def test_slices_are_those_of_steps_over_all_records(
    spark_engine: Engine, tmp_path: Path, query: str, seed: int
) -> None:
    walk = Walk(tmp_path / "inputs", seed)
    for each in walk.sources:
        told(each)
    compared(spark_engine, tmp_path / "steps", query, walk.sources)


def test_their_keys_are_not_read(spark_engine: Engine, tmp_path: Path) -> None:
    chance = random.Random(1)
    events, people = Source(tmp_path, "events", EVENTS), Source(tmp_path, "people", PEOPLE)
    noon = millis("12:00")
    rows = [(noon, n, chance.choice("ab"), n, 1.0, None, "old") for n in range(50)]
    events.add(rows)
    people.add([(noon, n, "A", "Oslo") for n in range(50)])
    later = (noon + 1000, *rows[0][1:])
    halves = [(rows[0], later), *((row, (*row[:-1], "new")) for row in rows[1:20])]
    corrected = [record for pair in halves for record in pair]
    events.add(corrected, ops=[2, 3] * 20)
    read = []
    (tmp_path / "steps").mkdir()
    for name in ("unknown", "known"):
        result = Derived(
            spark_engine,
            tmp_path / "steps" / name,
            sql(QUERIES[1]),
            [events, people],
            continued=True,
        )
        result.step(1, 1)
        result.step(2, 1)
        assert result.extent is not None
        read.append((result.extent.records, [f.read_bytes() for f in result.files]))
        told(events)
    (unknown, one), (known, other) = read
    assert known < unknown / 5
    assert one == other
