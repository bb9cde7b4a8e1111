"""What `doctor` found, as text and as data. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from odfbuild.inspect.health import Check, Status
from odfbuild.plan.refusal import as_data
from odfbuild.report.forms.words import paint
from odfbuild.wording import count

_COLORS = {Status.OK: "green", Status.WARN: "yellow", Status.FAIL: "red"}


def render_health(checks: Sequence[Check], *, color: bool) -> str:
    """A line for each check, what fixes it below, and a last line that sums up."""
    width = max(len(each.name) for each in checks)
    lines = []
    for each in checks:
        mark = paint(f"{each.status:4}", _COLORS[each.status], on=color)
        lines.append(f"{mark}  {each.name:{width}}  {each.detail}")
        if each.help:
            lines.append(f"{'':{width + 8}}help: {each.help}")
    return "\n".join([*lines, _summary(checks)])


def _summary(checks: Sequence[Check]) -> str:
    failed = sum(each.status is Status.FAIL for each in checks)
    warned = sum(each.status is Status.WARN for each in checks)
    warnings = f"; {count(warned, 'warning')}" if warned else ""
    if failed:
        return f"{count(failed, 'check')} failed{warnings}."
    return f"Everything works{warnings}."


def health_to_data(checks: Sequence[Check]) -> dict[str, Any]:
    """The same for programs; `help` is null where nothing has to be done."""
    return {
        "ok": all(each.status is not Status.FAIL for each in checks),
        "checks": as_data(checks),
    }
