"""Why a dataset will run or not, as a tree for people and as plain values. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from odfbuild.errors import Location
from odfbuild.plan.document import pending_data
from odfbuild.plan.explain import BlockPosition, Cause, DatasetStatus, Explanation
from odfbuild.report.blame import commit_to_data
from odfbuild.report.errors import error_to_data, render_error
from odfbuild.report.forms.words import paint
from odfbuild.report.outcome import result_word
from odfbuild.report.plan.computation import computation_lines
from odfbuild.report.plan.view import reason_line
from odfbuild.survey.runs import PastRun
from odfbuild.wording import count

_COLORS = {
    DatasetStatus.NEW: "green",
    DatasetStatus.STALE: "cyan",
    DatasetStatus.MAYBE_STALE: "blue",
    DatasetStatus.CHANGED: "yellow",
    DatasetStatus.QUERY_WAITS: "yellow",
    DatasetStatus.UP_TO_DATE: None,
    DatasetStatus.REFUSED: "magenta",
    DatasetStatus.ORPHANED: "red",
    DatasetStatus.EXTERNAL: None,
    DatasetStatus.NOT_PULLED: "magenta",
}


def render_explanation(explanation: Explanation, *, color: bool = False) -> str:
    """The status of the dataset, the tree of causes, and what is no cause."""
    status = paint(explanation.status.value, _COLORS[explanation.status], on=color)
    lines = [f"{explanation.name}  {status}", *_tree(explanation.causes, "")]
    ways = list(computation_lines(explanation.pending))
    lines += ["", "How:", *(f"  {each}" for each in ways)] if ways else []
    if explanation.settled:
        lines += ["", "Not because of:"]
        lines += [f"  {each.what}: {each.because}" for each in explanation.settled]
    if explanation.last_failure is not None:
        lines += ["", f"Last time: {explanation.last_failure}"]
    if explanation.refusal is not None:
        lines += ["", render_error(explanation.refusal, color=color).rstrip()]
    return "\n".join(lines)


def explanation_to_data(explanation: Explanation) -> dict[str, Any]:
    """The same as plain values."""
    return {
        "name": explanation.name,
        "status": explanation.status.name.lower(),
        "causes": [_cause(cause) for cause in explanation.causes],
        "settled": [{"what": each.what, "because": each.because} for each in explanation.settled],
        "pending": pending_data(explanation.pending),
        "last_failure": explanation.last_failure,
        "refusal": error_to_data(explanation.refusal)[0] if explanation.refusal else None,
    }


def render_history(name: str, base: PastRun, later: Sequence[PastRun]) -> str:
    """What became of a dataset in a run and in each after it, and why."""
    lines = [f"Since run {base.id} ({_ending(base.datasets.get(name))}):"]
    touched = [run for run in later if name in run.datasets]
    for run in touched:
        result = run.datasets[name]
        lines.append(f"  {run.id}  {_ending(result)}")
        lines += [f"    {line}" for line in _reason_lines(result["reasons"], 0)]
    if not touched:
        lines.append("  no later run included it")
    return "\n".join(lines)


def history_to_data(name: str, base: PastRun, later: Sequence[PastRun]) -> dict[str, Any]:
    """The same as plain values."""
    return {
        "run_id": base.id,
        "result": base.datasets.get(name),
        "runs": [
            {"run_id": run.id, "result": run.datasets[name]}
            for run in later
            if name in run.datasets
        ],
    }


def _ending(result: Mapping[str, Any] | None) -> str:
    if result is None:
        return "not part of that run"
    added = f"{count(result['records'], 'record')} in {count(result['blocks'], 'block')}"
    parts = [result_word(result["status"]), *([added] if result["blocks"] else [])]
    return " ".join(parts) + (f": {result['because']}" if result["because"] else "")


def _reason_lines(reasons: Sequence[Mapping[str, Any]], depth: int) -> Iterator[str]:
    for reason in reasons:
        yield f"{'  ' * depth}{reason['message']}"
        yield from _reason_lines(reason["children"], depth + 1)


def _tree(causes: Sequence[Cause], margin: str) -> Iterator[str]:
    for number, cause in enumerate(causes, 1):
        last = number == len(causes)
        place = f", {cause.place}" if cause.place else ""
        again = " (see above)" if cause.repeated else ""
        commit = f", {cause.commit}" if cause.commit else ""
        line = reason_line(cause.reason, _number(cause.start), _number(cause.end))
        yield f"{margin}{'└─' if last else '├─'} {line}{place}{commit}{again}"
        yield from _tree(cause.children, margin + ("   " if last else "│  "))


def _cause(cause: Cause) -> dict[str, Any]:
    reason = cause.reason
    return {
        "code": reason.code.value,
        "message": reason.message,
        "input": reason.input,
        "from": _point(reason.from_block, reason.from_offset, cause.start),
        "to": _point(reason.to_block, reason.to_offset, cause.end),
        "source": _source(cause.place),
        "commit": commit_to_data(cause.commit),
        "repeated": cause.repeated,
        "children": [_cause(child) for child in cause.children],
    }


def _number(point: BlockPosition | None) -> int | None:
    return point.sequence_number if point else None


def _point(block: object, offset: int | None, point: BlockPosition | None) -> dict[str, Any] | None:
    if block is None:
        return None
    return {"block": str(block), "sequence_number": _number(point), "offset": offset}


def _source(place: Location | None) -> dict[str, Any] | None:
    if place is None:
        return None
    found = {"file": place.file, "line": place.line, "column": place.column}
    return {**found, "instance": place.instance}
