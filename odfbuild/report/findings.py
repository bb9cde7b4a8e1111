"""What verification found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from odfbuild.report.words import count, paint

if TYPE_CHECKING:
    from odfbuild.verify.integrity import Finding


def render_findings(
    names: Sequence[str], findings: Sequence[Finding], *, color: bool = False
) -> str:
    """Each finding under its dataset with the way out, then how many datasets are whole."""
    checked = count(len(names), "dataset")
    broken = _broken(findings)
    if not broken:
        return f"Verified {checked}: all blocks and objects are what was committed."
    lines: list[str] = []
    for name in broken:
        lines.append(f"  {paint('!', 'red', on=color)} {name}")
        for finding in findings:
            if finding.dataset == name:
                lines += [f"      {line}" for line in _finding(finding)]
    return "\n".join([*lines, "", f"Verified {checked}: {len(broken)} damaged."])


def _finding(finding: Finding) -> list[str]:
    lines = [f"error[{finding.code}]: {finding.message}"]
    if finding.block is not None:
        number = "" if finding.sequence_number is None else f" #{finding.sequence_number}"
        lines.append(f"  block{number} {finding.block}")
    if finding.path is not None:
        lines.append(f"  file {finding.path}")
    return [*lines, f"  help: {finding.help}"]


def findings_to_data(names: Sequence[str], findings: Sequence[Finding]) -> dict[str, Any]:
    """The same as plain values."""
    return {
        "datasets": list(names),
        "damaged": _broken(findings),
        "findings": [
            {
                "dataset": finding.dataset,
                "code": finding.code,
                "message": finding.message,
                "help": finding.help,
                "block": str(finding.block) if finding.block else None,
                "sequence_number": finding.sequence_number,
                "path": str(finding.path) if finding.path else None,
            }
            for finding in findings
        ],
    }


def _broken(findings: Sequence[Finding]) -> list[str]:
    return list(dict.fromkeys(finding.dataset for finding in findings))
