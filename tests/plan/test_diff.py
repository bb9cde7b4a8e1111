from dataclasses import replace

import pytest

from odfbuild.odf.model import (
    AddPushSource,
    DatasetKind,
    DisablePollingSource,
    DisablePushSource,
    MergeStrategyAppend,
    MergeStrategySnapshot,
    ReadStepCsv,
    ReadStepNdJson,
    SetInfo,
    SetLicense,
    SetPollingSource,
    SetTransform,
    SetVocab,
)
from odfbuild.plan.model import Action, ReasonCode
from tests.plan.worlds import World, did, ledger, pipeline, polling, transform

PUSH = AddPushSource(source_name="default", read=ReadStepNdJson(), merge=MergeStrategyAppend())


def kinds(world: World, name: str) -> list[str]:
    return [change.after.KIND for change in world.planned(name).changes]


def test_everything_of_a_new_dataset_is_appended_in_order_of_definition():
    world = World().root("r", SetInfo(description="d"), polling(), SetVocab(offset_column="o"))
    assert kinds(world, "r") == ["SetInfo", "SetPollingSource", "SetVocab"]
    assert Action.CREATE in world.planned("r").actions


def test_a_committed_definition_appends_nothing():
    assert [d.changes for d in pipeline().plan().datasets] == [(), (), ()]


def test_an_input_by_alias_equals_the_committed_did():
    world = pipeline()
    committed = world.chains["late"].now.transform
    assert committed is not None
    assert committed.inputs[0].dataset_ref == did("flights")
    assert not world.planned("late").actions


def test_names_of_inputs_are_compared_without_regard_to_case():
    world = pipeline().derivative("late", "FLIGHTS", query="SELECT *\nFROM flights\nWHERE id > 0\n")
    defined = world.definitions["late"].snapshot.metadata[0]
    assert isinstance(defined, SetTransform)
    inputs = (replace(defined.inputs[0], alias="flights"),)
    world.define("late", DatasetKind.Derivative, replace(defined, inputs=inputs))
    assert not world.planned("late").actions


def test_a_renamed_input_in_the_query_is_a_change():
    world = pipeline()
    defined = transform("flights")
    inputs = (replace(defined.inputs[0], alias="f"),)
    world.define("late", DatasetKind.Derivative, replace(defined, inputs=inputs))
    assert kinds(world, "late") == ["SetTransform"]


def test_an_input_without_a_chain_stays_an_alias_and_a_known_one_becomes_a_did():
    world = World().root("a").root("b").derivative("d", "a", "b", query="SELECT * FROM a")
    world.commit("a")
    (change,) = world.planned("d").changes
    assert isinstance(change.after, SetTransform)
    assert [str(i.dataset_ref) for i in change.after.inputs] == [str(did("a")), "b"]


def test_events_that_the_definition_does_not_mention_are_left_alone():
    world = pipeline().root("flights", polling())
    assert not world.planned("flights").actions


def test_changed_texts_are_appended_as_metadata():
    world = pipeline().root("flights", polling(), SetInfo(description="Some flights"))
    plan = world.planned("flights")
    assert plan.actions == (Action.APPEND,)
    assert next(r.code for r in plan.reasons) is ReasonCode.INFO_CHANGED
    (change,) = plan.changes
    assert change.before == SetInfo(description="All flights")


def test_the_last_event_of_a_kind_counts():
    first, last = SetInfo(description="first"), SetInfo(description="All flights")
    world = pipeline().root("flights", polling(), first, last)
    assert not world.planned("flights").actions


@pytest.mark.parametrize(
    "read",
    [
        ReadStepCsv(header=True, ddl_schema=("id BIGINT", "name STRING"), separator=","),
        ReadStepCsv(header=True, ddl_schema=("id BIGINT", "name STRING"), encoding="utf8"),
        ReadStepCsv(header=True, ddl_schema=("id BIGINT", "name STRING"), infer_schema=False),
    ],
)
def test_a_default_that_is_written_out_is_no_change(read):
    world = pipeline().root("flights", replace(polling(), read=read, prepare=()))
    assert not world.planned("flights").actions


