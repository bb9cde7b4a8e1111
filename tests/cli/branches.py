"""A project of root, derived, made (of root) and leaf (of derived), applied, and its branches."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from odfbuild.records.records import newest_records
from odfbuild.store.workspace import Workspace
from tests.apply.in_process import Program, share
from tests.apply.plain_engine import PlainEngine
from tests.apply.tiny import QUERY, Tiny

BY_100 = QUERY.replace("10", "100")


class Bench(Tiny):
    """The project; commands run in this process, on an engine without a JVM."""

    program: Program

    def __call__(self, *arguments: str, code: int = 0) -> str:
        said = self.program(*arguments)
        assert said.code == code, said.out + said.err
        return said.out + said.err

    def heads(self, branch: str | None = None) -> dict[str, bytes]:
        return self.space(branch).heads()

    def space(self, branch: str | None = None) -> Workspace:
        return Workspace(
            self.root / "chains",
            self.root / ".odfbuild-keys",
            self.root / ".odfbuild",
            branch=branch,
        )

    def values(self, name: str, branch: str | None = None) -> list[int]:
        space = self.space(branch)
        found = newest_records(space, name, space.projection(name), None)
        return [] if found is None else found["value"].to_pylist()


@pytest.fixture(scope="module")
def applied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A project that was applied once."""
    tiny = Tiny.fresh(tmp_path_factory.mktemp("branches") / "tiny")
    tiny.derive("made", QUERY)
    tiny.derive("leaf", QUERY, "derived")
    with pytest.MonkeyPatch.context() as patch:
        share(PlainEngine(), patch)
        from odfbuild.cli.main import run

        patch.chdir(tiny.root)
        assert run(["apply", "-y", "-q"]) == 0
    yield tiny.root


@pytest.fixture
def bench(
    applied: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Bench:
    root = tmp_path / "tiny"
    shutil.copytree(applied, root, symlinks=True)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "160")
    share(PlainEngine(), monkeypatch)
    made = Bench(root)
    object.__setattr__(made, "program", Program(root, monkeypatch, capsys))
    return made


def plan_of(bench: Bench, *arguments: str, code: int = 0) -> Any:
    return json.loads(bench("plan", "--format", "json", *arguments, code=code))
