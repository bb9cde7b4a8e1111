"""What is told of a run while it goes on: one record for each event, as plain values. Pure.

Written to the log of the run, to programs by `apply --json-lines`, and to telemetry. The JSON
Schema is `schemas/run-event.schema.json`.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from odfbuild.errors import CheckError, Code
from odfbuild.odf.timestamp import Timestamp
from odfbuild.plan.model import Plan
from odfbuild.survey.outcome import DatasetOutcome, Status

Record = dict[str, Any]


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
    WITHDRAWAL = "withdrawal"
    TABLE = "table"
    SUMMARY = "summary"
    END = "run.end"


_ENDS = {
    Status.COMMITTED: (LogEvent.NODE_COMMIT, "info"),
    Status.NOOP: (LogEvent.NODE_SKIP, "info"),
    Status.SKIPPED: (LogEvent.NODE_SKIP, "warning"),
    Status.FAILED: (LogEvent.NODE_FAIL, "error"),
    Status.LOST: (LogEvent.CAS_LOST, "error"),
    Status.INTERRUPTED: (LogEvent.NODE_SKIP, "warning"),
}
_BROKEN_CHECK = Code.CHECK_VIOLATED
"""The code of the error for records that violate checks: its notes tell which."""


def log_record(
    event: LogEvent, level: str, run_id: str | None, dataset: str | None, message: str, **more: Any
) -> Record:
    """The record of an event that happens now; what is `None` in `more` is left out."""
    return {
        "ts": str(Timestamp.now()),
        "level": level,
        "event": event.value,
        "run_id": run_id,
        "dataset": dataset,
        "msg": message,
        **{key: value for key, value in more.items() if value is not None},
    }


def plan_ready(plan: Plan) -> tuple[str, Record]:
    """The message and the fields that tell what a run is going to do."""
    affected = [each for each in plan.datasets if each.actions]
    fields = {
        "project": plan.project,
        "env": plan.env,
        "branch": plan.branch.name if plan.branch else None,
        "affected": [
            {"name": each.name, "actions": [action.name.lower() for action in each.actions]}
            for each in affected
        ],
        "total": len(plan.datasets),
    }
    return f"{len(affected)} of {len(plan.datasets)} datasets affected", fields


def dataset_ended(
    outcome: DatasetOutcome, head: str | None, checks: Sequence[str]
) -> tuple[LogEvent, str, Record]:
    """The event, its level and its fields for a dataset that ended.

    `head` is its newest block, if this run moved it; `checks` are the names of its checks.
    """
    event, level = _ENDS[outcome.status]
    error, broken = outcome.error, None
    if isinstance(error, CheckError):
        event, broken = LogEvent.CHECK_FAIL, list(error.notes)
    fields = {
        "status": outcome.status.value,
        "checks": broken,
        "check_results": check_results(outcome, checks) or None,
        "place": str(error.location) if error is not None and error.location else None,
        "blocks": outcome.blocks,
        "records": outcome.records,
        "records_read": outcome.records_read,
        "bad_records": outcome.skipped.total or None,
        "late": dict(outcome.late) or None,
        "head": head,
        "seconds": round(outcome.seconds, 3),
        "code": error.code if error else None,
        "help": error.help if error else None,
    }
    return event, level, fields


def check_results(outcome: DatasetOutcome, checks: Sequence[str]) -> list[Record]:
    """What became of each check: `passed`, `warned` or `failed`, and what was found.

    Empty where checks did not run: they look at new records only. Messages of violations begin
    with the name of the check.
    """
    broken: Sequence[str] = ()
    if outcome.error is not None:
        if outcome.error.code != _BROKEN_CHECK:
            return []
        broken = outcome.error.notes
    elif not outcome.records:
        return []
    results = {name: Record(check=name, status="passed", found=None) for name in checks}
    # A name may begin with that of another check: the longest one is meant.
    longest = sorted(checks, key=len, reverse=True)
    for status, messages in (("warned", outcome.warnings), ("failed", broken)):
        for message in messages:
            name = next((each for each in longest if message.startswith(f"{each}: ")), None)
            if name is not None:
                found = message.removeprefix(f"{name}: ")
                results[name] = Record(check=name, status=status, found=found)
    return list(results.values())
