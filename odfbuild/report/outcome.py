"""How an apply ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from odfbuild.engine.contract import Drift, Skipped
from odfbuild.errors import OdfbuildError
from odfbuild.report.errors import see
from odfbuild.report.forms.words import behind_window, lasting, paint
from odfbuild.survey.outcome import ApplyOutcome, DatasetOutcome, Status, TableOutcome
from odfbuild.wording import count

_COLORS = {
    Status.COMMITTED: "green",
    Status.NOOP: None,
    Status.SKIPPED: "yellow",
    Status.FAILED: "red",
    Status.LOST: "magenta",
    Status.INTERRUPTED: "yellow",
}
_WORDS = {
    Status.COMMITTED: "committed",
    Status.NOOP: "unchanged",
    Status.SKIPPED: "skipped",
    Status.FAILED: "failed",
    Status.LOST: "conflict",
    Status.INTERRUPTED: "stopped",
}
_ALWAYS = (Status.COMMITTED, Status.NOOP, Status.SKIPPED, Status.FAILED)
LISTED = 200
"""If there are more datasets than this, those that ended well are only counted."""


def render_outcome(outcome: ApplyOutcome, *, color: bool = False) -> str:
    """A line for each dataset with what became of it and why, then the counts."""
    shown = outcome.datasets
    if len(shown) > LISTED:
        shown = tuple(d for d in shown if d.status not in (Status.COMMITTED, Status.NOOP))
    width = min(40, max((len(dataset.name) for dataset in shown), default=0))
    lines = [render_dataset_outcome(each, width=width, color=color) for each in shown]
    return "\n".join([*lines, *([""] if lines else []), closing_lines(outcome)])


def closing_lines(outcome: ApplyOutcome) -> str:
    """The end of every apply: counts, records, time; the form of the last line is stable."""
    counts = {status: len(outcome.having(status)) for status in Status}
    told = [f"{counts[status]} {_WORDS[status]}" for status in _ALWAYS]
    told.append(count(counts[Status.LOST], _WORDS[Status.LOST]))
    if outcome.interrupted:
        told.append(f"{counts[Status.INTERRUPTED]} {_WORDS[Status.INTERRUPTED]}")
    lines = [f"Added {count(outcome.records, 'record')} in {lasting(outcome.seconds)}."]
    if outcome.interrupted:
        lines.insert(0, "Interrupted: committed datasets stay; run apply again to continue.")
    return "\n".join([*lines, f"Apply: {', '.join(told)}."])


def result_word(status: str) -> str:
    """What a status in the log of a run is called everywhere but in JSON."""
    words = {known.value: word for known, word in _WORDS.items()}
    return words.get(status, status)


def outcome_to_data(outcome: ApplyOutcome) -> dict[str, Any]:
    """The same as plain values."""
    return {
        "interrupted": outcome.interrupted,
        "seconds": round(outcome.seconds, 3),
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
                "error": d.error and error_to_data(d.error),
            }
            for d in outcome.datasets
        ],
        **({"withdrawn": _withdrawn_to_data(outcome)} if outcome.withdrawn else {}),
        **({"tables": tables_to_data(outcome.tables)} if outcome.tables else {}),
        "summary": _counts(outcome),
    }


def _withdrawn_to_data(outcome: ApplyOutcome) -> list[dict[str, Any]]:
    return [
        {
            "dataset": each.dataset,
            "objects": each.objects,
            "records": each.records,
            "error": each.error and error_to_data(each.error),
        }
        for each in outcome.withdrawn
    ]


def render_withdrawn(outcome: ApplyOutcome) -> str:
    """A line for each dataset whose old records are withdrawn; nothing where there are none."""
    done = [each for each in outcome.withdrawn if each.error is None]
    lines = [
        f"  {each.dataset}: {count(each.records, 'record')} in {count(each.objects, 'object')}"
        for each in done
    ]
    return "\n".join(["Withdrawn:", *lines]) if lines else ""


def tables_to_data(tables: Sequence[TableOutcome]) -> list[dict[str, Any]]:
    """What became of tables, as plain values."""
    return [
        {
            "name": table.name,
            "dataset": table.dataset,
            "status": table.status.value,
            "because": table.because or None,
            "partitions": table.partitions,
            "records": table.records,
            "seconds": round(table.seconds, 3),
            "error": table.error and error_to_data(table.error),
        }
        for table in tables
    ]


def render_tables(tables: Sequence[TableOutcome], *, color: bool = False) -> str:
    """A line for each table that was written or failed; nothing where there are none."""
    shown = [each for each in tables if each.status is not Status.NOOP]
    if not shown:
        return ""
    width = min(40, max(len(each.name) for each in shown))
    lines = []
    for each in shown:
        word = "published" if each.status is Status.COMMITTED else _WORDS[each.status]
        status = paint(f"{word:<9}", _COLORS[each.status], on=color)
        parts = [each.because] if each.because else []
        if each.status is Status.COMMITTED:
            written = f"{count(each.partitions, 'partition')}, {count(each.records, 'record')}"
            parts.insert(0, written)
        took = f" ({lasting(each.seconds)})" if each.seconds else ""
        lines.append(f"  {status}  {each.name:<{width}}  {'; '.join(parts)}{took}")
    return "\n".join(["Tables:", *lines])


def error_to_data(error: OdfbuildError) -> dict[str, Any]:
    """An error as plain values."""
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


def render_dataset_outcome(dataset: DatasetOutcome, *, width: int = 0, color: bool = False) -> str:
    """The line of one dataset, with what is to be said of it below."""
    # Padding inside the colour, so that columns stay aligned.
    status = paint(f"{_WORDS[dataset.status]:<9}", _COLORS[dataset.status], on=color)
    parts = []
    if dataset.blocks:
        parts.append(f"{count(dataset.blocks, 'block')}, {count(dataset.records, 'record')}")
    if dataset.skipped.total:
        parts.append(f"{count(dataset.skipped.total, 'bad record')} skipped")
    because = dataset.because or (dataset.error.message if dataset.error else "")
    if because:
        parts.append(because)
    took = f" ({lasting(dataset.seconds)})" if dataset.seconds else ""
    line = f"  {status}  {dataset.name:<{width}}  {'; '.join(parts)}{took}".rstrip()
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
