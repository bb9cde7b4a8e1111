"""Whatever a team does to a project: one apply, and all is as defined, whole and reproducible.

Each step changes definitions and sources at random, or takes datasets back, rebuilds, collects,
deletes the cache, promotes a change from a branch. After each the plan is empty; every few steps
`verify` does all of history again, and derivatives that were never changed hold what ones hold that
begin now.
"""

from __future__ import annotations

import json
import random
import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from odfbuild.engine.contract import Engine
from tests.apply.in_process import Program, Said, share
from tests.apply.tiny import Tiny
from tests.apply.walk import Walk

pytestmark = [pytest.mark.spark]

RETRACTS = (1, 2)


@pytest.fixture
def program(
    tmp_path: Path,
    spark_engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Program:
    share(spark_engine, monkeypatch)
    return Program(tmp_path / "walk", monkeypatch, capsys)


@pytest.mark.parametrize(
    ("seed", "steps"),
    [(1, 4), *[pytest.param(n, 15, marks=pytest.mark.slow) for n in range(2, 8)]],
)
def test_an_apply_ends_in_an_empty_plan_and_a_history_that_verifies(
    program: Program, seed: int, steps: int
) -> None:
    chance = random.Random(seed)
    walk = Walk(program.root, chance)
    settle(program, walk)
    for step in range(steps):
        for _ in range(chance.choice([1, 1, 2, 3])):
            change = chance.choice([*walk.changes(), *interventions(program, walk)])
            change()
        settle(program, walk)
        if step % 4 == 3:
            program.ok("verify")
            begin_anew_beside(program, walk)
    program.ok("verify")


def settle(program: Program, walk: Walk) -> None:
    """Apply, with the consents that the program itself names, until nothing is left to do."""
    said, _ = with_consents(program, walk, "apply", "-y")
    assert said.code == 0, said.out + said.err
    check_estimates(program, walk)
    walk.waiting.clear()
    rest = program("plan", "--detailed-exitcode")
    assert rest.code == 0, rest.out


def with_consents(program: Program, walk: Walk, *command: str) -> tuple[Said, list[str]]:
    """Run a command with the consents that the program asks for, which are returned too."""
    said = program(*command)
    allowed: list[str] = []
    for _ in range(5):
        if said.code == 0:
            break
        allowed += consents(said, walk)
        said = program(*command, *allowed)
    return said, allowed


def check_estimates(program: Program, walk: Walk) -> None:
    """What plans said of the runs since the last check holds: exact numbers, and bounds."""
    files = set(program.root.glob(".odfbuild/runs/*/run_results.json")) - walk.checked
    walk.checked |= files
    for file in sorted(files):
        datasets = json.loads(file.read_text())["datasets"]
        ran = {each["name"] for each in datasets}
        for each in datasets:
            planned = each["planned"]
            if planned is None or each["status"] not in ("committed", "noop"):
                continue
            reads, read = planned["reads"], each["records_read"]
            about = f"{each['name']} in {file}: {planned}, {each}"
            if each["name"].startswith("r"):
                assert not planned["exact"] or each["records"] == planned["records"], about
                continue
            assert reads["least"] <= read, about
            assert reads["most"] is None or read <= reads["most"], about
            assert not planned["exact"] or planned["records"] <= reads["most"], about
            upstream = walk.datasets[each["name"]].inputs if each["name"] in walk.datasets else []
            if upstream and not ran & set(upstream):
                assert reads["most"] is not None, about
                assert reads["most"] <= sum(map(records_in(program), upstream)), about


def records_in(program: Program) -> Callable[[str], int]:
    """How many records a dataset has."""
    chains = Tiny(program.root).workspace().projections()
    return lambda name: chains[name].records if name in chains else 0


def consents(said: Said, walk: Walk) -> list[str]:
    asked = sorted(set(re.findall(r"(?:rebuild|delete):[\w.-]+\+?", said.out + said.err)))
    assert asked, said.out + said.err
    for name in (each.partition(":")[2].removesuffix("+") for each in asked):
        if name in walk.datasets:
            walk.unsettle(name)
    return [part for each in asked for part in ("--allow", each)]


def interventions(program: Program, walk: Walk) -> list[Any]:
    """What people do by hand, besides changing files."""

    def some() -> str | None:
        known = [n for n in walk.derivatives() if (program.root / "chains" / n).exists()]
        return walk.chance.choice(known) if known else None

    def lose_the_cache() -> None:
        before = program.ok("plan").out
        shutil.rmtree(program.root / ".odfbuild", ignore_errors=True)
        assert program.ok("plan").out == before

    def reset() -> None:
        if (name := some()) is not None and not orphaned_readers(program):
            walk.unsettle(name)
            program.ok("reset", name, "-r", "-y")

    def rebuild() -> None:
        if (name := some()) is not None:
            walk.unsettle(name)
            program("apply", "-y", "--allow", f"rebuild:{name}+")

    def delete_what_nothing_defines() -> None:
        for name in orphaned_readers(program):
            if (program.root / "chains" / name).exists():
                program("apply", "-y", "--allow", f"delete:{name}+")

    def save_and_apply() -> None:
        program("plan", "-o", "saved")
        program("apply", "-y", "saved")

    def apply_a_part() -> None:
        name = walk.chance.choice(list(walk.datasets))
        program("apply", "-y", "-s", walk.chance.choice([name, f"+{name}", f"{name}+"]))

    def change_in_a_branch() -> None:
        settle(program, walk)  # so that the branch has its own change only
        heads = Tiny(program.root).workspace().heads()
        here, there = program.root / "datasets", program.root / "reviewed"
        before = shutil.copytree(here, program.root / "before")
        for _ in range(walk.chance.choice([1, 2])):
            walk.chance.choice([walk.change_query, walk.describe, walk.add_derivative])()
        said, allowed = with_consents(program, walk, "apply", "-y", "-b", "pr")
        assert said.code == 0, said.out + said.err
        assert Tiny(program.root).workspace().heads() == heads
        if walk.chance.random() < 0.5:
            here.rename(there)
            before.rename(here)
            walk.arrive()
            program.ok("apply", "-y")  # the head goes on with the old definitions
            walk.waiting.clear()
            here.rename(before)
            there.rename(here)
        shutil.rmtree(before)
        if "pr" in Tiny(program.root).workspace().branch_names():  # else all was drawn as it was
            said, _ = with_consents(program, walk, "promote", "pr", "-y", *allowed)
            assert said.code == 0, said.out + said.err
        assert Tiny(program.root).workspace().branch_names() == set()
        changes = program.ok("plan", "--json").data["summary"]
        assert (changes["create"], changes["change"], changes["refuse"]) == (0, 0, 0), changes

    def collect() -> None:
        program.ok("gc", "-y", "--grace", "0")

    return [
        lose_the_cache,
        reset,
        rebuild,
        delete_what_nothing_defines,
        save_and_apply,
        apply_a_part,
        change_in_a_branch,
        collect,
    ]


def orphaned_readers(program: Program) -> list[str]:
    """Chains without a definition; they cannot be taken along when what they read goes back."""
    return [each["name"] for each in program.ok("plan", "--json").data["forgotten"]]


def begin_anew_beside(program: Program, walk: Walk) -> None:
    """Derivatives that never changed hold the same as twins of theirs that have just begun."""
    steady = [n for n in walk.derivatives() if walk.datasets[n].steady][:3]
    pairs = [(name, walk.add_twin(name)) for name in steady]
    settle(program, walk)
    for name, twin in pairs:
        assert state_of(program, name) == state_of(program, twin), walk.datasets[name].query
        walk.remove(twin)
        program.ok("apply", "-y", "--allow", f"delete:{twin}")


def state_of(program: Program, name: str) -> Counter[str]:
    """What a dataset holds after all its corrections and retractions."""
    state: Counter[str] = Counter()
    for record in Tiny(program.root).records(name):
        sign = -1 if record.pop("op") in RETRACTS else 1
        record.pop("offset")
        state[repr(sorted(record.items()))] += sign
    assert min(state.values(), default=0) >= 0, "more is retracted than there was"
    return +state
