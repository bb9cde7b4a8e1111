"""Two projects that go the same random steps: one on this machine, one by executors or a server.

What those refuse is done here. After each step all heads are the same.
"""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path

import pytest

from odfbuild.engine.contract import Engine
from tests.apply.in_process import share
from tests.apply.served import Served, leave_nothing_to_chance
from tests.apply.test_random_walks import interventions, settle
from tests.apply.tiny import Tiny
from tests.apply.varied_walk import VariedWalk
from tests.servers.objects import BUCKET, Objects


class SideBySide:
    """The projects in the folders of `roots`, which have equal names.

    `objects` are their endpoints, `computing` is what computes for each: an engine here, and a
    process that has the second project on `serving`. That project has a storage.
    """

    def __init__(
        self,
        roots: tuple[Path, Path],
        objects: tuple[Objects, Objects],
        seed: int,
        computing: tuple[Engine, subprocess.Popen[str]],
        patch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        engine, process = computing
        leave_nothing_to_chance(patch)
        share(engine, patch)
        self.chance = random.Random(seed)
        self.steps: list[str] = []
        self.said: list[str] = []
        storages = (None, f"s3://{BUCKET}/{roots[1].name}")
        walks = [
            VariedWalk(root, random.Random(seed), at, storage)
            for root, at, storage in zip(roots, objects, storages, strict=True)
        ]
        self.sides = [
            (Served(each.root, patch, capsys, at, each.variables, self.said), each)
            for each, at in zip(walks, (None, process), strict=True)
        ]

    def go(self, steps: int) -> None:
        """Change both in the same way, and apply; each time the heads are the same."""
        self._settle()
        for _ in range(steps):
            for _ in range(self.chance.choice([1, 1, 2, 3])):
                number = self.chance.random()
                for program, walk in self.sides:
                    changes = [*walk.changes(), *interventions(program, walk)]
                    change = changes[int(number * len(changes))]
                    said = change()
                self.steps.append(f"{change.__name__}: {said}")
            self._settle()

    def _settle(self) -> None:
        try:
            for program, walk in self.sides:
                settle(program, walk)
            self.steps.append("apply")
            here, there = (Tiny(walk.root).workspace().heads() for _, walk in self.sides)
            other = [name for name in {*here, *there} if here.get(name) != there.get(name)]
            assert not other, "\n".join(self._told(name) for name in sorted(other))
        except AssertionError as error:
            raise AssertionError("\n".join([*self.steps, "", str(error)])) from None

    def _told(self, name: str) -> str:
        """What both say of a dataset whose heads differ."""
        definition = self.sides[0][1].datasets.get(name)
        found = [f"{name}: {json.dumps(definition and definition.content)}"]
        for _, walk in self.sides:
            if name in Tiny(walk.root).workspace().heads():
                found += [repr(event)[:1500] for event in Tiny(walk.root).events(name)][-3:]
            found.append("")
        return "\n".join(found)
