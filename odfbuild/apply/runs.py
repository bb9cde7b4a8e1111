"""What happened in each apply: a log line for each event, and the results at the end.

Kept in `.odfbuild/runs/<id>/` as `log.jsonl` and `run_results.json`, the newest hundred of them.
They serve people and `explain --since`; no decision depends on them, so a disk that cannot take
them does not stop an apply.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import shutil
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odfbuild.apply.outcome import ApplyOutcome, DatasetOutcome, Status
from odfbuild.apply.pulse import Pulse
from odfbuild.engine.contract import Engine, EngineFactory, Headway
from odfbuild.errors import CheckError, PlanError
from odfbuild.odf.timestamp import Timestamp
from odfbuild.plan.document import dataset_reasons
from odfbuild.plan.model import DatasetPlan, Plan
from odfbuild.store.workspace import Workspace

if TYPE_CHECKING:
    from odfbuild.apply.reset import Reset
    from odfbuild.apply.run import Listener

KEPT = 100
"""So many runs are kept."""

_LOOKED_AT = 10

Sink = Callable[[dict[str, Any]], None]
"""Takes one log record."""


class LogEvent(StrEnum):
    """What a log record is about: a closed list, part of the output format."""

    PLAN_READY = "plan.ready"
    ENGINE_START = "engine.start"
    NODE_START = "node.start"
    NODE_PROGRESS = "node.progress"
    NODE_COMMIT = "node.commit"
    NODE_SKIP = "node.skip"
    NODE_FAIL = "node.fail"
    CHECK_FAIL = "check.fail"
    CAS_LOST = "cas.lost"
    SUMMARY = "summary"


_ENDS = {
    Status.COMMITTED: (LogEvent.NODE_COMMIT, "info"),
    Status.NOOP: (LogEvent.NODE_SKIP, "info"),
    Status.SKIPPED: (LogEvent.NODE_SKIP, "warning"),
    Status.FAILED: (LogEvent.NODE_FAIL, "error"),
    Status.LOST: (LogEvent.CAS_LOST, "error"),
}


def last_seconds(cache: Path) -> dict[str, float]:
    """How long each dataset took when it last committed something, as far as runs are kept."""
    found: dict[str, float] = {}
    for file in sorted((cache / "runs").glob("*/run_results.json"), reverse=True)[:_LOOKED_AT]:
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            for each in json.loads(file.read_text(encoding="utf-8"))["datasets"]:
                if each["status"] == Status.COMMITTED.value:
                    found.setdefault(each["name"], each["seconds"])
    return found


def headway_text(now: Headway) -> str:
    """How far the engine is, in words."""
    read = f", {now.records_read:,} records read" if now.records_read else ""
    return f"stage {min(now.stages_done + 1, now.stages)} of {now.stages}{read}"


class RunLog:
    """A `Listener` that writes log records, and passes on what it hears."""

    def __init__(self, cache: Path, listener: Listener, sinks: Sequence[Sink] = ()) -> None:
        self.started_at = Timestamp.now()
        self.id = _new_id()
        self.folder = cache / "runs" / self.id
        self._listener = listener
        self._sinks = (self._append, *sinks)
        self._mutex = threading.Lock()
        self._pulse = Pulse(self._advanced)
        self._last: dict[str, float] | None = None
        with contextlib.suppress(OSError):
            _prune(cache / "runs")
            self.folder.mkdir(parents=True)

    def ready(self, plan: Plan, digest: str) -> None:
        """The plan that will be carried out."""
        count = sum(bool(dataset.actions) for dataset in plan.datasets)
        message = f"{count} of {len(plan.datasets)} datasets affected"
        self._write(LogEvent.PLAN_READY, "info", None, message, plan_digest=digest)

    def telling(self, factory: EngineFactory) -> EngineFactory:
        """`factory`, which writes down where each engine that it starts runs."""

        def start() -> Engine:
            engine = factory()
            about = engine.about()
            self._write(
                LogEvent.ENGINE_START,
                "warning" if about.lacking else "info",
                None,
                f"Spark runs on {about.master}; sandbox: {about.fences}",
                engine_version=about.version,
                not_fenced=list(about.lacking),
            )
            return engine

        return start

    def begin(self, total: int, headway: Callable[[str], Headway | None]) -> None:
        """See `Listener`."""
        self._pulse.begin(headway)
        self._listener.begin(total, headway)

    def started(self, name: str) -> None:
        """See `Listener`."""
        self._write(LogEvent.NODE_START, "info", name, "started")
        self._pulse.started(name)
        self._listener.started(name)

    def progressed(self, name: str, blocks: int, records: int) -> None:
        """See `Listener`."""
        message = f"{blocks} blocks, {records} records so far"
        self._write(LogEvent.NODE_PROGRESS, "info", name, message, blocks=blocks, records=records)
        self._listener.progressed(name, blocks, records)

    def _advanced(self, name: str, now: Headway, elapsed: float) -> None:
        """The engine got on with a dataset."""
        if self._last is None:
            self._last = last_seconds(self.folder.parents[1])
        last = self._last.get(name)
        self._write(
            LogEvent.NODE_PROGRESS,
            "info",
            name,
            headway_text(now),
            stages=[now.stages_done, now.stages],
            tasks=[now.tasks_done, now.tasks],
            records_read=now.records_read,
            seconds=round(elapsed, 3),
            seconds_left=None if last is None else round(max(0.0, last - elapsed), 3),
        )

    def finished(self, outcome: DatasetOutcome) -> None:
        """See `Listener`."""
        self._pulse.finished(outcome.name)
        for each in outcome.warnings:
            self._write(LogEvent.CHECK_FAIL, "warning", outcome.name, each, checks=[each])
        event, level = _ENDS[outcome.status]
        place, checks = None, None
        if isinstance(outcome.error, CheckError):
            event, checks = LogEvent.CHECK_FAIL, list(outcome.error.notes)
        if outcome.error is not None and outcome.error.location is not None:
            place = str(outcome.error.location)
        because = outcome.because or outcome.status.value
        self._write(
            event,
            level,
            outcome.name,
            because,
            status=outcome.status.value,
            checks=checks,
            place=place,
            blocks=outcome.blocks,
            records=outcome.records,
            seconds=round(outcome.seconds, 3),
            code=outcome.error.code if outcome.error else None,
        )
        self._listener.finished(outcome)

    def ended(
        self, plan: Plan, digest: str, outcome: ApplyOutcome, workspace: Workspace
    ) -> dict[str, Any]:
        """Write the results of the run, and return them."""
        self._pulse.end()
        counts = {status.value: len(outcome.having(status)) for status in Status}
        message = ", ".join(f"{number} {status}" for status, number in counts.items())
        self._write(LogEvent.SUMMARY, "info", None, message, exit_code=outcome.exit_code)
        planned = {dataset.name: dataset for dataset in plan.datasets}
        results = {
            "run_id": self.id,
            "started_at": str(self.started_at),
            "finished_at": str(Timestamp.now()),
            "plan_digest": digest,
            "interrupted": outcome.interrupted,
            "exit_code": outcome.exit_code,
            "datasets": [_result(each, planned[each.name], workspace) for each in outcome.datasets],
            "summary": counts,
        }
        _write_results(self.folder, results)
        return results

    def _write(
        self, event: LogEvent, level: str, dataset: str | None, message: str, **more: Any
    ) -> None:
        record = {
            "ts": str(Timestamp.now()),
            "level": level,
            "event": event.value,
            "run_id": self.id,
            "dataset": dataset,
            "msg": message,
            **{key: value for key, value in more.items() if value is not None},
        }
        with self._mutex:
            for sink in self._sinks:
                sink(record)

    def _append(self, record: dict[str, Any]) -> None:
        line = json.dumps(record, ensure_ascii=False) + "\n"
        with contextlib.suppress(OSError), (self.folder / "log.jsonl").open("a") as file:
            file.write(line)


def record_resets(cache: Path, resets: Iterable[Reset], workspace: Workspace) -> None:
    """Leave the results of a reset that was done, so that nobody takes it for drift."""
    now, id = str(Timestamp.now()), _new_id()
    datasets = []
    for each in resets:
        state = workspace.projection(each.name)
        datasets.append(
            {
                "name": each.name,
                "status": Status.COMMITTED.value,
                "because": f"reset to block {each.to.short}",
                "blocks": len(each.events),
                "records": 0,
                "seconds": 0.0,
                "error": None,
                "actions": ["reset"],
                "reasons": [],
                "head_before": str(each.head),
                "head_after": str(state.head) if state else None,
            }
        )
    results = {
        "run_id": id,
        "started_at": now,
        "finished_at": now,
        "plan_digest": None,
        "interrupted": False,
        "exit_code": 0,
        "datasets": datasets,
        "summary": {Status.COMMITTED.value: len(datasets)},
    }
    with contextlib.suppress(OSError):
        (cache / "runs" / id).mkdir(parents=True)
    _write_results(cache / "runs" / id, results)


def _new_id() -> str:
    # Microseconds, so that the order of names is the order of runs.
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%S%fZ-") + secrets.token_hex(2)


def _write_results(folder: Path, results: Mapping[str, Any]) -> None:
    with contextlib.suppress(OSError):
        text = json.dumps(results, indent=2, ensure_ascii=False) + "\n"
        (folder / "run_results.json").write_text(text, encoding="utf-8")


def _result(outcome: DatasetOutcome, plan: DatasetPlan, workspace: Workspace) -> dict[str, Any]:
    moved = outcome.blocks or outcome.status is Status.COMMITTED
    state = workspace.projection(outcome.name) if moved else None
    head = state.head if state else plan.expected_head
    return {
        "name": outcome.name,
        "status": outcome.status.value,
        "because": outcome.because or None,
        "blocks": outcome.blocks,
        "records": outcome.records,
        "seconds": round(outcome.seconds, 3),
        "error": outcome.error.code if outcome.error else None,
        "actions": [action.name.lower() for action in plan.actions],
        "reasons": dataset_reasons(plan),
        "head_before": str(plan.expected_head) if plan.expected_head else None,
        "head_after": str(head) if head else None,
    }


def _prune(folder: Path) -> None:
    for old in _run_folders(folder)[: -KEPT + 1]:
        shutil.rmtree(old, ignore_errors=True)


def _run_folders(folder: Path) -> list[Path]:
    """Folders of runs, oldest first: their names begin with the time."""
    return sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRun:
    """The results of a run that ended; `datasets` is what became of each, by name."""

    id: str
    exit_code: int
    datasets: Mapping[str, Mapping[str, Any]]


def past_runs(cache: Path) -> list[PastRun]:
    """All runs that are kept and ended, oldest first; what cannot be read is passed over."""
    found = []
    for folder in _run_folders(cache / "runs"):
        try:
            data = json.loads((folder / "run_results.json").read_bytes())
            datasets = {each["name"]: each for each in data["datasets"]}
            found.append(PastRun(id=data["run_id"], exit_code=data["exit_code"], datasets=datasets))
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class LastResult:
    """How the last run that touched a dataset ended for it; `error` is a code."""

    run: str
    status: str
    because: str | None
    error: str | None

    @property
    def is_failure(self) -> bool:
        """Whether the dataset did not become what was planned."""
        return self.status in ("failed", "lost", "skipped")

    def __str__(self) -> str:
        code = f" [{self.error}]" if self.error else ""
        return f"{self.status}{code} in run {self.run}: {self.because}"


def last_results(cache: Path) -> dict[str, LastResult]:
    """The last result of every dataset, by name, as far as runs are kept."""
    return {
        name: LastResult(
            run=run.id,
            status=each["status"],
            because=each.get("because"),
            error=each.get("error"),
        )
        for run in past_runs(cache)
        for name, each in run.datasets.items()
    }


def runs_since(cache: Path, run: str) -> tuple[PastRun, list[PastRun]]:
    """The run with that id, or its unique beginning, or `last`; and those after it.

    Raises `PlanError` E0364 when there is none, or several.
    """
    runs = past_runs(cache)
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
