"""What checks of committed records found. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from odfbuild.engine.audit import Violation
from odfbuild.errors import Location
from odfbuild.report.forms.words import paint
from odfbuild.wording import count

Found = Mapping[str, Sequence[Violation]]
"""Violations by dataset; a dataset that keeps to all its checks has none."""


Placed = Callable[[Sequence[str | int]], Location | None]
"""Where the check with a path below `checks` is declared."""


def render_audits(found: Found, placed: Placed, *, color: bool = False) -> str:
    """Each violation under its dataset with the place of its check, then the counts."""
    if not found:
        return "No dataset has checks; `checks` in odfbuild.yaml declares them."
    lines = []
    for name, violations in found.items():
        if violations:
            lines.append(f"  {paint('!', 'magenta', on=color)} {name}")
            for each in violations:
                lines.append(f"      {'warning: ' if each.warn else ''}{each}")
                if place := placed(each.path):
                    lines.append(f"      {paint('-->', 'blue', on=color)} {place}")
    if lines:
        lines.append("")
    broken = sum(any(not each.warn for each in violations) for violations in found.values())
    kept = len(found) - broken
    closing = f"Test: {count(len(found), 'dataset')}, {kept} passed, {broken} failed."
    return "\n".join([*lines, closing])


def audits_to_data(found: Found, placed: Placed) -> dict[str, Any]:
    """The same as plain values."""
    return {
        "datasets": [
            {"name": name, "violations": [_violation(each, placed) for each in violations]}
            for name, violations in found.items()
        ]
    }


def _violation(violation: Violation, placed: Placed) -> dict[str, Any]:
    place = placed(violation.path)
    return {
        "check": str(violation.check),
        "severity": "warn" if violation.warn else "error",
        "count": violation.count,
        "example": violation.example or None,
        "file": place.file if place else None,
        "line": place.line if place else None,
        "column": place.column if place else None,
    }
