"""Findings of `odfbuild lint` as text and as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from odfbuild.project.lint.finding import Finding
from odfbuild.report.errors import render_place
from odfbuild.report.forms.visible import visible
from odfbuild.wording import count

_YELLOW, _RED, _GREEN, _BOLD, _OFF = "\x1b[33;1m", "\x1b[31;1m", "\x1b[32m", "\x1b[1m", "\x1b[0m"
_WORDS = {"warn": ("warning", _YELLOW), "error": ("error", _RED)}


def render_findings(findings: Sequence[Finding], others: int = 0, *, color: bool = False) -> str:
    """All findings as people read them, and how many there are with `others`: errors told apart."""
    parts = [_render(each, color) for each in findings]
    errors = sum(each.level == "error" for each in findings)
    warnings = len(findings) - errors
    parts.append(f"{count(errors + others, 'error')}, {count(warnings, 'warning')}.\n")
    return "\n".join(parts)


def findings_to_data(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """The same as plain data."""
    return [
        {
            "code": each.rule.code,
            "rule": each.rule.name,
            "level": each.level,
            "message": each.message,
            "dataset": each.dataset,
            "file": each.place.file,
            "line": each.place.line,
            "column": each.place.column,
            "instance": each.place.instance,
            "notes": list(each.notes),
            "help": each.help,
            "fixable": each.can_fix,
        }
        for each in findings
    ]


def _render(finding: Finding, color: bool) -> str:
    def paint(style: str, text: str) -> str:
        return f"{style}{visible(text)}{_OFF}" if color else visible(text)

    word, style = _WORDS[finding.level]
    rule = f"{finding.rule.code} {finding.rule.name}".rstrip()
    head = paint(style, f"{word}[{rule}]")
    lines = [f"{head}: {paint(_BOLD, finding.message)}", *render_place(finding.place, color)]
    lines += [f"  = note: {visible(note)}" for note in finding.notes]
    lines.append(f"{paint(_GREEN, 'help')}: {visible(finding.help)}")
    return "\n".join(lines) + "\n"
