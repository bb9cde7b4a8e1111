"""Ingest into a dataset of one's own, in this process, on the engine that all tests share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from odfbuild.apply.ingest_request import IngestRequest, ingest
from odfbuild.engine.contract import Engine, StepProgress
from odfbuild.odf.model import (
    AddPushSource,
    DatasetKind,
    MergeStrategy,
    MergeStrategyAppend,
    ReadStep,
    TransformSql,
)
from odfbuild.odf.timestamp import Timestamp
from odfbuild.store.workspace import Workspace
from odfbuild.survey.outcome import DatasetOutcome
from tests.apply.in_process import Shared

NOW = Timestamp.parse("2024-05-01T12:00:00Z")


class Told:
    """Hears how a request ended."""

    outcome: DatasetOutcome

    def begin(self, total: int, step_progress: Callable[[str], StepProgress | None]) -> None:
        pass

    def started(self, name: str) -> None:
        pass

    def progressed(self, name: str, blocks: int, records: int) -> None:
        pass

    def finished(self, outcome: DatasetOutcome) -> None:
        self.outcome = outcome


def workspace(root: Path) -> Workspace:
    return Workspace(root / "chains", root / ".odfbuild-keys", root / ".odfbuild")


def create(
    root: Path,
    read: ReadStep,
    merge: MergeStrategy | None = None,
    preprocess: TransformSql | None = None,
) -> Workspace:
    """A dataset `d` with a push source, without data."""
    space = workspace(root)
    merge = merge or MergeStrategyAppend()
    source = AddPushSource(source_name="s", read=read, preprocess=preprocess, merge=merge)
    space.create("d", DatasetKind.Root, [source], NOW)
    return space


def ingest_into(space: Workspace, engine: Engine, data: bytes, **options: Any) -> DatasetOutcome:
    """Ingest `data` into `d`; `options` are those of `IngestRequest`."""
    file = space.state / "batch"
    file.write_bytes(data)
    told = Told()
    ingest(
        IngestRequest(dataset="d", data=file, **{"source": None, **options}),
        space,
        factory=lambda: Shared(engine),
        listener=told,
        locate=lambda _, error: error,
    )
    return told.outcome
