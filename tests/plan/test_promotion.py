"""What a promotion decides, on values."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

from odfbuild.odf.model import (
    DataField,
    DataSchema,
    DatasetKind,
    DataTypeString,
    SetDataSchema,
    SetInfo,
    SetPollingSource,
)
from odfbuild.odf.multihash import Multihash
from odfbuild.plan.changes.consent import Consent
from odfbuild.plan.changes.three_way import merge
from odfbuild.plan.document import plan_digest, plan_document
from odfbuild.plan.model import Action, DatasetPlan, Plan, ReasonCode
from odfbuild.plan.promotion import Branched, Read, plan_promotion
from odfbuild.plan.readers import consumers_of
from odfbuild.plan.saved import read_plan
from odfbuild.report.plan.json import plan_to_data, stamp
from tests.plan.worlds import Chain, did, polling, transform

ROOT, DERIVATIVE = DatasetKind.Root, DatasetKind.Derivative


def root(name: str, records: int = 5) -> Chain:
    return Chain(name, ROOT).append(polling()).add(records)


def leaf(name: str, *inputs: Chain, query: str | None = None) -> Chain:
    chain = Chain(name, DERIVATIVE)
    chain.append(transform(*(each.name for each in inputs), query=query))
    return chain.run(3, *inputs)


def fork(chain: Chain) -> Chain:
    """The same history, which goes on with blocks of its own."""
    made = copy(chain)
    made.salt, made.blocks = "branch", dict(chain.blocks)
    return made


def history(chain: Chain) -> list[Multihash]:
    return list(chain.blocks)


class Project:
    """Chains on the head and in a branch, by name."""

    def __init__(self, *main: Chain) -> None:
        self.main = {each.name: each for each in main}
        self.left = {each.name: each.now for each in main}
        self.branch: dict[str, Chain] = {}
        self.more: dict[str, dict[str, object]] = {}

    def begin(self, name: str) -> Chain:
        self.branch[name] = fork(self.main[name])
        return self.branch[name]

    def facts(self, name: str) -> Branched:
        ours, main = self.branch[name], self.main.get(name)
        left = self.left.get(name)
        there = history(main) if main else []
        reads = []
        for each in ours.now.consumed:
            known = {chain.now.dataset_id: n for n, chain in (self.main | self.branch).items()}
            input = known.get(each.dataset_id)
            in_branch, in_main = self.branch.get(input or ""), self.main.get(input or "")
            block = each.new_block_hash
            reads.append(
                Read(
                    id=each.dataset_id,
                    name=input,
                    in_branch=in_branch is not None and block in history(in_branch),
                    in_main=in_main is not None and block in history(in_main),
                    main_offset=in_main.now.last_offset if in_main else None,
                )
            )
        given = Branched(
            name=name,
            branch=ours.now,
            main=main.now if main else None,
            base=left.head if left else None,
            left=left,
            has_base=left is None or left.head in history(ours),
            main_has_base=left is None or left.head in there,
            has_main=main is None or main.now.head in history(ours),
            in_main=ours.now.head in there,
            blocks=len(set(history(ours)) - set(there)),
            records=ours.now.records - (left.records if left else 0),
            reads=tuple(reads),
        )
        return replace(given, **self.more.get(name, {}))  # type: ignore[arg-type]

    def plan(self, *consents: str) -> Plan:
        states = {name: chain.now for name, chain in self.main.items()}
        return plan_promotion(
            "pr-1",
            "p",
            None,
            [self.facts(name) for name in self.branch],
            consumers_of(states),
            [Consent.parse(each) for each in consents],
        )

    def planned(self, name: str, *consents: str) -> DatasetPlan:
        return next(each for each in self.plan(*consents).datasets if each.name == name)

    def refused(self, name: str, *consents: str) -> str:
        refusal = self.planned(name, *consents).refusal
        assert refusal is not None
        assert refusal.help
        return refusal.code


def a_project() -> tuple[Project, Chain, Chain]:
    """A root and a derivative of it."""
    r = root("r")
    d = leaf("d", r)
    return Project(r, d), r, d


def codes(planned: DatasetPlan) -> list[ReasonCode]:
    return [each.code for each in planned.reasons]


def test_a_head_that_did_not_move_is_set_to_the_block_of_the_branch():
    project, r, _ = a_project()
    project.begin("d").append(transform("r", query="SELECT id FROM r")).run(2, r)
    planned = project.planned("d")
    assert planned.actions == (Action.PROMOTE,)
    assert codes(planned) == [ReasonCode.HEAD_UNMOVED]
    assert planned.promoted is not None
    assert not planned.promoted.replays
    assert planned.expected_head == project.main["d"].now.head


def test_a_dataset_of_the_branch_only_gets_a_head():
    project, r, _ = a_project()
    project.branch["e"] = leaf("e", r)
    planned = project.planned("e")
    assert (planned.actions, codes(planned)) == ((Action.PROMOTE,), [ReasonCode.BRANCH_ONLY])
    assert planned.expected_head is None


def test_a_query_that_changed_in_the_branch_continues_from_a_head_that_moved():
    project, r, d = a_project()
    changed = transform("r", query="SELECT id FROM r")
    project.begin("d").append(changed).run(2, r)
    r.add(7)
    d.run(4, r)
    r.add(6)
    planned = project.planned("d")
    assert planned.actions == (Action.PROMOTE, Action.APPEND, Action.RUN)
    assert codes(planned) == [ReasonCode.HEAD_MOVED]
    assert [type(each.after).__name__ for each in planned.changes] == ["SetTransform"]
    assert planned.pending is not None
    assert planned.pending.records == 6
    assert planned.promoted is not None
    assert planned.promoted.onto == d.now.head


def test_a_head_that_moved_and_has_read_all_only_gets_the_query():
    project, r, d = a_project()
    project.begin("d").append(transform("r", query="SELECT id FROM r"))
    r.add(7)
    d.run(4, r)
    assert project.planned("d").actions == (Action.PROMOTE, Action.APPEND)


def test_data_that_the_head_has_got_too_is_not_promoted_a_second_time():
    project, r, d = a_project()
    project.begin("r").add(4)
    project.begin("d").run(2, project.branch["r"])
    r.add(4)
    d.run(2, r)
    source, derived = (project.planned(name) for name in "rd")
    assert source.actions == (Action.PROMOTE, Action.POLL)
    assert source.changes == derived.changes == ()
    assert ReasonCode.INPUT_REPLAYED in codes(derived)


def test_what_reads_a_replayed_input_is_replayed_too_although_its_head_did_not_move():
    project, r, d = a_project()
    e = leaf("e", d)
    project.main["e"], project.left["e"] = e, e.now
    project.begin("d").append(transform("r", query="SELECT id FROM r")).run(2, r)
    project.begin("e").run(1, project.branch["d"])
    project.branch["f"] = leaf("f", project.branch["d"])
    r.add(7)
    d.run(4, r)
    below, new = project.planned("e"), project.planned("f")
    assert below.promoted is not None
    assert below.promoted.onto == e.now.head
    assert below.actions == (Action.PROMOTE, Action.RUN)
    assert below.pending is not None
    assert below.pending.records is None
    assert new.promoted is not None
    assert new.promoted.replays
    assert new.promoted.onto is None
    assert [type(c.after).__name__ for c in new.changes] == ["SetTransform", "SetDataSchema"]


def test_what_reads_an_input_that_only_moves_to_the_head_moves_too():
    project, _r, _ = a_project()
    project.begin("r").add(4)
    project.begin("d").run(2, project.branch["r"])
    assert [each.actions for each in project.plan().datasets] == [(Action.PROMOTE,)] * 2


def test_a_branch_that_continues_the_moved_head_moves_it():
    project, r, d = a_project()
    d.run(1, r.add(3))
    project.begin("d").append(SetInfo(description="new"))
    planned = project.planned("d")
    assert Action.APPEND not in planned.actions
    assert planned.promoted is not None
    assert not planned.promoted.replays


def test_what_the_head_has_already_is_not_promoted_again():
    project, r, d = a_project()
    d.append(SetInfo(description="promoted"))
    project.begin("d")
    d.run(1, r.add(3))
    planned = project.planned("d")
    assert (planned.actions, codes(planned)) == ((), [ReasonCode.ALREADY_PROMOTED])
    assert not project.plan().has_changes


def rebuilt(project: Project, r: Chain) -> Chain:
    """`d` is computed again in the branch."""
    made = Chain("d", DERIVATIVE)
    made.salt = "branch"
    made.append(transform("r", query="SELECT id FROM r")).run(2, r)
    project.branch["d"] = made
    return made


def test_a_rebuilt_history_replaces_that_of_the_head_only_when_it_is_named():
    project, r, _ = a_project()
    rebuilt(project, r)
    assert project.refused("d") == "E1124"
    planned = project.planned("d", "d")
    assert (planned.actions, codes(planned)) == ((Action.PROMOTE,), [ReasonCode.REBUILT_IN_BRANCH])
    assert project.plan("d+").applyable


def test_new_data_of_the_head_is_computed_on_top_of_a_rebuilt_history():
    project, r, d = a_project()
    rebuilt(project, r)
    d.run(1, r.add(6))
    d.append(SetInfo(description="on the head"))
    planned = project.planned("d", "d")
    assert planned.actions == (Action.PROMOTE, Action.APPEND, Action.RUN)
    assert [type(each.after) for each in planned.changes] == [SetInfo]
    assert planned.pending is not None
    assert planned.pending.records == 6
    assert planned.promoted is not None
    assert not planned.promoted.replays


def test_a_reader_that_was_not_rebuilt_with_its_input_is_named():
    project, r, d = a_project()
    rebuilt(project, r)
    e = leaf("e", d)
    project.main["e"], project.left["e"] = e, e.now
    assert project.refused("d", "d") == "E1125"
    project.begin("e").append(SetInfo(description="x"))
    assert project.refused("d", "d") == "E1125"


def test_a_branch_over_part_of_the_inputs_is_refused():
    project, _, _ = a_project()
    project.begin("d").append(SetInfo(description="x"))
    project.more["d"] = {"limit": "--sample 10%"}
    assert project.refused("d") == "E1120"


def test_a_dataset_that_was_deleted_on_the_head_is_refused():
    project, _, _ = a_project()
    project.begin("d").append(SetInfo(description="x"))
    del project.main["d"]
    assert project.refused("d") == "E1121"


def test_a_dataset_that_was_made_on_both_sides_is_refused():
    project, r, _ = a_project()
    project.branch["e"] = leaf("e", r)
    project.main["e"] = leaf("e", r)
    other = replace(project.main["e"].now, dataset_id=did("another"))
    project.main["e"].state = other
    assert project.refused("e") == "E1122"


def test_a_head_that_was_reset_is_refused():
    project, _r, _ = a_project()
    project.begin("r").add(4)
    anew = Chain("r", ROOT)
    anew.salt = "reset"
    project.main["r"] = anew.append(polling())
    assert project.refused("r") == "E1123"


def test_an_input_that_was_deleted_is_refused():
    project, r, _ = a_project()
    project.begin("d").append(transform("r", query="SELECT id FROM r")).run(1, r.add(1))
    del project.main["r"]
    assert project.refused("d") == "E1128"


def test_an_input_that_was_reset_is_refused():
    project, r, _ = a_project()
    project.begin("d").append(transform("r", query="SELECT id FROM r")).run(1, r.add(1))
    anew = Chain("r", ROOT)
    anew.salt = "reset"
    project.main["r"] = anew.append(polling())
    assert project.refused("d") == "E1128"


def test_definitions_that_changed_in_different_ways_are_refused():
    project, _, d = a_project()
    project.begin("d").append(SetInfo(description="branch"))
    d.append(SetInfo(description="head"))
    assert project.refused("d") == "E1126"


def test_definitions_that_changed_in_the_same_way_are_no_conflict():
    project, _, d = a_project()
    project.begin("d").append(SetInfo(description="same"))
    d.append(SetInfo(description="same"))
    assert project.planned("d").changes == ()


def test_pushed_data_is_refused_when_the_head_moved():
    project, r, _ = a_project()
    project.begin("r").add(2)
    project.more["r"] = {"pushed": True}
    assert project.planned("r").refusal is None
    r.add(1)
    assert project.refused("r") == "E1127"


def test_all_that_is_wrong_is_told_at_once():
    project, _, d = a_project()
    project.begin("d").append(SetInfo(description="branch"))
    project.begin("r").add(2)
    d.append(SetInfo(description="head"))
    project.more = {"r": {"limit": "--since 2024"}, "d": {"limit": "--since 2024"}}
    refusals = [each.refusal for each in project.plan().datasets if each.refusal]
    assert [each.dataset for each in refusals] == ["d", "r"]
    assert any("E1126" in note for note in refusals[0].notes)


def test_a_saved_promotion_is_read_as_it_was_planned():
    project, r, d = a_project()
    project.begin("d").append(transform("r", query="SELECT id FROM r")).run(2, r)
    r.add(7)
    d.run(4, r)
    plan = project.plan()
    saved = read_plan(plan_to_data(stamp(plan)), "file")
    assert saved.plan.promotes == "pr-1"
    assert plan_document(saved.plan) == plan_document(plan)
    assert plan_digest(saved.plan) == saved.digest


def test_a_source_that_the_branch_removed_is_disabled_on_the_head():
    left = root("r").now
    ours = replace(left, polling_source=None)
    theirs = replace(left, info=SetInfo(description="head"))
    merged = merge(left, theirs, ours)
    assert [each.after.KIND for each in merged.on_theirs] == ["DisablePollingSource"]
    assert [each.after.KIND for each in merged.on_ours] == ["SetInfo"]
    assert not any(isinstance(each.after, SetPollingSource) for each in merged.definition)


def schema_of(column: str) -> SetDataSchema:
    return SetDataSchema(schema=DataSchema(fields=(DataField(name=column, type=DataTypeString()),)))


def test_schemas_that_differ_are_no_conflict_and_each_side_keeps_its_own():
    project, r, _ = a_project()
    ours = project.begin("r").append(schema_of("ours"))
    r.append(schema_of("theirs"))
    merged = merge(project.left["r"], r.now, ours.now)
    assert merged.conflicts == ()
    assert (merged.on_theirs, merged.on_ours) == ((), ())
    kept = [each.after for each in merged.definition if isinstance(each.after, SetDataSchema)]
    assert kept == [r.now.schema]
