"""Totals of groups that are kept give the slice of a step over all records, to the byte."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from odfbuild.engine import affected_records
from odfbuild.engine.affected_records import affected
from odfbuild.engine.contract import Engine
from odfbuild.engine.spark.queries import changes_of_parts, totals
from odfbuild.records.segments import Segments
from odfbuild.sql.increments import parts
from odfbuild.sql.increments.affected_keys import parts_of
from odfbuild.sql.increments.plan_inputs import Undivided
from odfbuild.store.side_cars import SideCarFolder
from tests.engine.inputs import sql
from tests.engine.modes.test_affected_keys import BLOCKS, EVENTS, Walk, seeds
from tests.engine.stepwise import Derived, Source

TIME = "SELECT MAX(event_time) AS event_time"
FOLLOW = [
    f"{TIME}, AVG(amount) AS a, AVG(price) AS p, COUNT(*) AS n FROM events",
    f"{TIME}, city, AVG(amount) AS a, AVG(CAST(amount AS DECIMAL(9, 2))) AS d FROM events"
    " GROUP BY city",
    f"{TIME}, city, COUNT(*) AS n FROM events GROUP BY city HAVING COUNT(*) > 3 AND MIN(id) < 3",
    f"{TIME}, COUNT(*) AS n FROM events HAVING COUNT(*) % 2 = 0",
    f"{TIME}, x, id % 2 AS odd, ROUND(AVG(price), 1) AS p, SUM(amount) / COUNT(*) AS r,"
    " CASE WHEN COUNT(*) > 3 THEN 'many' ELSE 'few' END AS size FROM events GROUP BY x, id % 2",
    f"{TIME}, upper(city) AS city, AVG(amount) FILTER (WHERE id > 1) AS f, COUNT_IF(amount > 1)"
    " AS c, SUM(CASE WHEN amount > 1 THEN price END) AS s, COUNT(CASE WHEN id > 2 THEN 1 END) AS k"
    " FROM events GROUP BY upper(city)",
    "SELECT event_time, COALESCE(city, 'none') AS city, n FROM (SELECT MAX(event_time) AS"
    " event_time, city, SUM(amount) - MIN(amount) AS n FROM events GROUP BY city) WHERE n > 2",
    f"WITH e AS (SELECT * FROM events WHERE id > 0), c AS ({TIME}, COUNT(*) AS n, MAX(x) AS high,"
    " BOOL_AND(amount > 1) AS b FROM e GROUP BY city) SELECT *, n + 1 AS m FROM c WHERE n > 1"
    " ORDER BY n",
    f"{TIME}, tag, AVG(amount) AS a FROM (SELECT event_time, amount, explode(split(tags, ' ')) AS"
    " tag FROM events UNION ALL SELECT event_time, amount, city FROM events) GROUP BY tag",
    "SELECT MAX(e.event_time) AS event_time, p.name, AVG(e.amount) AS a FROM events e JOIN people p"
    " ON e.id = p.id GROUP BY p.name HAVING COUNT(*) > (SELECT COUNT(*) FROM people) / 8",
]


@pytest.fixture(autouse=True)
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Histories are short here, and nothing is looked for by keys."""

    def undivided(*_: object) -> None:
        raise Undivided("the test wants it", None, "")

    monkeypatch.setattr(parts, "FEWEST", 0)
    monkeypatch.setattr(affected_records, "MANY_RECORDS", 0)
    monkeypatch.setattr(parts, "LARGEST_SHARE", 100)
    monkeypatch.setattr(changes_of_parts, "parts_of", undivided)


def compared(
    engine: Engine, folder: Path, query: str, inputs: Sequence[Source], *more: str
) -> list[bool]:
    """Which of the steps behind the second read no earlier record, all slices compared."""
    sources = [each for each in inputs if each.alias in query]
    whole, part = (
        Derived(engine, folder / name, sql(query, *more), sources, continued=continued)
        for name, continued in (("all", False), ("kept", True))
    )
    found = []
    for block in range(1, BLOCKS + 1):
        for each in (whole, part):
            each.step(*[block] * len(sources))
        assert [f.read_bytes() for f in part.files] == [f.read_bytes() for f in whole.files], query
        found.append(part.extent is not None and not part.extent.why)
    return found[2:]


@pytest.mark.spark
@pytest.mark.parametrize("seed", seeds(1, 10))
def test_a_step_behind_kept_totals_reads_new_records_alone(
    spark_engine: Engine, tmp_path: Path, seed: int
) -> None:
    walk = Walk(tmp_path / "inputs", seed, 1, appended=True)
    for number, query in enumerate(FOLLOW):
        (tmp_path / str(number)).mkdir()
        found = compared(spark_engine, tmp_path / str(number), query, walk.sources)
        assert found and all(found), query


