from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfbuild.ingest.facts import SourceFacts
from odfbuild.odf.model import DatasetKind, MergeStrategyAppend, MergeStrategySnapshot, SetInfo
from odfbuild.plan.document import plan_digest
from odfbuild.plan.model import Action, DatasetPlan, Pending, ReasonCode
from tests.plan.worlds import UNCHANGED, Chain, World, news, pipeline, polling, transform


def codes(world: World, name: str) -> list[ReasonCode]:
    return [reason.code for reason in world.planned(name).reasons]


def test_nothing_changed_is_idle_everywhere():
    plan = pipeline().plan()
    assert not any(dataset.actions for dataset in plan.datasets)
    assert not plan.has_changes


def test_an_idle_dataset_says_why_it_is_idle():
    world = pipeline()
    assert codes(world, "flights") == [ReasonCode.SOURCE_UNCHANGED]
    assert codes(world, "late") == [ReasonCode.UP_TO_DATE]


def test_a_root_that_never_ran_runs():
    world = World().root("r").has("r", news(100))
    world.commit("r")
    assert codes(world, "r") == [ReasonCode.NEVER_RUN, ReasonCode.SOURCE_HAS_NEWS]
    assert world.planned("r").actions == (Action.RUN,)


def test_a_new_root_is_created_and_run():
    world = World().root("r").has("r", news(100))
    assert world.planned("r").actions == (Action.CREATE, Action.RUN)
    assert codes(world, "r")[0] is ReasonCode.NEW


def test_a_remote_source_is_left_to_apply():
    world = pipeline().has("flights", SourceFacts("unknown"))
    assert world.planned("flights").actions == (Action.POLL,)
    assert codes(world, "flights") == [ReasonCode.SOURCE_NOT_CHECKED]
    assert world.planned("worst").actions == (Action.POLL,)
    assert not world.plan().has_changes


def test_a_remote_source_that_was_never_read_is_run():
    world = World().root("r").has("r", SourceFacts("unknown"))
    assert world.planned("r").actions == (Action.CREATE, Action.RUN)


def test_a_missing_source_is_refused_and_its_new_readers_with_it():
    world = World().root("r").has("r", SourceFacts("missing", message="data/r.csv"))
    world.derivative("d", "r")
    refusal = world.planned("r").refusal
    assert refusal is not None and "data/r.csv" in refusal.message
    assert codes(world, "d") == [ReasonCode.INPUT_REFUSED]


def read_of(records: int, size: int) -> Pending:
    """So many new records that are committed already, and nothing else."""
    return Pending(records=records, bytes=size, read_least=records, read_most=records)


def upto(records: int) -> Pending:
    """At most so many new records that are still to come."""
    return Pending(records=records, bytes=None, exact=False, read_most=records)


def test_appending_without_a_query_keeps_every_record():
    world = World().root("r", polling(merge=MergeStrategyAppend())).has("r", news(100))
    assert world.planned("r").pending == Pending(
        records=100,
        bytes=2_000,
        exact=True,
        files=("data/2.csv",),
        read_least=100,
        read_most=100,
    )


def test_a_ledger_may_keep_fewer_records():
    world = World().root("r").has("r", news(100))
    pending = world.planned("r").pending
    assert pending is not None and not pending.exact


def test_an_advanced_input_gives_exact_records_bytes_blocks_and_offsets():
    world = pipeline()
    before = world.chains["flights"].now
    after = world.chains["flights"].add(7, watermark=3).add(4, watermark=4).now
    plan = world.planned("late")
    assert plan.actions == (Action.RUN,)
    assert plan.pending == read_of(11, 110)
    (reason,) = plan.reasons
    assert reason.code is ReasonCode.INPUT_ADVANCED
    assert (reason.from_block, reason.from_offset) == (before.head, 49)
    assert (reason.to_block, reason.to_offset) == (after.head, 60)


def test_a_derivative_that_never_ran_reads_everything():
    world = World().root("r").derivative("d", "r")
    world.commit("r").add(30)
    world.commit("d")
    world.has("r", UNCHANGED)
    assert codes(world, "d") == [ReasonCode.NEVER_RUN, ReasonCode.INPUT_ADVANCED]
    assert world.planned("d").pending == read_of(30, 300)


def test_an_input_without_data_and_without_plan_makes_its_reader_wait():
    world = World().define("pushed", DatasetKind.Root).derivative("d", "pushed")
    for name in world.order:
        world.commit(name)
    assert not world.planned("d").actions
    assert codes(world, "d") == [ReasonCode.NEVER_RUN, ReasonCode.INPUT_HAS_NO_DATA]


def test_news_reach_every_descendant_with_numbers():
    world = pipeline().has("flights", news(100))
    assert [d.actions for d in world.plan().datasets] == [(Action.RUN,)] * 3
    late, worst = world.planned("late"), world.planned("worst")
    assert late.pending == worst.pending == upto(100)


