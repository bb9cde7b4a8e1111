"""The engine is started for the amount of input that the plan knows of."""

from __future__ import annotations

from pathlib import Path

import pytest

from odfbuild.api import Project
from odfbuild.engine.settings import EngineSettings
from odfbuild.engine.spark import start as module
from tests.apply.in_process import Program, Shared
from tests.apply.plain_engine import PlainEngine
from tests.apply.tiny import Tiny


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[EngineSettings]:
    """With which settings an engine was started."""
    found: list[EngineSettings] = []

    def start(settings: EngineSettings, *_: object) -> Shared:
        found.append(settings)
        return Shared(PlainEngine())

    monkeypatch.setattr(module, "start_engine", start)
    return found


def test_apply_says_how_many_bytes_wait(
    tmp_path: Path,
    started: list[EngineSettings],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    tiny = Tiny.fresh(tmp_path / "tiny")
    waiting = sum(file.stat().st_size for file in (tiny.root / "data").iterdir())
    Program(tiny.root, monkeypatch, capsys).apply()
    assert [each.expected_bytes for each in started] == [waiting]
    known = {file.name for file in (tiny.root / "data").iterdir()}
    tiny.arrive(2)
    new = [file for file in (tiny.root / "data").iterdir() if file.name not in known]
    Project(tiny.root).apply()
    assert started[-1].expected_bytes == sum(file.stat().st_size for file in new) > 0
