"""What verification found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from odfbuild.report.words import count, paint


class Finding(Protocol):
    """Something stored that is not what was committed: where, and what is wrong."""

    @property
    def dataset(self) -> str | None:
        """Alias of the dataset."""
        ...

    @property
    def message(self) -> str:
        """One sentence that names the block or object."""
        ...


def render_findings(
    names: Sequence[str], findings: Sequence[Finding], *, color: bool = False
) -> str:
    """Each finding under its dataset, then how many datasets are whole."""
    lines: list[str] = []
    broken = _broken(findings)
    for name in broken:
        lines.append(f"  {paint('!', 'red', on=color)} {name}")
        lines += [f"      {f.message}" for f in findings if (f.dataset or "") == name]
    checked = count(len(names), "dataset")
    if not broken:
        return f"Verified {checked}: all blocks and objects are what was committed."
    return "\n".join([*lines, "", f"Verified {checked}: {len(broken)} damaged."])


def findings_to_data(names: Sequence[str], findings: Sequence[Finding]) -> dict[str, Any]:
    """The same as plain values."""
    return {
        "datasets": list(names),
        "damaged": _broken(findings),
        "findings": [{"dataset": f.dataset, "message": f.message} for f in findings],
    }


def _broken(findings: Sequence[Finding]) -> list[str]:
    return list(dict.fromkeys(finding.dataset or "" for finding in findings))
