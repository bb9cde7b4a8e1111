"""The tiny project with branches, on an engine without a JVM that counts what it computes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from odfbuild.engine.contract import IngestTask, TransformTask
from odfbuild.inspect.verify.integrity import verify_integrity
from odfbuild.store.moving_heads import read_manifest
from odfbuild.store.workspace import Workspace
from tests.apply.in_process import Program, Said, share
from tests.apply.plain_engine import PlainEngine
from tests.apply.tiny import QUERY, Tiny

BRANCH = "pr-1"


class CountingEngine(PlainEngine):
    """Counts the steps that it computes, by dataset, and how often it was started."""

    def __init__(self) -> None:
        self.steps: Counter[str] = Counter()
        self.records: Counter[str] = Counter()

    def transform(self, task: TransformTask) -> Any:
        self.steps[task.dataset] += 1
        self.records[task.dataset] += sum(
            each.last - each.first + 1
            for each in task.inputs
            if each.first is not None and each.last is not None
        )
        return super().transform(task)

    def ingest(self, task: IngestTask) -> Any:
        self.steps["root"] += 1
        return super().ingest(task)


class Branching:
    """The tiny project with a derivative of the derivative, and its program."""

    def __init__(self, tiny: Tiny, program: Program, engine: CountingEngine) -> None:
        self.tiny, self.program, self.engine = tiny, program, engine
        self.root = tiny.root
        tiny.derive("below", "SELECT event_time, id, value * 2 AS value FROM source", "derived")

    def apply(self, *arguments: str) -> Said:
        return self.program.ok("apply", "-y", *arguments)

    def change(self, factor: int = 100) -> None:
        self.tiny.derive("derived", QUERY.replace("10", str(factor)))

    def undescribe(self) -> None:
        file = self.root / "datasets" / "root.yaml"
        file.write_text(file.read_text().partition("    - kind: SetInfo")[0])

    def promote(self, *arguments: str) -> Said:
        return self.program.ok("promote", BRANCH, "-y", *arguments)

    def heads(self) -> dict[str, str]:
        return {name: head.decode() for name, head in self.tiny.workspace().heads().items()}

    def in_branch(self) -> dict[str, str]:
        space = Workspace(
            self.root / "chains",
            self.root / ".odfbuild-keys",
            self.root / ".odfbuild",
            branch=BRANCH,
        )
        return {name: head.decode() for name, head in space.heads().items()}

    def branch_files(self) -> list[str]:
        chains = self.root / "chains"
        found = [*chains.rglob(f"refs/{BRANCH}"), *chains.rglob(f"info/branches/{BRANCH}")]
        return sorted(str(each.relative_to(chains)) for each in found)

    def values(self, name: str) -> list[tuple[int, int]]:
        return [(each["id"], each["value"]) for each in self.tiny.records(name)]

    def is_settled(self) -> None:
        """Nothing is left to do, all of history verifies, and the branch is gone."""
        rest = self.program("plan", "--detailed-exitcode")
        assert rest.code == 0, rest.out
        assert verify_integrity(self.tiny.workspace()) == ()
        assert self.branch_files() == []
        assert read_manifest(self.root / "chains") is None

    @classmethod
    def fresh(
        cls,
        root: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> Branching:
        """The project after its first apply."""
        engine = CountingEngine()
        share(engine, monkeypatch)
        tiny = Tiny.fresh(root)
        made = cls(tiny, Program(tiny.root, monkeypatch, capsys), engine)
        made.apply()
        return made


def changed(project: Branching, *, arrives: bool = True) -> None:
    """A branch with a changed query, a new dataset, and a new file."""
    project.change()
    project.tiny.derive("extra", "SELECT event_time, id, value + 0 AS value FROM source", "derived")
    if arrives:
        project.tiny.describe("root", "Changed too")
        project.tiny.arrive(2)
    project.apply("-b", BRANCH)
    project.engine.steps.clear()