def test_causes_lead_down_to_the_root():
    (reason,) = pipeline().has("flights", news(100)).planned("worst").reasons
    assert (reason.code, reason.input) == (ReasonCode.UPSTREAM_PLANNED, "late")
    (child,) = reason.children
    assert (child.code, child.input) == (ReasonCode.UPSTREAM_PLANNED, "flights")
    assert [root.code for root in child.children] == [ReasonCode.SOURCE_HAS_NEWS]


def test_committed_and_planned_records_of_inputs_add_up():
    world = pipeline().has("flights", news(100))
    world.chains["flights"].add(8)
    pending = world.planned("late").pending
    assert pending is not None and pending.records == 108


def test_behind_a_join_nothing_is_promised():
    query = "SELECT a.* FROM flights AS a JOIN flights AS b ON a.id = b.id"
    world = pipeline().has("flights", news(100))
    world.derivative("late", "flights", query=query)
    # 50 are there, and each side may need them.
    assert world.planned("late").pending == replace(upto(100), read_most=150)
    pending = world.planned("worst").pending
    assert pending is not None and pending.records is None


def behind_a_snapshot(records: int) -> Pending | None:
    world = World().root("r", polling(merge=MergeStrategySnapshot(primary_key=("id",))))
    world.derivative("d", "r").has("r", news(100))
    chain = world.commit("r")
    if records:
        chain.add(records)
        world.commit("d").run(1, chain)
    return world.planned("d").pending


def test_a_snapshot_corrects_what_it_has_and_retracts_what_was_there_at_most():
    assert behind_a_snapshot(5) == upto(2 * 100 + 5)


def test_the_first_file_of_a_snapshot_has_nothing_to_differ_from():
    assert behind_a_snapshot(0) == upto(100)


def by_airport(*origins: str) -> World:
    """Flights, those of each airport, and all of them together again."""
    world = World().root("flights")
    for origin in origins:
        query = f"SELECT id, name FROM flights WHERE name = '{origin}' AND id > 0"
        world.derivative(f"d{len(world.order)}", "flights", query=query)
    names = [name for name in world.order if name != "flights"]
    query = " UNION ALL ".join(f"SELECT id, name FROM {name}" for name in names)
    return world.derivative("all", *names, query=query).has("flights", news(100))


@pytest.mark.parametrize(
    ("origins", "most"),
    [(("EWR", "JFK", "LGA"), 100), (("EWR", "JFK", "ewr"), 300), (("EWR", "JFK", "1"), 200)],
)
def test_a_union_of_what_was_divided_is_never_more_than_there_was(origins, most):
    assert by_airport(*origins).planned("all").pending == upto(most)


def test_parts_that_somebody_has_computed_already_are_added():
    world = by_airport("EWR", "JFK")
    for name in world.order[:3]:
        world.commit(name)
    world.chains["flights"].add(30)
    world.chains["d1"].run(7, world.chains["flights"])
    # 7 wait; 100 are still to come to the one, and these and 30 to the other.
    assert world.planned("all").pending == replace(upto(137), read_least=7, read_most=137)


SUM = "SELECT name, count(*) AS id FROM flights GROUP BY name"


def test_a_changelog_reads_all_that_there_is():
    world = World().root("flights").derivative("sum", "flights", query=SUM)
    world.derivative("next", "sum")
    chain = world.commit("flights").add(50)
    sum = world.commit("sum").run(9, chain)
    world.commit("next").run(9, sum)
    chain.add(7)
    world.has("flights", UNCHANGED)
    now = replace(read_of(7, 70), read_least=57, read_most=57)
    assert world.planned("sum").pending == now
    # A sum is taken back and given anew.
    assert world.planned("next").pending == upto(14)
    world.has("flights", news(100))
    coming = replace(upto(107), read_least=57, read_most=157)
    assert world.planned("sum").pending == coming
    assert world.planned("next").pending == upto(9 + 157)


def test_a_stream_reads_no_more_than_there_is():
    query = "SELECT count(*) AS id, 'x' AS name FROM flights GROUP BY window(event_time, '1 day')"
    world = World().root("flights").derivative("days", "flights", query=query)
    world.derivative("next", "days")
    chain = world.commit("flights").add(50, watermark=1)
    world.commit("days").run(9, chain)
    world.commit("next").run(9, world.chains["days"])
    chain.add(1, watermark=9)
    world.has("flights", UNCHANGED)
    assert world.planned("days").pending == replace(read_of(1, 10), read_least=0, read_most=51)
    # Each of 51 records may be alone in a window that is closed now.
    assert world.planned("next").pending == upto(9 + 51)


