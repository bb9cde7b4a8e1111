"""How old datasets are by their watermarks, from their chains alone."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from odfbuild.errors import OdfbuildError
from odfbuild.odf.timestamp import Timestamp
from odfbuild.project.overrides import Overrides
from odfbuild.project.settings.freshness import Freshness, max_age
from odfbuild.store.workspace import Workspace
from odfbuild.survey.source_drift import count_late_files
from odfbuild.values import Value


class DatasetAge(Value, kw_only=True):
    """A dataset, its watermark (`None`: it has none), how old that is, and how old it may be.

    So many `late_files` of its source are never read. `error` is what is wrong with its chain:
    nobody can tell the age of a damaged dataset.
    """

    name: str
    watermark: Timestamp | None
    age: timedelta | None
    limit: timedelta | None
    late_files: int = 0
    error: OdfbuildError | None = None

    @property
    def status(self) -> str:
        """`damaged`, or `fresh` or `stale` where a limit is declared, else `-`."""
        if self.error is not None:
            return "damaged"
        if self.limit is None:
            return "-"
        return "fresh" if self.age is not None and self.age <= self.limit else "stale"


def ages_of(
    folder: Path | None,
    given: Overrides,
    workspace: Workspace,
    declared: Sequence[Freshness],
    now: Timestamp,
    chosen: Collection[str] | None = None,
) -> list[DatasetAge]:
    """The ages of all datasets at the time `now`, or of those `chosen`, sorted by name.

    The project lies in `folder`; its files tell which of them come too late for its sources.

    A dataset whose chain is damaged is one of them: nobody can tell its age.
    """
    states = workspace.projections_at(workspace.heads())
    wrong = states.faults()
    names = [name for name in states if chosen is None or name in chosen]
    late = count_late_files(folder, given, [name for name in names if name not in wrong])
    ages = []
    for name in names:
        limit, error = max_age(declared, name), wrong.get(name)
        watermark = states[name].watermark if error is None else None
        age = age_of(name, watermark, now, limit, error)
        ages.append(replace(age, late_files=late.get(name, 0)))
    return ages


def age_of(
    name: str,
    watermark: Timestamp | None,
    now: Timestamp,
    limit: timedelta | None,
    error: OdfbuildError | None = None,
) -> DatasetAge:
    """The age of a dataset at the time `now`; one that is ahead of the clock is of age zero."""
    age = None
    if watermark is not None:
        age = max(timedelta(), timedelta(milliseconds=now.millis - watermark.millis))
    return DatasetAge(name=name, watermark=watermark, age=age, limit=limit, error=error)
