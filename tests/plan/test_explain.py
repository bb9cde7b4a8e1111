"""Why datasets are stale or not, down to the root causes."""

from __future__ import annotations

import json

import pytest

from odfbuild.plan.explain import DatasetStatus, explain
from odfbuild.report.explanation import explanation_to_data, render_explanation
from tests.plan.worlds import UNCHANGED, World, news, pipeline
from tests.report.golden import assert_golden


def explained(world: World, name: str) -> str:
    """The explanation as text."""
    projections = {each: chain.now for each, chain in world.chains.items()}
    return render_explanation(explain(world.plan(), name, projections))


def changed() -> World:
    """News at the source, records that `late` has not read, and a new query of `worst`."""
    world = pipeline().has("flights", news(28_330))
    world.chains["flights"].add(8, watermark=3)
    return world.derivative("worst", "late", query="SELECT *\nFROM late\nWHERE id > 9\n")


def diamond() -> World:
    """`best` reads `late` and `tidy`, which both read `flights`."""
    world = pipeline().derivative("tidy", "flights")
    world.commit("tidy").run(1, world.chains["flights"])
    world.derivative("best", "late", "tidy")
    world.commit("best").run(1, world.chains["late"], world.chains["tidy"])
    return world.has("flights", news(5))


SCREENS = {
    "changed": (changed, "worst"),
    "diamond": (diamond, "best"),
    "up-to-date": (lambda: diamond().has("flights", UNCHANGED), "best"),
    "source": (lambda: pipeline().has("flights", UNCHANGED), "flights"),
}


@pytest.mark.parametrize("name", SCREENS)
def test_an_explanation_reads_like_this(name: str) -> None:
    make, dataset = SCREENS[name]
    assert_golden(f"explain-{name}.txt", explained(make(), dataset))


def test_every_leaf_of_the_tree_is_a_root_cause() -> None:
    world = changed()
    projections = {each: chain.now for each, chain in world.chains.items()}
    data = explanation_to_data(explain(world.plan(), "worst", projections))
    leaves = []

    def walk(causes: list[dict]) -> None:
        for cause in causes:
            walk(cause["children"])
            if not cause["children"]:
                leaves.append(cause["code"])

    walk(data["causes"])
    assert set(leaves) == {"definition_changed.transform", "input_advanced", "source_has_news"}
    assert json.loads(json.dumps(data)) == data


def test_every_status_follows_from_the_plan() -> None:
    world = changed()
    world.root("push.only")
    world.root("gone")
    world.commit("gone")
    del world.definitions["gone"]
    projections = {each: chain.now for each, chain in world.chains.items()}
    plan = world.plan()
    statuses = {d.name: explain(plan, d.name, projections).status for d in plan.datasets}
    assert statuses == {
        "flights": DatasetStatus.STALE,
        "late": DatasetStatus.STALE,
        "worst": DatasetStatus.STALE,
        "push.only": DatasetStatus.NEW,
        "gone": DatasetStatus.ORPHANED,
    }


def test_a_graph_with_many_paths_is_told_in_one_pass() -> None:
    world = World().root("d0-0").root("d0-1").has("d0-0", news(1))
    for layer in range(1, 30):
        for number in range(2):
            world.derivative(f"d{layer}-{number}", f"d{layer - 1}-0", f"d{layer - 1}-1")
    text = explained(world, "d29-0")
    assert len(text.splitlines()) < 400
    assert "(see above)" in text
