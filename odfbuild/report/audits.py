"""What checks of committed records found. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from odfbuild.engine.audit import Violation
from odfbuild.report.words import count, paint

Found = Mapping[str, Sequence[Violation]]
"""Violations by dataset; a dataset that keeps to all its checks has none."""


def render_audits(found: Found, *, color: bool = False) -> str:
    """Each violation under its dataset, then the counts."""
    if not found:
        return "No dataset has checks; `checks` in odfbuild.yaml declares them."
    lines = []
    for name, violations in found.items():
        if violations:
            lines.append(f"  {paint('!', 'magenta', on=color)} {name}")
            lines += [f"      {'warning: ' if each.warn else ''}{each}" for each in violations]
    if lines:
        lines.append("")
    broken = sum(any(not each.warn for each in violations) for violations in found.values())
    kept = len(found) - broken
    closing = f"Test: {count(len(found), 'dataset')}, {kept} passed, {broken} failed."
    return "\n".join([*lines, closing])


def audits_to_data(found: Found) -> dict[str, Any]:
    """The same as plain values."""
    return {
        "datasets": [
            {"name": name, "violations": [_violation(each) for each in violations]}
            for name, violations in found.items()
        ]
    }


def _violation(violation: Violation) -> dict[str, Any]:
    return {
        "check": str(violation.check),
        "severity": "warn" if violation.warn else "error",
        "count": violation.count,
        "example": violation.example or None,
    }