def test_another_separator_is_a_change():
    read = ReadStepCsv(header=True, ddl_schema=("id BIGINT", "name STRING"), separator=";")
    world = pipeline().root("flights", replace(polling(), read=read))
    assert kinds(world, "flights") == ["SetPollingSource"]


def test_the_default_vocabulary_written_out_is_no_change():
    world = pipeline().root("flights", polling(), SetVocab(offset_column="offset"))
    assert not world.planned("flights").actions


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM flights WHERE id > 0",
        "SELECT *  -- everything\nFROM flights\n\n  WHERE id>0\n",
        "/* why */ SELECT * FROM flights WHERE id > 0\n",
    ],
)
def test_white_space_and_comments_are_reported_and_not_appended(query):
    world = pipeline().derivative("late", "flights", query=query)
    plan = world.planned("late")
    assert not plan.actions
    assert plan.changes == ()
    assert [reason.code for reason in plan.reasons] == [ReasonCode.COSMETIC]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM flights WHERE id > 1",
        "SELECT * FROM flights WHERE 'id > 0'",
        "SELECT /*+ COALESCE(1) */ * FROM flights WHERE id > 0",
        "SELECT * FROM flights WHERE id > 0 AND name = 'a -- b'",
    ],
)
def test_what_spark_sees_is_not_cosmetic(query):
    world = pipeline().derivative("late", "flights", query=query)
    assert kinds(world, "late") == ["SetTransform"]


def test_white_space_inside_a_literal_is_a_change():
    literal = "SELECT event_time, id, '{}' AS name FROM flights"
    world = pipeline().derivative(
        "late", "flights", query="SELECT event_time, id, 'a b' AS name FROM flights"
    )
    world.commit("late").run(1, world.chains["flights"])
    world.derivative("late", "flights", query=literal.format("a  b"))
    assert kinds(world, "late") == ["SetTransform"]


def test_a_changed_query_goes_forward_and_counts_what_stays():
    world = pipeline().derivative("late", "flights", query="SELECT * FROM flights WHERE id > 9")
    plan = world.planned("late")
    assert plan.actions == (Action.APPEND,)
    assert plan.records_under_old_query == 20
    assert [(era.sequence_number, era.first, era.last) for era in plan.eras] == [(1, 0, 19)]


LATEST = "SELECT max(event_time) AS event_time, id, max(name) AS name FROM flights GROUP BY id"


def test_a_changed_query_whose_result_is_a_changelog_leaves_nothing_with_the_old_query():
    plan = pipeline().derivative("late", "flights", query=LATEST).planned("late")
    assert (plan.records_under_old_query, plan.records_to_correct, plan.eras) == (None, 20, ())


def test_a_changelog_that_becomes_a_query_over_single_records_keeps_what_there_is():
    world = World().root("flights", polling()).derivative("late", "flights", query=LATEST)
    world.commit("flights").run(20)
    world.commit("late").run(20, world.chains["flights"])
    world.derivative("late", "flights", query="SELECT * FROM flights WHERE id > 9")
    plan = world.planned("late")
    assert (plan.records_under_old_query, plan.records_to_correct) == (20, None)


def test_a_changed_query_of_a_dataset_that_never_ran_leaves_nothing_behind():
    world = World().root("r").derivative("d", "r")
    world.commit("r")
    world.commit("d")
    world.derivative("d", "r", query="SELECT 1 AS one FROM r")
    assert world.planned("d").records_under_old_query is None


def test_a_removed_polling_source_is_disabled():
    world = pipeline().root("flights", SetInfo(description="All flights"))
    (change,) = world.planned("flights").changes
    assert change.after == DisablePollingSource()
    assert isinstance(change.before, SetPollingSource)


def test_a_removed_push_source_is_disabled_and_the_other_stays():
    world = World().root("r", PUSH, replace(PUSH, source_name="other"))
    world.commit("r")
    world.root("r", PUSH)
    assert [c.after for c in world.planned("r").changes] == [DisablePushSource(source_name="other")]


def refused(world: World, name: str) -> str:
    plan = world.planned(name)
    assert plan.actions == (Action.REFUSE,)
    assert plan.changes == ()
    assert plan.refusal is not None
    assert plan.refusal.help
    assert plan.refusal.location is not None
    assert not world.plan().applyable
    return plan.refusal.code


