"""Kinds of change, and what the policies of a project make of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from odfbuild.declared_settings import read
from odfbuild.odf.model import AddPushSource, ReadStepNdJson, SetInfo, SetVocab
from odfbuild.plan.build import build_plan
from odfbuild.plan.changes.classify import Category, category
from odfbuild.plan.model import Action, DatasetPlan
from odfbuild.project.settings.policy import Policy, on_query_change, refusing
from tests.plan.worlds import World, ledger, polling

LATE = "SELECT event_time, id, name FROM flights WHERE id > 0"


def world() -> World:
    """The pipeline, with a query whose columns can be told from its text."""
    made = World().root("flights", polling(), SetInfo(description="All flights"))
    made.derivative("late", "flights", query=LATE).derivative("worst", "late", query=LATE)
    flights = made.commit("flights").add(50)
    made.commit("late").run(20, flights)
    return made


def changed(query: str) -> World:
    return world().derivative("late", "flights", query=query)


def planned(made: World, *policies: Policy) -> dict[str, DatasetPlan]:
    project = replace(made.project, config=replace(made.project.config, policies=policies))
    plan = build_plan(made.plan_facts(project=project))
    return {dataset.name: dataset for dataset in plan.datasets}


def kind(made: World, name: str = "late") -> Category | None:
    return category(planned(made)[name])


REFUSE = read(tuple[Policy, ...], [{"match": ["l*"], "forward-only": "refuse"}])


def test_each_kind_of_change_is_told_from_the_others() -> None:
    assert kind(world()) is None
    assert kind(changed(LATE.replace(" ", "\n"))) is Category.COSMETIC
    assert kind(changed(LATE.replace(", name", ", name, id + 1 AS next"))) is Category.ADDITIVE
    assert kind(changed(LATE.replace("> 0", "> 1"))) is Category.FORWARD_ONLY
    wider = LATE.replace("name FROM", "upper(name) AS name, id + 1 AS next FROM")
    assert kind(changed(wider)) is Category.FORWARD_ONLY
    assert kind(changed(LATE.replace(", name", ", name, id + 1"))) is Category.FORWARD_ONLY
    assert kind(changed(LATE.replace(", name", ""))) is Category.BREAKING
    made = world().root("flights", polling(), SetInfo(description="New words"))
    assert kind(made, "flights") is Category.METADATA
    assert kind(world().root("new"), "new") is Category.NEW
    assert kind(world().root("flights", polling("other/*.csv")), "flights") is Category.FORWARD_ONLY
    assert kind(world().root("flights", polling(), SetVocab(offset_column="o")), "flights") is (
        Category.BREAKING
    )


def test_a_further_push_source_changes_no_records() -> None:
    def source(name: str, column: str = "id BIGINT") -> AddPushSource:
        read = ReadStepNdJson(ddl_schema=(column, "name STRING"))
        return AddPushSource(source_name=name, read=read, merge=ledger())

    made = World().root("pushed", source("one"))
    made.commit("pushed").add(3)
    assert kind(made.root("pushed", source("one"), source("two")), "pushed") is Category.METADATA
    other = replace(source("one"), merge=ledger(), preprocess=None, read=ReadStepNdJson())
    assert kind(made.root("pushed", other), "pushed") is Category.FORWARD_ONLY


def test_another_refusal_is_no_kind_of_change() -> None:
    made = world()
    made.root(
        "bad", polling(), AddPushSource(source_name="x", read=ReadStepNdJson(), merge=ledger())
    )
    made.derivative("reader", "bad")
    assert category(planned(made)["reader"]) is None


def test_a_policy_refuses_a_kind_of_change_by_name() -> None:
    made = planned(changed(LATE.replace("> 0", "> 1")), *REFUSE)["late"]
    assert made.actions == (Action.REFUSE,)
    assert made.changes == ()
    assert made.refusal is not None
    assert made.refusal.code == "E0316"
    assert made.refusal.notes == ("`forward-only: refuse` holds for `l*` in odfbuild.yaml",)
    assert category(made) is Category.FORWARD_ONLY
    wider = changed(LATE.replace(", name", ", name, id + 1 AS next"))
    assert planned(wider, *REFUSE)["late"].refusal is None


def test_readers_of_what_a_policy_refuses_are_not_affected() -> None:
    query = LATE.replace("name FROM", "upper(name) AS name FROM")
    made = changed(query)
    made.commit("worst").run(5, made.chains["late"])
    made = made.derivative("late", "flights", query=query)
    assert planned(made)["worst"].columns is not None
    assert planned(made, *REFUSE)["worst"].columns is None


@pytest.mark.parametrize(
    ("name", "rebuild", "pattern"),
    [
        ("prod.rates", "rebuild", "prod.*"),
        ("PROD.rates", "rebuild", "prod.*"),
        ("prod.scratch.x", "rebuild", None),
        ("dev.rates", "rebuild", None),
        ("prod.rates", "additive", None),
        ("exact", "additive", "exact"),
    ],
)
def test_the_last_policy_that_matches_says(name: str, rebuild: str, pattern: str | None) -> None:
    policies = read(
        tuple[Policy, ...],
        [
            {"match": ["prod.*", "staging.*"], "rebuild": "refuse", "forward-only": "refuse"},
            {"match": ["prod.scratch.*"], "rebuild": "allow"},
            {"match": ["exact"], "additive": "refuse"},
        ],
    )
    assert refusing(policies, name, rebuild) == pattern


def test_the_last_policy_that_says_something_decides_what_a_changed_query_does() -> None:
    policies = read(
        tuple[Policy, ...],
        [
            {"match": ["prod.*"], "onQueryChange": "rebuild"},
            {"match": ["prod.sums", "x"], "onQueryChange": "correct"},
            {"match": ["prod.raw.*"], "onQueryChange": "forward"},
            {"match": ["*"], "additive": "refuse"},
        ],
    )
    assert on_query_change(policies, "PROD.daily") == ("rebuild", 0)
    assert on_query_change(policies, "prod.sums") == ("correct", 1)
    assert on_query_change(policies, "prod.raw.a") == ("forward", 2)
    assert on_query_change(policies, "dev.daily") is None
