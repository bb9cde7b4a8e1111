"""Plans tell which readers of corrections are not affected, where that is certain."""

from __future__ import annotations

import pytest

from odfbuild.plan.build import build_plan
from odfbuild.plan.inputs import Asked
from odfbuild.plan.model import Action, DatasetPlan, takes_engine
from odfbuild.plan.ways import Way
from odfbuild.store.corrections import Corrected, Corrections
from tests.plan.worlds import UNCHANGED, World, hash_of

IDS = "SELECT MAX(event_time) AS event_time, id, 'x' AS name FROM people GROUP BY id"
AFTER = IDS.replace("people", "ids")
SLICE = str(hash_of("p"))


def world(query: str = IDS, watermark: int | None = None) -> World:
    """people → ids → after: two corrected records of people are not read yet."""
    made = World().root("people").derivative("ids", "people", query=query)
    made.derivative("after", "ids", query=AFTER).has("people", UNCHANGED)
    people = made.commit("people").add(10, watermark=1)
    ids = made.commit("ids").run(10, people, watermark=1)
    made.commit("after").run(2, ids, watermark=1)
    people.add(4, watermark=watermark)
    return made


def planned(
    made: World, *columns: str, alone: bool = True, in_full: bool = True
) -> dict[str, DatasetPlan]:
    """The plan, where the corrections are known to change these columns."""
    told = {
        name: Corrections(chain.now.head, in_full=in_full and name != "people")
        for name, chain in made.chains.items()
    }
    slices = {SLICE: Corrected(columns, alone)}
    told["people"] = Corrections(made.chains["people"].now.head, slices=slices)
    plan = build_plan(made.plan_facts(corrections=told.get), Asked())
    return {each.name: each for each in plan.datasets}


def test_a_reader_of_other_columns_reads_nothing_and_its_readers_do_not_run() -> None:
    found = planned(world(), "name")
    ids = found["ids"]
    assert ids.actions == (Action.RUN,)
    assert not takes_engine(ids)
    assert ids.pending is not None
    assert ids.pending.read_most == 0
    assert ids.pending.computation is not None
    assert ids.pending.computation.way is Way.NONE
    assert ids.pending.computation.why == "it uses no column that is corrected (people.name)"
    assert found["after"].actions == ()


def test_readers_follow_a_watermark_that_moves_and_compute_nothing() -> None:
    found = planned(world(watermark=2), "name")
    after = found["after"]
    assert after.actions == (Action.RUN,)
    assert after.pending is not None
    assert after.pending.computation is not None
    assert after.pending.computation.way is Way.NONE


@pytest.mark.parametrize(
    ("query", "columns", "alone", "in_full"),
    [
        (IDS, ("id",), True, True),
        (IDS, ("name",), False, True),
        (IDS, ("name",), True, False),
        ("SELECT COUNT(*) AS n FROM (SELECT DISTINCT * FROM people)", ("name",), True, True),
        ("SELECT id, MAX(offset) AS o FROM people GROUP BY id", ("name",), True, True),
    ],
)
def test_what_is_not_certain_is_computed(
    query: str, columns: tuple[str, ...], alone: bool, in_full: bool
) -> None:
    found = planned(world(query), *columns, alone=alone, in_full=in_full)
    ids = found["ids"]
    assert takes_engine(ids)
    assert ids.pending is not None
    assert ids.pending.read_most == 14
    assert found["after"].actions != ()


def test_a_changed_query_is_computed() -> None:
    made = world()
    made.derivative("ids", "people", query=f"{IDS} HAVING COUNT(*) > 1")
    assert takes_engine(planned(made, "name")["ids"])
