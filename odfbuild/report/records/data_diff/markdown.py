"""A difference of records as Markdown, for a comment on a pull request.

Only for what may leave the machine: see `inspect.data_diff.shown`. An error is told by its code,
because its text may quote values. What does not fit is left out and counted: samples before
numbers. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from odfbuild.errors import OdfbuildError
from odfbuild.inspect.data_diff.model import Comparison
from odfbuild.report.forms.markdown import (
    BUDGET,
    code,
    escaped,
    fitting,
    left_out,
    marker,
    sentence,
    size,
)
from odfbuild.report.records.data_diff.view import DiffView, closing, views

_RESERVE = 256


def render_data_diff_markdown(
    found: Comparison, project: str, env: str | None = None, *, budget: int = BUDGET
) -> str:
    """It as a comment of its own of at most `budget` characters."""
    head = [marker(project, env, "data"), f"### Records of {escaped(project)}", ""]
    return "\n".join([*head, *data_diff_lines(found, budget - size(head))])


def data_diff_lines(found: Comparison, budget: int) -> list[str]:
    """It as a part of a text, of at most `budget` characters."""
    seen = views(found)
    tail = ["", f"{escaped(closing(found))}", ""]
    notes = [f"{sentence(each)}  " for each in found.notes]
    lines = [*notes, *([""] if notes else [])]
    room = budget - size(tail) - size(lines) - _RESERVE
    failed, left = fitting(_failed(found.errors), room // 4)
    room -= room // 4 - left
    rows, room = fitting([_row(each) for each in seen], room)
    if rows:
        lines += ["| dataset | records |", "| --- | --- |", *rows]
        lines += left_out(len(seen) - len(rows), "more dataset")
        lines.append("")
    details, _ = fitting([_details(each) for each in seen[: len(rows)]], room)
    if details:
        summary = "<summary>Columns, distributions and samples</summary>"
        lines += ["<details>", summary, "", *details, "</details>"]
        lines += left_out(len(seen) - len(details), "more dataset", " with details")
    return [*lines, *failed, *tail]


def _failed(errors: Sequence[OdfbuildError]) -> list[str]:
    return [
        f"- `!` {code(str(each.dataset))} could not be compared ({each.code}): "
        f"{code(f'odfbuild diff --data {each.dataset}')} says why"
        for each in errors
    ]


def _row(seen: DiffView) -> str:
    return f"| {code(seen.name)} | {escaped(seen.summary)} |"


def _details(seen: DiffView) -> str:
    """The block of a dataset."""
    lines = [f"**{code(seen.name)}** {escaped(seen.states)}", ""]
    lines += [f"- {sentence(each)}" for each in filter(None, (seen.key, *seen.notes))]
    lines += [
        f"- {code(name)}: {escaped(f'{number}, {part}')}" for name, number, part in seen.rates
    ]
    lines += [f"- schema: {code(each)}" for each in seen.schema]
    lines += [f"- {code(each)}" for each in seen.drift]
    if seen.samples:
        lines += ["", "| | key | values |", "| --- | --- | --- |"]
        lines += [f"| {code(s.sign)} | {code(s.key)} | {code(s.text)} |" for s in seen.samples]
    return "\n".join([*lines, ""])