@pytest.mark.spark
def test_totals_of_a_query_of_several_steps_are_kept(spark_engine: Engine, tmp_path: Path) -> None:
    steps = [
        "SELECT event_time, lower(city) AS city, amount FROM events WHERE amount IS NOT NULL",
        f"{TIME}, city, AVG(amount) AS a, COUNT(*) AS n FROM step0 GROUP BY city",
        "SELECT event_time, city, ROUND(a, 1) AS a FROM step1 WHERE n > 1",
    ]
    walk = Walk(tmp_path / "inputs", 8, 1, appended=True)
    assert all(compared(spark_engine, tmp_path, steps[0], walk.sources, *steps[1:]))


@pytest.mark.spark
def test_groups_are_chosen_by_values_that_are_no_numbers(
    spark_engine: Engine, tmp_path: Path
) -> None:
    events = Source(tmp_path, "events", EVENTS)
    for hour, x in enumerate([0.0, float("nan"), 0.5, 1.5]):
        city = "Oslo" if hour < 3 else "Rome"
        events.add([(f"1{hour}:00", hour, city, 1, x, None, "")])
    query = f"{TIME}, city, AVG(amount) AS a FROM events GROUP BY city HAVING MAX(x) > 1"
    assert all(compared(spark_engine, tmp_path, query, [events]))


TAKEN = [FOLLOW[0], FOLLOW[2], FOLLOW[5], FOLLOW[9]]


@pytest.mark.spark
@pytest.mark.parametrize("seed", seeds(1, 20))
def test_records_that_are_taken_back_make_totals_less(
    spark_engine: Engine, tmp_path: Path, seed: int
) -> None:
    walk = Walk(tmp_path / "inputs", seed, 1)
    found = []
    for number, query in enumerate(TAKEN if seed < 1 else FOLLOW):
        (tmp_path / str(number)).mkdir()
        found += compared(spark_engine, tmp_path / str(number), query, walk.sources)
    assert any(found)


def made_up(chance: random.Random) -> str:
    """A query that computes with totals, and chooses among groups."""
    one = chance.choice
    keys = chance.sample(
        ["city", "x", "price", "id % 2", "upper(tags)", "amount > 1"], one([0, 1, 2])
    )
    where = one(["", "", " FILTER (WHERE id > 1)", " FILTER (WHERE city IS NULL)"])
    value = one(["amount", "price", "CASE WHEN id > 2 THEN amount END", "amount * 2"])
    calls = [f"AVG({value})", f"SUM({value})", f"COUNT({value})", f"MIN({value})", "MAX(x)"]
    first, second = (f"{one(calls)}{where}", f"{one([*calls, 'COUNT(*)'])}")
    top = one(["{}", "ROUND({}, 1)", "{} + COUNT(*)", "CASE WHEN {} > 1 THEN 'a' END", "-{}"])
    named = "".join(f", {key} AS k{n}" for n, key in enumerate(keys))
    having = one(["", f" HAVING {second} > 1", " HAVING COUNT(*) > 2", " HAVING MIN(id) < 4"])
    group = f" GROUP BY {', '.join(keys)}" if keys else ""
    time = "SELECT COALESCE(MAX(event_time), TIMESTAMP '2024-05-01 00:00:00') AS event_time"
    return f"{time}{named}, {top.format(first)} AS v FROM events{group}{having}"


