"""The project of `tiny` whose derivative is computed by an engine that is a program."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from odfbuild.odf.model import ExecuteTransform, SetTransform
from tests.apply.in_process import Program, share
from tests.apply.plain_engine import PlainEngine
from tests.apply.tiny import QUERY, Tiny


class OnlySpark(PlainEngine):
    """The built-in engine, which must not be asked for what belongs to others."""

    def transform(self, task: Any) -> Any:
        raise AssertionError(f"Spark was asked to compute {task.dataset}")


@dataclass
class Remote:
    """The project and the program in this process."""

    tiny: Tiny
    program: Program
    machine: Path

    def engines(self, machine: bool = False, **engines: Any) -> None:
        """Write `engines`, into odfbuild.yaml or the file of the machine."""
        if machine:
            content = {"kind": "Machine", "version": 1, "content": {"engines": engines}}
            self.machine.write_text(json.dumps(content))
            return
        file = self.tiny.root / "odfbuild.yaml"
        text = file.read_text().partition("  engines:")[0]
        file.write_text(f"{text}  engines: {json.dumps(engines)}\n")

    def define(self, engine: str = "mine", query: str = QUERY, more: str = "") -> None:
        """Let `engine` compute the derivative."""
        self.tiny.derive("derived", query)
        file = self.tiny.root / "datasets" / "derived.yaml"
        file.write_text(file.read_text().replace("engine: spark", f"engine: {engine}") + more)

    def steps(self) -> list[ExecuteTransform]:
        return [e for e in self.tiny.events("derived") if isinstance(e, ExecuteTransform)]

    def versions(self) -> list[str | None]:
        events = self.tiny.events("derived")
        return [each.transform.version for each in events if isinstance(each, SetTransform)]

    def values(self) -> list[int]:
        return [each["value"] for each in self.tiny.records("derived")]

    def was_not_touched(self) -> bool:
        """Whether nothing of the derivative was committed, and nothing is left over."""
        state = self.tiny.workspace().projection("derived")
        scratch = self.tiny.root / ".odfbuild" / "scratch"
        return (state is None or state.records == 0) and not any(scratch.iterdir())


@pytest.fixture
def remote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Remote:
    tiny = Tiny.fresh(tmp_path / "project")
    machine = tmp_path / "machine.yaml"
    monkeypatch.setenv("ODFBUILD_CONFIG", str(machine))
    machine.write_text("kind: Machine\nversion: 1\ncontent: {}\n")
    share(OnlySpark(), monkeypatch)
    found = Remote(tiny, Program(tiny.root, monkeypatch, capsys), machine)
    found.define()
    return found
