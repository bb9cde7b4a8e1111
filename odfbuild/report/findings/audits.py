"""What checks of committed records found. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from odfbuild.errors import Location
from odfbuild.records.audit import Violation
from odfbuild.report.forms.markdown import code, escaped
from odfbuild.report.forms.words import paint
from odfbuild.wording import count

Found = Mapping[str, Sequence[Violation]]
"""Violations by dataset; a dataset that keeps to all its checks has none."""


NO_CHECKS = "No dataset has checks; `checks` in odfbuild.yaml declares them."

Placed = Callable[[Sequence[str | int]], Location | None]
"""Where the check with a path below `checks` is declared."""


def render_audits(found: Found, placed: Placed, *, color: bool = False) -> str:
    """Each violation under its dataset with the place of its check, then the counts."""
    if not found:
        return NO_CHECKS
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
    return "\n".join([*lines, _closing(found)])


def _closing(found: Found) -> str:
    broken = sum(any(not each.warn for each in violations) for violations in found.values())
    return f"Test: {count(len(found), 'dataset')}, {len(found) - broken} passed, {broken} failed."


def audits_markdown(found: Found, placed: Placed) -> str:
    """The same for a comment, which shows no record."""
    if not found:
        return NO_CHECKS
    rows = [
        f"| {code(name)} | {_severity(each)} | {escaped(str(each.check))} | {each.count:,} "
        f"| {escaped(str(placed(each.path) or ''))} |"
        for name, violations in found.items()
        for each in violations
    ]
    header = [
        "| dataset | severity | check | records | declared at |",
        "| --- | --- | --- | ---: | --- |",
    ]
    return "\n".join([f"**{_closing(found)}**", *(["", *header, *rows] if rows else [])])


def audits_to_data(found: Found, placed: Placed) -> dict[str, Any]:
    """The same as plain values."""
    return {
        "datasets": [
            {"name": name, "violations": [_violation(each, placed) for each in violations]}
            for name, violations in found.items()
        ]
    }


def _severity(violation: Violation) -> str:
    return "warn" if violation.warn else "error"


def _violation(violation: Violation, placed: Placed) -> dict[str, Any]:
    place = placed(violation.path)
    return {
        "check": str(violation.check),
        "severity": _severity(violation),
        "count": violation.count,
        "example": violation.example or None,
        "file": place.file if place else None,
        "line": place.line if place else None,
        "column": place.column if place else None,
    }
