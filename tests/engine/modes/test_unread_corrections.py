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
from tests.engine.modes.test_affected_keys import BLOCKS, EVENTS, PEOPLE, seeds
from tests.engine.stepwise import VOCAB, Derived, Source, millis

pytestmark = pytest.mark.spark
BY_CITY = (
    "SELECT MAX(e.event_time) AS event_time, p.city, COUNT(*) AS n FROM events e"
    " JOIN people p ON e.id = p.id GROUP BY p.city"
)
QUERIES = [
    "SELECT MAX(event_time) AS event_time, city, COUNT(DISTINCT amount) AS n FROM events"
    " GROUP BY city",
    "SELECT e.event_time, e.id, p.city FROM events e LEFT JOIN people p ON e.id = p.id",
    "SELECT DISTINCT event_time, id, x FROM events",
    "SELECT MAX(event_time) AS event_time, city, COUNT(*) AS n FROM (SELECT * FROM events)"
    " GROUP BY city HAVING COUNT(*) > 1",
    BY_CITY,
]


@pytest.fixture(autouse=True)
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Histories are short here, and most of their keys are affected."""
    monkeypatch.setattr(parts, "FEWEST", 0)
    monkeypatch.setattr(parts, "LARGEST_SHARE", 100)
    monkeypatch.setattr(affected_records, "MANY_RECORDS", 1 << 30)


def walk(folder: Path, seed: int) -> tuple[Source, Source]:
    """Two inputs that grow, or whose records are corrected in a column that is read, or not."""
    chance = random.Random(seed)
    folder.mkdir()
    sources = (Source(folder, "events", EVENTS), Source(folder, "people", PEOPLE))
    columns = {"events": (("tags",), ("amount", "tags")), "people": (("name",), ("city", "name"))}
    live: dict[str, list[tuple[object, ...]]] = {"events": [], "people": []}
    for block in range(BLOCKS):
        for source in sources:
            kept, names = live[source.alias], ["", *(each.name for each in source.columns)]
            kind = 0 if block == 0 else chance.choice([0, 1, 1, 2])
            rows = [_new(chance, source.alias) for _ in range(0 if kind else 4)]
            ops = [0] * len(rows)
            for at in chance.sample(range(len(kept)), 2 if kind else 0):
                name = chance.choice(columns[source.alias][kind - 1])
                old = kept[at]
                new = _new(chance, source.alias)[names.index(name)]
                kept[at] = tuple(new if n == name else v for n, v in zip(names, old, strict=True))
                rows, ops = [*rows, old, kept[at]], [*ops, 2, 3]
            kept += rows if not kind else []
            source.add(rows, ops=ops)
    return sources


def _new(chance: random.Random, alias: str) -> tuple[object, ...]:
    time, id = millis("12:00") + chance.randrange(3), chance.randrange(4)
    if alias == "people":
        return time, id, chance.choice("ABC"), chance.choice(["Oslo", "Rome"])
    zero = chance.choice([0.0, -0.0, None])
    return time, id, chance.choice(["Oslo", "Rome"]), chance.randrange(3), zero, None, "tag"


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


@pytest.mark.parametrize("seed", seeds(1, 10))
@pytest.mark.parametrize("query", QUERIES)
def test_slices_are_those_of_steps_over_all_records(
    spark_engine: Engine, tmp_path: Path, query: str, seed: int
) -> None:
    sources = walk(tmp_path / "inputs", seed)
    for each in sources:
        told(each)
    compared(spark_engine, tmp_path / "steps", query, sources)


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
    for name in ("unknown", "known"):
        result = steps(spark_engine, tmp_path / name, QUERIES[1], [events, people], (2, 1))
        read.append((result.extent, [file.read_bytes() for file in result.files]))
        told(events)
    (unknown, one), (known, other) = read
    assert unknown is not None
    assert known is not None
    assert known.records < unknown.records / 5
    assert one == other


def test_an_input_that_brings_nothing_counts_as_one_without_news(
    spark_engine: Engine, tmp_path: Path
) -> None:
    events, people = Source(tmp_path, "events", EVENTS), Source(tmp_path, "people", PEOPLE)
    noon = millis("12:00")
    events.add([(noon, n, "a", n, 1.0, None, "") for n in range(50)])
    people.add([(noon, n, "A", "Oslo") for n in range(50)])
    events.add([(noon, 7, "a", 7, 1.0, None, "")])
    people.add([(noon, 7, "A", "Oslo"), (noon, 7, "B", "Oslo")], ops=[2, 3])
    results = []
    for name in ("unknown", "known"):
        results.append(steps(spark_engine, tmp_path / name, BY_CITY, [events, people], (2, 2)))
        told(people)
    unknown, known = results
    assert unknown.extent is not None
    assert "no column of GROUP BY" in unknown.extent.why
    assert known.extent is not None
    assert not known.extent.why
    assert [f.read_bytes() for f in unknown.files] == [f.read_bytes() for f in known.files]


def steps(
    engine: Engine, folder: Path, query: str, sources: Sequence[Source], upto: Sequence[int]
) -> Derived:
    """Two steps: the first block of each input, and what came after."""
    result = Derived(engine, folder, sql(query), sources, continued=True)
    result.step(*[1] * len(sources))
    result.step(*upto)
    return result