@pytest.mark.spark
@pytest.mark.parametrize("seed", seeds(1, 40))
def test_made_up_queries_of_totals_give_the_slices_of_full_steps(
    spark_engine: Engine, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    walk = Walk(tmp_path / "inputs", seed, 1, appended=seed % 2 == 0)
    for number in range(3):
        (tmp_path / str(number)).mkdir()
        compared(spark_engine, tmp_path / str(number), made_up(chance), walk.sources)


@pytest.mark.spark
def test_groups_whose_greatest_value_is_taken_back_are_computed_over_their_records(
    spark_engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[bool] = []

    def found(*given: Any) -> Any:
        steps.append(len(steps) > 0)
        return affected(*given) if steps[-1] else None

    monkeypatch.setattr(changes_of_parts, "parts_of", parts_of)
    monkeypatch.setattr(changes_of_parts, "affected", found)
    events = Source(tmp_path, "events", EVENTS)
    rows = [("10:00", 1, "Oslo", 3, None, None, ""), ("11:00", 2, "Rome", 5, None, None, "")]
    events.add([*rows, ("12:00", 3, "Oslo", 8, None, None, "")])
    events.add([("13:00", 4, "Rome", 1, None, None, "")])
    events.add([("12:00", 3, "Oslo", 8, None, None, "")], ops=[1])
    events.add([("09:00", 5, "Oslo", 4, None, None, "")])
    events.add([rows[0], ("09:00", 5, "Oslo", 4, None, None, "")], ops=[1, 1])
    events.add([("08:00", 6, "Oslo", 4, None, None, "")])
    whole, part = (
        Derived(spark_engine, tmp_path / name, sql(FOLLOW[1]), [events], continued=continued)
        for name, continued in (("all", False), ("kept", True))
    )
    for block in range(1, 7):
        assert part.step(block) == whole.step(block)
    assert steps == [False, True]
    assert [f.read_bytes() for f in part.files] == [f.read_bytes() for f in whole.files]


@pytest.mark.spark
def test_records_that_are_taken_back_and_are_not_there_are_none_less(
    spark_engine: Engine, tmp_path: Path
) -> None:
    events = Source(tmp_path, "events", EVENTS)
    row, other = (("10:00", n, "Oslo", 3, None, None, "") for n in (1, 2))
    events.add([row, ("11:00", 2, "Oslo", 5, None, None, "")])
    events.add([("11:00", 3, "Oslo", 6, None, None, "")])
    events.add([row, row], ops=[1, 1])
    events.add([row])
    events.add([("11:00", 4, "Oslo", 7, None, None, "")])
    events.add([other], ops=[1])
    events.add([other])
    whole, part = (
        Derived(spark_engine, tmp_path / name, sql(FOLLOW[1]), [events], continued=continued)
        for name, continued in (("all", False), ("kept", True))
    )
    for block in range(1, 8):
        assert part.step(block) == whole.step(block), block
    assert [f.read_bytes() for f in part.files] == [f.read_bytes() for f in whole.files]


def deleted(folder: Path) -> None:
    shutil.rmtree(folder)


def cut(folder: Path) -> None:
    for file in folder.glob("*.arrow"):
        file.write_bytes(file.read_bytes()[:-7])


def of_another_machine(folder: Path) -> None:
    file = folder / "manifest.bin"
    file.write_bytes(file.read_bytes()[:-1] + b"?")


def of_an_older_release(folder: Path) -> None:
    file = folder / "manifest.bin"
    file.write_bytes(file.read_bytes().replace(b"totals of groups 1", b"totals of groups 0"))


def unharmed(folder: Path) -> None:
    assert folder.is_dir()


@pytest.mark.spark
def test_slices_are_the_same_whatever_becomes_of_kept_totals(
    spark_engine: Engine, tmp_path: Path
) -> None:
    walk = Walk(tmp_path / "inputs", 4, 1, appended=True)

    def slices(harm: Callable[[Path], None]) -> tuple[list[bytes], bool]:
        result = Derived(
            spark_engine, tmp_path / harm.__name__, sql(FOLLOW[1]), walk.sources[:1], continued=True
        )
        for block in range(1, BLOCKS + 1):
            for file in [*(tmp_path / harm.__name__).rglob("manifest.bin")]:
                harm(file.parent)
            result.step(block)
        assert result.extent is not None
        return [file.read_bytes() for file in result.files], not result.extent.why

    whole, added = slices(unharmed)
    assert added
    for harm in (deleted, cut, of_another_machine, of_an_older_release):
        assert slices(harm) == (whole, False), harm


@pytest.mark.spark
def test_a_step_that_is_done_again_finds_the_totals_from_before_it(
    spark_engine: Engine, tmp_path: Path
) -> None:
    walk = Walk(tmp_path / "inputs", 5, 1, appended=True)
    result = Derived(spark_engine, tmp_path / "made", sql(FOLLOW[1]), walk.sources[:1])
    result.continued = True
    for block in range(1, BLOCKS):
        result.step(block)
    made, done, records = [*result.files], [*result.done], result.records
    result.step(BLOCKS)
    first = [file.read_bytes() for file in result.files]
    result.files, result.done, result.records = made, done, records
    result.step(BLOCKS)
    assert [file.read_bytes() for file in result.files] == first
    assert result.extent is not None and not result.extent.why


@pytest.mark.spark
@pytest.mark.parametrize("at", range(4))
def test_a_process_that_ends_while_it_keeps_totals_leaves_what_is_right_or_nothing(
    spark_engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    writes = [
        (Segments, "written"),
        (Segments, "grown"),
        (SideCarFolder, "describe"),
        (SideCarFolder, "save"),
    ]
    owner, name = writes[at]
    way = getattr(owner, name)
    walk = Walk(tmp_path / "inputs", 6, 1, appended=True)
    results = [
        Derived(spark_engine, tmp_path / f, sql(FOLLOW[1]), walk.sources[:1], continued=True)
        for f in ("whole", "ended")
    ]

    def ends(*given: object, **named: object) -> object:
        way(*given, **named)
        raise OSError("the process ends here")

    for block in range(1, BLOCKS + 1):
        results[0].step(block)
        with monkeypatch.context() as patched:
            if block == BLOCKS - 1:
                patched.setattr(owner, name, ends)
            results[1].step(block)
    one, other = ([file.read_bytes() for file in each.files] for each in results)
    assert one == other


@pytest.mark.spark
def test_a_wrong_way_to_put_totals_together_is_noticed(
    spark_engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    way = totals._sum
    monkeypatch.setattr(totals, "_sum", lambda total: way(total).replace("SUM", "MAX"))
    walk = Walk(tmp_path / "inputs", 1, 1, appended=True)
    with pytest.raises(AssertionError):
        compared(spark_engine, tmp_path, FOLLOW[0], walk.sources)


@pytest.mark.spark
def test_averages_that_floating_point_numbers_may_not_hold_are_not_kept(
    spark_engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(totals, "_EXACT", 3)
    walk = Walk(tmp_path / "inputs", 1, 1, appended=True)
    assert not any(compared(spark_engine, tmp_path, FOLLOW[0], walk.sources))
