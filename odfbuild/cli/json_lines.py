"""The events of an apply on standard output: one JSON object on each line, as they happen.

The last line is always `run.end`, also if nothing could be begun: it has the exit code.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odfbuild.cli.runner import harmless_json

if TYPE_CHECKING:
    from odfbuild.errors import OdfbuildError
    from odfbuild.plan.model import Plan
    from odfbuild.survey.outcome import ApplyOutcome

OPTION = "--json-lines"


class JsonLines:
    """Writes events of one run."""

    def __init__(self) -> None:
        self._run_id: str | None = None

    def __call__(self, record: dict[str, Any]) -> None:
        """Write a record of the log of the run."""
        self._run_id = record["run_id"]
        _write(record)

    def nothing_to_do(self, plan: Plan) -> None:
        """Write the plan of a run that is none: every dataset is up to date."""
        from odfbuild.apply.run_events import LogEvent, log_record, plan_ready

        message, fields = plan_ready(plan)
        _write(log_record(LogEvent.PLAN_READY, "info", None, None, message, **fields))

    def ended(self, outcome: ApplyOutcome) -> None:
        """Write how the run ended."""
        from odfbuild.report.outcome import closing_lines, outcome_to_data
        from odfbuild.report.transfers import transfers_to_data

        told = outcome_to_data(outcome)
        _end(
            self._run_id,
            outcome.exit_code,
            closing_lines(outcome).rpartition("\n")[2],
            interrupted=outcome.interrupted,
            records=outcome.records,
            seconds=told["seconds"],
            summary=told["summary"],
            published=transfers_to_data(outcome.published)["datasets"] or None,
        )


def end_without_run(error: OdfbuildError | None, exit_code: int, message: str) -> None:
    """Write that nothing was begun, and why."""
    from odfbuild.report.errors import error_to_data

    errors: Sequence[Any] | None = None if error is None else error_to_data(error)
    _end(None, exit_code, message, errors=errors)


def _end(run_id: str | None, exit_code: int, message: str, **more: Any) -> None:
    from odfbuild.apply.run_events import LogEvent, log_record

    level = "error" if exit_code else "info"
    _write(log_record(LogEvent.END, level, run_id, None, message, exit_code=exit_code, **more))


def _write(record: dict[str, Any]) -> None:
    try:
        # In ASCII nothing in it can end a line or mean something to a terminal.
        sys.stdout.write(harmless_json(json.dumps(record)) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever reads it has ended. That is no failure of a dataset, so the run goes on unheard.
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