def test_another_kind_of_dataset_is_refused():
    world = pipeline()
    world.define("worst", DatasetKind.Root, polling())
    assert refused(world, "worst") == "E0312"


def with_inputs(*before: str, after: tuple[str, ...]) -> World:
    """A derivative that ran with some inputs and is now defined with others."""
    world = World()
    for name in sorted({*before, *after}):
        world.root(name)
        world.commit(name).add(1)
    world.derivative("d", *before, query="SELECT 1")
    world.commit("d").run(1, *(world.chains[name] for name in before))
    return world.derivative("d", *after, query="SELECT 1")


def test_an_input_that_is_added_is_a_change_that_goes_forward():
    world = with_inputs("a", after=("a", "b"))
    planned = world.planned("d")
    assert planned.actions == (Action.APPEND, Action.RUN)
    codes = [reason.code for reason in planned.reasons]
    assert codes[:3] == [
        ReasonCode.TRANSFORM_CHANGED,
        ReasonCode.INPUT_ADDED,
        ReasonCode.INPUT_ADVANCED,
    ]
    assert planned.reasons[1].message == "b is a new input, read from its beginning"


def test_the_last_input_can_go():
    world = with_inputs("a", "b", after=("a",))
    planned = world.planned("d")
    assert kinds(world, "d") == ["SetTransform"]
    assert planned.reasons[1].code is ReasonCode.INPUT_REMOVED


def test_inputs_in_another_order_are_no_change():
    world = with_inputs("a", "b", after=("b", "a"))
    assert world.planned("d").changes == ()


def test_an_added_input_is_committed_behind_the_others_wherever_it_is_defined():
    world = with_inputs("b", after=("a", "b"))
    [change] = world.planned("d").changes
    assert [each.alias for each in change.after.inputs] == ["b", "a"]


@pytest.mark.parametrize("after", [("b",), ("c",), ("b", "c")])
def test_an_input_that_others_stand_behind_cannot_go(after):
    world = with_inputs("a", "b", after=after)
    assert refused(world, "d") == "E0315"
    assert "--allow rebuild:d+" in (world.planned("d").refusal.help or "")


def test_another_list_of_inputs_is_fine_before_the_first_run():
    world = World().root("a").root("b").derivative("d", "a")
    for name in world.order:
        world.commit(name)
    world.derivative("d", "b")
    assert kinds(world, "d") == ["SetTransform"]


@pytest.mark.parametrize(
    "merge",
    [ledger("id", "name"), MergeStrategyAppend(), MergeStrategySnapshot(primary_key=("id",))],
)
def test_another_merge_is_refused_once_there_are_records(merge):
    assert refused(pipeline().root("flights", polling(merge=merge)), "flights") == "E0303"


def test_another_merge_is_fine_without_records():
    world = World().root("r")
    world.commit("r")
    world.root("r", polling(merge=MergeStrategyAppend()))
    assert kinds(world, "r") == ["SetPollingSource"]


def test_other_columns_to_compare_are_appended():
    before = MergeStrategySnapshot(primary_key=("id",))
    world = World().root("r", polling(merge=before))
    world.commit("r").add(3)
    world.root("r", polling(merge=replace(before, compare_columns=("name",))))
    assert kinds(world, "r") == ["SetPollingSource"]


def test_another_vocabulary_is_refused_once_there_are_records():
    world = pipeline().root("flights", polling(), SetVocab(event_time_column="at"))
    assert refused(world, "flights") == "E0304"


def test_a_new_dataset_cannot_be_both_polled_and_pushed_to():
    assert refused(World().root("r", polling(), PUSH), "r") == "E0305"


def test_several_breaking_changes_are_all_named():
    world = pipeline().root(
        "flights", polling(merge=MergeStrategyAppend()), SetVocab(offset_column="o")
    )
    refusal = world.planned("flights").refusal
    assert refusal is not None
    assert any("system columns" in note for note in refusal.notes)


def test_a_refused_dataset_does_not_stop_the_others():
    world = pipeline().root("flights", polling(merge=MergeStrategyAppend()))
    world.root("new", polling(), SetLicense(short_name="C", name="C", website_url="https://c"))
    assert Action.CREATE in world.planned("new").actions
    assert not world.planned("late").actions
