"""One project with many sources, applied as a whole on the engine that all tests share."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import yaml

from odfbuild.apply.options import ApplyOptions
from odfbuild.apply.run import apply_plan
from odfbuild.engine.contract import Engine, StepProgress
from odfbuild.survey.outcome import ApplyOutcome, DatasetOutcome
from odfbuild.survey.survey import survey
from tests.apply.in_process import Shared
from tests.ingest.bad_sources import Case


class _Silent:
    def begin(self, total: int, step_progress: Callable[[str], StepProgress | None]) -> None:
        pass

    def started(self, name: str) -> None:
        pass

    def progressed(self, name: str, blocks: int, records: int) -> None:
        pass

    def finished(self, outcome: DatasetOutcome) -> None:
        pass


def define(root: Path, case: Case) -> None:
    source: dict[str, Any] = {
        "kind": "SetPollingSource",
        "fetch": {"kind": "FilesGlob", "path": f"data/{case.name}/*", "order": "ByName"},
        "read": case.read,
        "merge": case.merge,
    }
    if case.prepare:
        source["prepare"] = case.prepare
    if case.preprocess:
        source["preprocess"] = {"kind": "Sql", "engine": "spark", "query": case.preprocess}
    content = {"name": case.name, "kind": "Root", "metadata": [source]}
    snapshot = {"kind": "DatasetSnapshot", "version": 1, "content": content}
    (root / "datasets").mkdir(exist_ok=True)
    (root / f"datasets/{case.name}.yaml").write_text(yaml.safe_dump(snapshot), "utf-8")


def arrive(root: Path, case: Case, file: str, data: bytes) -> None:
    folder = root / "data" / case.name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / file).write_bytes(data)


def apply(root: Path, engine: Engine) -> ApplyOutcome:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ODFBUILD_PIPES", "*")
        found = survey(root)
    options = ApplyOptions(
        factory=lambda: Shared(engine),
        listener=_Silent(),
        locate=found.locate,
        jobs=os.cpu_count() or 1,
        cancel=Event(),
    )
    return apply_plan(found.plan, found.project, found.workspace, options)


def heads(root: Path) -> dict[str, bytes]:
    return {file.parent.parent.name: file.read_bytes() for file in root.glob("chains/*/refs/head")}