def test_a_changed_query_alone_runs_nothing():
    world = pipeline().derivative("late", "flights", query="SELECT * FROM flights WHERE id > 9")
    assert world.planned("late").actions == (Action.APPEND,)
    assert not world.planned("worst").actions


def test_an_input_that_only_got_a_description_is_no_reason_to_run():
    world = pipeline()
    world.chains["flights"].append(SetInfo(description="All flights"))
    assert not world.planned("late").actions


def test_a_watermark_that_moved_alone_is_a_reason_to_run():
    world = pipeline()
    world.chains["late"].run(0, world.chains["flights"], watermark=9)
    plan = world.planned("worst")
    assert plan.actions == (Action.RUN,)
    assert plan.pending == read_of(0, 0)


def test_a_rewritten_input_is_refused_and_named():
    world = pipeline()
    other = Chain("flights", DatasetKind.Root, salt="rewritten")
    for event in world.definitions["flights"].snapshot.metadata:
        other.append(event)
    world.chains["flights"] = other.add(60)
    plan = world.planned("late")
    assert plan.actions == (Action.REFUSE,)
    [reason] = plan.reasons
    assert reason.code is ReasonCode.INPUT_REWRITTEN
    assert (reason.from_offset, reason.to_offset) == (49, 59)
    assert plan.refusal is not None and "flights" in plan.refusal.message
    assert not world.planned("worst").actions


def test_a_chain_without_definition_is_orphaned_and_never_deleted():
    world = pipeline()
    del world.definitions["worst"]
    plan = world.planned("worst")
    assert plan.actions == (Action.FORGET,)
    assert not world.plan().has_changes


def test_who_reads_an_orphaned_dataset_is_named():
    world = pipeline()
    del world.definitions["flights"]
    assert said(world.planned("flights"))[1:] == [
        ("still_read", "late reads it and gets no new records from it")
    ]


def test_a_new_dataset_that_is_defined_like_an_orphaned_one_may_be_that_one():
    world = pipeline()
    for old, new in (("flights", "air.flights"), ("worst", "air.worst")):
        snapshot = world.definitions.pop(old).snapshot
        world.define(new, snapshot.kind, *snapshot.metadata)
    hint = (
        "air.{0} has the same definition and starts a new history; to continue this one, add "
        "`moved: {{{0}: air.{0}}}` in odfbuild.yaml"
    )
    assert said(world.planned("flights"))[2:] == [("looks_renamed", hint.format("flights"))]
    assert said(world.planned("worst"))[1:] == [("looks_renamed", hint.format("worst"))]


def test_a_likeness_to_several_datasets_tells_nothing():
    world = pipeline()
    snapshot = world.definitions.pop("worst").snapshot
    for new in ("one", "two"):
        world.define(new, snapshot.kind, *snapshot.metadata)
    assert [code for code, _ in said(world.planned("worst"))] == ["no_definition"]


def said(plan: DatasetPlan) -> list[tuple[str, str]]:
    return [(reason.code.value, reason.message) for reason in plan.reasons]


def test_inputs_come_before_their_readers():
    world = pipeline()
    assert [dataset.name for dataset in world.plan().datasets] == ["flights", "late", "worst"]


def test_a_diamond_shows_one_path_for_each_input():
    world = World().root("r").has("r", news(1))
    world.derivative("a0", "r").derivative("b0", "r")
    for level in range(1, 12):
        below = level - 1
        query = f"SELECT * FROM a{below}"
        for side in "ab":
            inputs = (f"a{below}", f"b{below}")
            world.define(f"{side}{level}", DatasetKind.Derivative, transform(*inputs, query=query))
    reasons = world.planned("b11").reasons
    assert sum(map(size_of, reasons)) < 60


def size_of(reason) -> int:
    return 1 + sum(map(size_of, reason.children))


@given(st.lists(st.integers(1, 50), max_size=5), st.integers(0, 5))
def test_pending_is_what_came_after_the_last_run(batches, seen):
    world = World().root("r").derivative("d", "r").has("r", UNCHANGED)
    chain = world.commit("r").add(1)
    world.commit("d")
    for number, records in enumerate(batches):
        if number == seen:
            world.chains["d"].run(1, chain)
        chain.add(records)
    unread = batches[seen:] if seen < len(batches) else [1, *batches]
    pending = world.planned("d").pending
    assert pending == read_of(sum(unread), 10 * sum(unread))


@given(st.booleans(), st.booleans(), st.integers(0, 3))
def test_planning_twice_gives_the_same_digest(is_news, changed, extra):
    def build():
        world = pipeline()
        if is_news:
            world.has("flights", news())
        if changed:
            world.derivative(
                "late", "flights", query="SELECT event_time, 1 AS id, name FROM flights"
            )
        for _ in range(extra):
            world.chains["late"].run(3, world.chains["flights"], watermark=2)
        return world.plan()

    assert build() == build()
    assert plan_digest(build()) == plan_digest(build())
