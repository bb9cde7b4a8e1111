"""Decisions that are remembered are the ones that would be made."""

from __future__ import annotations

import hashlib
import random
from dataclasses import fields, replace

import pytest

from odfbuild.ingest.watch import Watch
from odfbuild.odf.model import DatasetSnapshot, MergeStrategy, MergeStrategySnapshot, SetInfo
from odfbuild.plan.build import build_plan
from odfbuild.plan.memory import Entry, Memory
from odfbuild.plan.model import Plan
from odfbuild.project.model import Definition
from odfbuild.store.disposable import packed, unpacked
from tests.plan.worlds import UNCHANGED, World, ledger, news, pipeline, polling, transform

SNAPSHOT = MergeStrategySnapshot(primary_key=("id",))


def keyed(definition: Definition) -> Definition:
    """As it comes out of the cache: with a key."""
    key = hashlib.sha256(repr((definition.snapshot, definition.file)).encode()).digest()
    return replace(definition, key=key)


def told(world: World, name: str, snapshot: DatasetSnapshot) -> None:
    """Another content of a definition."""
    changed = replace(world.definitions[name], content=snapshot, key=None)
    world.definitions[name] = keyed(changed)


def plan(world: World, entries: dict[str, Entry]) -> tuple[Plan, Memory]:
    """The plan of a world by someone who remembers `entries`."""
    projections = {name: chain.now for name, chain in world.chains.items()}
    heads = {name: str(state.head).encode() for name, state in projections.items()}
    memory = Memory(entries, heads)
    for name, definition in world.definitions.items():
        facts = world.facts.get(name)
        memory.watch(definition)
        memory.watched(definition, Watch(names=repr(facts).encode()))
    return build_plan(world.plan_facts(memory=memory)), memory


def family(layers: int = 4, width: int = 3) -> World:
    """Roots, and layers of derivatives of one or two of the layer before."""
    world = World()
    for number in range(width):
        world.root(f"d0-{number}")
        world.has(f"d0-{number}", news())
    for layer in range(1, layers):
        for number in range(width):
            inputs = [f"d{layer - 1}-{number}", f"d{layer - 1}-{(number + 1) % width}"]
            world.derivative(f"d{layer}-{number}", *inputs[: 1 + number % 2])
    world.definitions = {name: keyed(each) for name, each in world.definitions.items()}
    return world


def edit(world: World, chance: random.Random) -> None:
    """One of the things that happen to a project between two plans."""
    name = chance.choice(list(world.definitions))
    definition = world.definitions[name]
    is_root = name.startswith("d0-")
    match chance.choice(["describe", "query", "source", "commit", "run", "merge", "forget"]):
        case "describe":
            note = SetInfo(description=str(chance.random()))
            kept = [e for e in definition.snapshot.metadata if not isinstance(e, SetInfo)]
            snapshot = replace(definition.snapshot, metadata=(*kept, note))
            told(world, name, snapshot)
        case "query" if not is_root:
            event = transform(*definition.inputs, query=f"SELECT {chance.random()}\n")
            snapshot = replace(definition.snapshot, metadata=(event,))
            told(world, name, snapshot)
        case "merge" if is_root:
            merges: list[MergeStrategy] = [ledger(), SNAPSHOT]
            source = polling(f"other/{chance.randrange(3)}/*.csv", merge=chance.choice(merges))
            snapshot = replace(definition.snapshot, metadata=(source,))
            told(world, name, snapshot)
        case "source" if is_root:
            world.has(name, chance.choice([UNCHANGED, news(chance.randrange(9)), news(None)]))
        case "commit" if name not in world.chains:
            if all(each in world.chains for each in definition.inputs):
                world.commit(name)
        case "run" if name in world.chains:
            if is_root:
                world.chains[name].add(chance.randrange(1, 9), watermark=len(world.chains))
            elif all(world.chains[i].now.schema for i in definition.inputs):
                chains = [world.chains[each] for each in definition.inputs]
                world.chains[name].run(chance.randrange(5), *chains)
        case "forget" if name.startswith("d3-"):
            del world.definitions[name]


@pytest.mark.parametrize("seed", range(25))
def test_a_plan_made_with_memory_equals_the_one_made_without(seed: int) -> None:
    chance = random.Random(seed)
    world = family()
    entries: dict[str, Entry] = {}
    recalled = 0
    for _ in range(40):
        expected = world.plan()
        made, memory = plan(world, entries)
        assert list(map(plain, made.datasets)) == list(map(plain, expected.datasets))
        recalled += len(memory.recalled)
        entries = unpacked(dict[str, Entry], packed(memory.kept))
        for _ in range(chance.randrange(3)):
            edit(world, chance)
    assert recalled > 100


def plain(each):
    """A refusal is an exception, which equals only itself."""
    values = {field.name: getattr(each, field.name) for field in fields(each)}
    return values | {"mode": each.mode, "refusal": each.refusal and each.refusal.message}


def test_nothing_is_decided_again_while_nothing_changed() -> None:
    world = family()
    _, memory = plan(world, {})
    made, again = plan(world, memory.kept)
    assert again.recalled == {each.name for each in made.datasets}
    assert not again.is_changed


def test_a_changed_definition_is_decided_again_with_all_that_is_downstream() -> None:
    world = family(layers=3, width=3)
    _, memory = plan(world, {})
    snapshot = world.definitions["d1-0"].snapshot
    note = SetInfo(description="new")
    changed = replace(snapshot, metadata=(*snapshot.metadata, note))
    told(world, "d1-0", changed)
    made, again = plan(world, memory.kept)
    fresh = {each.name for each in made.datasets} - again.recalled
    assert fresh == {"d1-0", "d2-0"}
    assert again.is_changed


def test_a_decision_about_columns_is_made_anew_each_time():
    world = pipeline()
    world.derivative("late", "flights", query="SELECT event_time, id, name, 1 AS one FROM flights")
    world.definitions = {name: keyed(each) for name, each in world.definitions.items()}
    made, memory = plan(world, {})
    (late,) = [each for each in made.datasets if each.name == "late"]
    assert late.columns is not None
    assert "late" not in memory.kept
