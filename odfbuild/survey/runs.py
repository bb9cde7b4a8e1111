"""Results of past runs, which `run_log.py` writes to `.odfbuild/runs/<id>/`.

They serve people, `status` and `explain --since`; no decision depends on them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from odfbuild.errors import PlanError
from odfbuild.store.files import read_bounded
from odfbuild.store.machine_key import is_sealed
from odfbuild.survey.outcome import Status
from odfbuild.values import Value

_LOOKED_AT = 10
_MOST = 64 << 20
"""Bytes of the results of one run."""
SEAL = "seal"
"""The file that tells, beside the results, that they were written by this user on this machine."""


def run_folders(cache: Path) -> list[Path]:
    """Folders of runs, oldest first: their names begin with the time."""
    folder = cache / "runs"
    return sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


class PastRun(Value, kw_only=True):
    """The results of a run that ended; `datasets` is what became of each, by name.

    `branch` is the one that it ran in, `promotes` the one that it promoted.
    """

    id: str
    exit_code: int
    datasets: Mapping[str, Mapping[str, Any]]
    started: str
    finished: str
    branch: str | None = None
    promotes: str | None = None


def past_runs(cache: Path, newest: int = 0) -> list[PastRun]:
    """All runs that are kept and ended, or of the `newest` so many (0: all), oldest first.

    What cannot be read, or comes from elsewhere, is passed over.
    """
    found = []
    for folder in run_folders(cache)[-newest:]:
        try:
            text = read_bounded(folder / "run_results.json", _MOST)
            if not is_sealed(read_bounded(folder / SEAL, _MOST), folder.name, text):
                continue
            data = json.loads(text)
            datasets = {each["name"]: each for each in data["datasets"]}
            found.append(
                PastRun(
                    id=data["run_id"],
                    exit_code=data["exit_code"],
                    datasets=datasets,
                    started=data["started_at"],
                    finished=data["finished_at"],
                    branch=data.get("branch"),
                    promotes=data.get("promotes"),
                )
            )
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return found


def runs_in(cache: Path, branch: str | None) -> list[PastRun]:
    """The runs in a branch (`None`: on the heads), oldest first."""
    return [run for run in past_runs(cache) if run.branch == branch]


class LastResult(Value, kw_only=True):
    """How the last run that touched a dataset ended for it; `error` is a code."""

    run: str
    status: str
    because: str | None
    error: str | None

    @classmethod
    def of(cls, run: str, result: Mapping[str, Any]) -> LastResult:
        """What the results of a run say of a dataset."""
        because, error = result.get("because"), result.get("error")
        return cls(run=run, status=result["status"], because=because, error=error)

    @property
    def is_failure(self) -> bool:
        """Whether the dataset did not become what was planned."""
        return self.status in ("failed", "lost", "skipped", "interrupted")

    def __str__(self) -> str:
        code = f" [{self.error}]" if self.error else ""
        return f"{self.status}{code} in run {self.run}: {self.because}"


def last_results(cache: Path, branch: str | None = None) -> dict[str, LastResult]:
    """The last result of every dataset in the branch, by name, as far as runs are kept."""
    return {
        name: LastResult.of(run.id, each)
        for run in runs_in(cache, branch)
        for name, each in run.datasets.items()
    }


def runs_since(cache: Path, run: str, branch: str | None = None) -> tuple[PastRun, list[PastRun]]:
    """The run with that id, or its unique beginning, or `last`; and those after it.

    Raises `PlanError` E0364 when there is none, or several.
    """
    runs = runs_in(cache, branch)
    matching = runs[-1:] if run == "last" else [each for each in runs if each.id.startswith(run)]
    if len(matching) != 1:
        newest = ", ".join(each.id for each in runs[-3:]) or "none"
        raise PlanError(
            f"{'several runs begin' if matching else 'no run begins'} with '{run}'",
            code="E0364",
            notes=(f"newest runs: {newest}",),
            help="give more of its id, or `last`; all are in .odfbuild/runs",
        )
    position = runs.index(matching[0])
    return matching[0], runs[position + 1 :]


def last_seconds(cache: Path) -> dict[str, float]:
    """How long each dataset took when it last committed something, in the last few runs."""
    return {
        name: each["seconds"]
        for run in past_runs(cache, newest=_LOOKED_AT)
        for name, each in run.datasets.items()
        if each.get("status") == Status.COMMITTED.value and "seconds" in each
    }
