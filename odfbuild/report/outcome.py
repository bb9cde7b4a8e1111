"""How an apply ended."""

from __future__ import annotations

from typing import Any

from odfbuild.engine.contract import Drift, Skipped
from odfbuild.errors import OdfbuildError
from odfbuild.report.errors import see
from odfbuild.report.forms.words import behind_window, paint
from odfbuild.survey.outcome import ApplyOutcome, DatasetOutcome, Status
from odfbuild.wording import count

_COLORS = {
    Status.COMMITTED: "green",
    Status.NOOP: None,
    Status.SKIPPED: "yellow",
    Status.FAILED: "red",
    Status.LOST: "magenta",
}
LISTED = 200
"""Of more datasets than this, those that ended well are only counted."""


def render_outcome(outcome: ApplyOutcome, *, color: bool = False) -> str:
    """A line for each dataset with what became of it and why, then the counts."""
    shown = outcome.datasets
    if len(shown) > LISTED:
        shown = tuple(d for d in shown if d.status not in (Status.COMMITTED, Status.NOOP))
    width = min(40, max((len(dataset.name) for dataset in shown), default=0))
    lines = [_line(dataset, width, color) for dataset in shown]
    if outcome.interrupted:
        lines.append("Interrupted: what is committed stays; run apply again to go on.")
    return "\n".join([*lines, "", closing_line(outcome)] if lines else [closing_line(outcome)])


def render_dataset_outcome(dataset: DatasetOutcome, *, color: bool = False) -> str:
    """The line of one dataset."""
    return _line(dataset, len(dataset.name), color)


def closing_line(outcome: ApplyOutcome) -> str:
    """The last line of every apply; its form is stable."""
    return "Apply: " + ", ".join(f"{n} {name}" for name, n in _counts(outcome).items()) + "."


def outcome_to_data(outcome: ApplyOutcome) -> dict[str, Any]:
    """The same as plain values."""
    return {
        "interrupted": outcome.interrupted,
        "exit_code": outcome.exit_code,
        "datasets": [
            {
                "name": d.name,
                "status": d.status.value,
                "because": d.because or None,
                "blocks": d.blocks,
                "records": d.records,
                "records_read": d.records_read,
                "skipped": d.skipped.total,
                "skipped_by_flaw": dict(d.skipped.counts),
                "bad_records": [
                    {"reason": bad.reason, "location": str(bad.location)}
                    for bad in d.skipped.examples
                ],
                "warnings": list(d.warnings),
                "late": dict(d.late),
                "drift": {
                    "new": list(d.drift.new),
                    "missing": list(d.drift.missing),
                    "retyped": list(d.drift.retyped),
                },
                "seconds": round(d.seconds, 3),
                "error": d.error and _error(d.error),
            }
            for d in outcome.datasets
        ],
        "summary": _counts(outcome),
    }


def _error(error: OdfbuildError) -> dict[str, Any]:
    return {
        "code": error.code,
        "message": error.message,
        "location": str(error.location) if error.location else None,
        "notes": list(error.notes),
        "help": error.help,
        "see": see(error.code),
    }


def _counts(outcome: ApplyOutcome) -> dict[str, int]:
    return {status.value: len(outcome.having(status)) for status in Status}


def _line(dataset: DatasetOutcome, width: int, color: bool) -> str:
    # Padding inside the colour, so that columns stay aligned.
    status = paint(f"{dataset.status.value:<9}", _COLORS[dataset.status], on=color)
    parts = []
    if dataset.blocks:
        parts.append(f"{count(dataset.blocks, 'block')}, {count(dataset.records, 'record')}")
    if dataset.skipped.total:
        parts.append(f"{count(dataset.skipped.total, 'bad record')} skipped")
    because = dataset.because or (dataset.error.message if dataset.error else "")
    if because:
        parts.append(because)
    line = f"  {status}  {dataset.name:<{width}}  {'; '.join(parts)}".rstrip()
    return "\n".join(
        [
            line,
            *_skipped(dataset.skipped),
            *_drift(dataset.drift),
            *_late(dataset),
            *_warnings(dataset),
        ]
    )


def _warnings(dataset: DatasetOutcome) -> list[str]:
    return [f"      warning: {each}" for each in dataset.warnings]


def _late(dataset: DatasetOutcome) -> list[str]:
    return [
        f"             {behind_window(number, name)}; "
        f"`odfbuild watermark late {dataset.name}` lists {'it' if number == 1 else 'them'}"
        for name, number in dataset.late.items()
    ]


def _skipped(skipped: Skipped) -> list[str]:
    """The first few bad records of each flaw, and how many more there are."""
    lines = []
    for flaw, number in skipped.counts.items():
        shown = [each for each in skipped.examples if each.flaw == flaw]
        lines += [f"             {each.location}: {each.reason}" for each in shown]
        if number > len(shown):
            lines.append(f"             and {number - len(shown):,} more in {flaw}")
    return lines


def _drift(drift: Drift) -> list[str]:
    found = {
        "new in the source": drift.new,
        "missing in the source": drift.missing,
        "of another type in the source": drift.retyped,
    }
    return [f"             {what}: {', '.join(names)}" for what, names in found.items() if names]
