"""The run log of each apply: a line for each event, and the results at the end.

Kept in `.odfbuild/runs/<id>/` as `log.jsonl` and `run_results.json`, the newest hundred of them;
`runs.py` reads them. No decision depends on them, so a disk that cannot take them does not stop an
apply.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any

from odfbuild.apply.run_events import LogEvent, dataset_ended, log_record, plan_ready
from odfbuild.engine.contract import Engine, EngineFactory, StepProgress
from odfbuild.odf.timestamp import Timestamp
from odfbuild.plan.document import dataset_reasons, pending_data
from odfbuild.plan.model import DatasetPlan, Plan
from odfbuild.store.machine_key import seal
from odfbuild.store.workspace import Workspace
from odfbuild.survey.outcome import (
    ApplyOutcome,
    DatasetOutcome,
    Status,
    TableOutcome,
    WithdrawalOutcome,
)
from odfbuild.survey.runs import SEAL, last_seconds, run_folders

if TYPE_CHECKING:
    from odfbuild.apply.options import Listener
    from odfbuild.apply.reset import Reset

KEPT = 100
"""So many runs are kept."""

Sink = Callable[[dict[str, Any]], None]
"""Takes one log record."""


def headway_text(now: StepProgress) -> str:
    """How far the engine is, in words."""
    read = f", {now.records_read:,} records read" if now.records_read else ""
    return f"stage {min(now.stages_done + 1, now.stages)} of {now.stages}{read}"


class RunLog:
    """A `Listener` that writes log records, and passes on what it hears.

    `head` tells the newest block of a dataset, `checks` the names of its checks.
    """

    def __init__(
        self,
        cache: Path,
        listener: Listener,
        sinks: Sequence[Sink] = (),
        *,
        head: Callable[[str], str | None] = lambda name: None,
        checks: Callable[[str], Sequence[str]] = lambda name: (),
    ) -> None:
        self.started_at = Timestamp.now()
        self.id = _new_id()
        self.folder = cache / "runs" / self.id
        self._listener = listener
        self._sinks = (self._append, *sinks)
        self._head, self._checks = head, checks
        self._mutex = threading.Lock()
        self._pulse = ProgressReporter(self._advanced)
        self._last: dict[str, float] | None = None
        with contextlib.suppress(OSError):
            _prune(cache)
            self.folder.mkdir(parents=True)

    def ready(self, plan: Plan, digest: str) -> None:
        """The plan that will be carried out."""
        message, fields = plan_ready(plan)
        self._write(LogEvent.PLAN_READY, "info", None, message, plan_digest=digest, **fields)

    def telling(self, factory: EngineFactory) -> EngineFactory:
        """`factory`, which writes down where each engine that it starts runs."""

        def start() -> Engine:
            engine = factory()
            about = engine.about()
            self._write(
                LogEvent.ENGINE_START,
                "warning" if about.lacking else "info",
                None,
                f"{about.name} on {about.master}; sandbox: {about.fences}",
                engine_version=about.version,
                not_fenced=list(about.lacking),
            )
            return engine

        return start

    def begin(self, total: int, step_progress: Callable[[str], StepProgress | None]) -> None:
        """See `Listener`."""
        self._pulse.begin(step_progress)
        self._listener.begin(total, step_progress)

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

    def _advanced(self, name: str, now: StepProgress, elapsed: float) -> None:
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
        head = self._head(outcome.name) if outcome.blocks else None
        event, level, fields = dataset_ended(outcome, head, self._checks(outcome.name))
        because = outcome.because or outcome.status.value
        self._write(event, level, outcome.name, because, **fields)
        self._listener.finished(outcome)

    def withdrawn(self, outcomes: Iterable[WithdrawalOutcome]) -> None:
        """What became of old records."""
        for each in outcomes:
            self._write(
                LogEvent.WITHDRAWAL,
                "error" if each.error else "info",
                each.dataset,
                each.error.message if each.error else "withdrawn",
                objects=each.objects,
                records=each.records,
                code=each.error.code if each.error else None,
            )

    def published(self, tables: Iterable[TableOutcome]) -> None:
        """What became of published tables."""
        for each in tables:
            level = "error" if each.error else "info"
            message = each.because or each.status.value
            self._write(
                LogEvent.TABLE,
                level,
                each.dataset,
                message,
                table=each.name,
                status=each.status.value,
                partitions=each.partitions,
                records=each.records,
                seconds=round(each.seconds, 3),
                code=each.error.code if each.error else None,
            )

    def ended(self, plan: Plan, digest: str, outcome: ApplyOutcome, workspace: Workspace) -> None:
        """Write the results of the run."""
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
            "branch": workspace.branch,
            **({"promotes": plan.promotes} if plan.promotes else {}),
            "interrupted": outcome.interrupted,
            "exit_code": outcome.exit_code,
            "datasets": [_result(each, planned[each.name], workspace) for each in outcome.datasets],
            **({"tables": [_table(each) for each in outcome.tables]} if outcome.tables else {}),
            "summary": counts,
        }
        _write_results(self.folder, results)

    def _write(
        self, event: LogEvent, level: str, dataset: str | None, message: str, **more: Any
    ) -> None:
        record = log_record(event, level, self.id, dataset, message, **more)
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
                "records_read": 0,
                "seconds": 0.0,
                "error": None,
                "actions": ["reset"],
                "reasons": [],
                "planned": None,
                "head_before": str(each.head),
                "head_after": str(state.head) if state else None,
            }
        )
    results = {
        "run_id": id,
        "started_at": now,
        "finished_at": now,
        "plan_digest": None,
        "branch": workspace.branch,
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
        sealed = seal(folder.name, text.encode())
        (folder / SEAL).write_bytes(sealed or b"")


def _table(outcome: TableOutcome) -> dict[str, Any]:
    return {
        "name": outcome.name,
        "dataset": outcome.dataset,
        "status": outcome.status.value,
        "because": outcome.because or None,
        "partitions": outcome.partitions,
        "records": outcome.records,
        "seconds": round(outcome.seconds, 3),
        "error": outcome.error.code if outcome.error else None,
    }


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
        "records_read": outcome.records_read,
        "seconds": round(outcome.seconds, 3),
        "error": outcome.error.code if outcome.error else None,
        "actions": [action.name.lower() for action in plan.actions],
        "reasons": dataset_reasons(plan),
        "planned": pending_data(plan.pending),
        "head_before": str(plan.expected_head) if plan.expected_head else None,
        "head_after": str(head) if head else None,
    }


def _prune(cache: Path) -> None:
    for old in run_folders(cache)[: -KEPT + 1]:
        shutil.rmtree(old, ignore_errors=True)


SECONDS = 2.0


class ProgressReporter:
    """Calls `tell(name, progress, elapsed seconds)` whenever the progress has changed."""

    def __init__(self, tell: Callable[[str, StepProgress, float], None]) -> None:
        self._tell = tell
        self._since: dict[str, float] = {}
        self._lock = Lock()
        self._ended = Event()

    def begin(self, ask: Callable[[str], StepProgress | None]) -> None:
        """Begin to ask; ends with `end`, or with the process."""
        Thread(target=self._beat, args=(ask,), name="pulse", daemon=True).start()

    def started(self, name: str) -> None:
        """Ask about a dataset from now on."""
        with self._lock:
            self._since[name] = time.monotonic()

    def finished(self, name: str) -> None:
        """Ask no more about it."""
        with self._lock:
            self._since.pop(name, None)

    def end(self) -> None:
        """Ask no more."""
        self._ended.set()

    def _beat(self, ask: Callable[[str], StepProgress | None]) -> None:
        told: dict[str, StepProgress] = {}
        while not self._ended.wait(SECONDS):
            with self._lock:
                now = dict(self._since)
            for name, since in now.items():
                elapsed = time.monotonic() - since
                found: StepProgress | None = None
                # The engine may end at any time; whoever works with it says so.
                with contextlib.suppress(Exception):
                    found = ask(name) if elapsed >= SECONDS else None
                if found is None or told.get(name) == found:
                    continue
                told[name] = found
                with self._lock:
                    if name in self._since:
                        self._tell(name, found, elapsed)
