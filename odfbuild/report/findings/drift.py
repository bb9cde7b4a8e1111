"""What drifted, as text, Markdown and plain values. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from odfbuild.plan.drift import ChainDrift, DriftKind
from odfbuild.report.forms.markdown import code, escaped, sentence
from odfbuild.report.forms.words import paint
from odfbuild.wording import count

if TYPE_CHECKING:
    from odfbuild.inspect.drift import Drifted

SIGN = "!"
"""Stands before what drifted."""


def render_drift(found: Drifted, *, color: bool = False) -> str:
    """What drifted by dataset with the ways out, and a closing line whose form is stable."""
    looked = _looked_at(found)
    if not found.drifts:
        return f"No drift. {looked}."
    lines = drift_lines(found.drifts, color=color)
    return "\n".join([*lines, "", f"{looked}.", closing_line(found.drifts)])


def drift_lines(drifts: Sequence[ChainDrift], *, color: bool = False) -> list[str]:
    """A line for each drift, and below it where it is and how to fix it."""
    width = min(40, max((len(drift.dataset) for drift in drifts), default=0))
    lines = []
    for drift in drifts:
        sign = paint(SIGN, "magenta", on=color)
        lines.append(f"  {sign} {drift.dataset:<{width}}  drift of {label(drift)}: {drift.message}")
        if drift.file:
            lines.append(f"      {paint('-->', 'blue', on=color)} {drift.file}")
        lines.append(f"      {paint('help', 'green', on=color)}: {drift.help}")
    return lines


def label(drift: ChainDrift) -> str:
    """Kind and cause, as in `history (moved_back)`."""
    return f"{drift.kind.value} ({drift.cause.value})"


def closing_line(drifts: Sequence[ChainDrift]) -> str:
    """How much drifted of each kind; its form is stable."""
    counts = _summary(drifts)
    return "Drift: " + ", ".join(f"{number} of {kind}" for kind, number in counts.items()) + "."


def render_drift_markdown(found: Drifted) -> str:
    """The same as Markdown, for a comment or the summary of a job."""
    title = closing_line(found.drifts) if found.drifts else "No drift"
    lines = [f"### {title.rstrip('.')}", "", f"{escaped(_looked_at(found))}.", ""]
    if found.drifts:
        lines += ["| | dataset | drift of | what | what to do |", "| --- | --- | --- | --- | --- |"]
        lines += [
            f"| {code(SIGN)} | {code(drift.dataset)} | {escaped(label(drift))} "
            f"| {sentence(drift.message)} "
            f"| {sentence(drift.help)} |"
            for drift in found.drifts
        ]
        lines.append("")
    return "\n".join(lines)


def drift_to_data(found: Drifted) -> dict[str, Any]:
    """The same as plain values."""
    return {
        "project": found.project,
        "deep": found.deep,
        "datasets": list(found.datasets),
        "drift": [each.to_data() for each in found.drifts],
        "summary": _summary(found.drifts),
    }


def _looked_at(found: Drifted) -> str:
    how = "by their hashes" if found.deep else "by presence and size; --deep hashes them"
    return f"Looked at {count(len(found.datasets), 'dataset')}, objects {how}"


def _summary(drifts: Sequence[ChainDrift]) -> dict[str, int]:
    return {kind.value: sum(drift.kind is kind for drift in drifts) for kind in DriftKind}
