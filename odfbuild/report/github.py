"""What GitHub Actions shows beside the log: annotations, a summary of the step, outputs. Pure.

Source: "Workflow commands for GitHub Actions" in GitHub's documentation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from odfbuild.errors import Location, OdfbuildError

if TYPE_CHECKING:
    from odfbuild.project.lint.finding import Finding

ANNOTATIONS = 10
"""GitHub shows at most so many annotations of one kind in one step."""
SUMMARY_BUDGET = 900_000
"""Characters of a summary; a step may write 1 MiB."""


def error_commands(errors: Sequence[OdfbuildError], prefix: str = "") -> list[str]:
    """Workflow commands that mark the places of errors, `prefix` (`project/`) before each file.

    The last one says how many more there are, when there are too many.
    """
    marks = [
        _annotation("error", each.location, each.code, prefix, each.message, *each.notes, each.help)
        for error in errors
        for each in error.apart()
    ]
    return _bounded(marks, "error")


def finding_commands(findings: Sequence[Finding], prefix: str = "") -> list[str]:
    """As `error_commands`, of what `odfbuild lint` found."""
    lines = []
    for kind, level in (("error", "error"), ("warning", "warn")):
        marks = [
            _annotation(
                kind, each.place, each.rule.code, prefix, each.message, *each.notes, each.help
            )
            for each in findings
            if each.level == level
        ]
        lines += _bounded(marks, kind)
    return lines


def _bounded(marks: list[str], kind: str) -> list[str]:
    if len(marks) <= ANNOTATIONS:
        return marks
    shown = marks[: ANNOTATIONS - 1]
    return [*shown, f"::{kind}::{len(marks) - len(shown)} more {kind}s: see the log"]


def _annotation(
    kind: str, found: Location | None, code: str, prefix: str, *lines: str | None
) -> str:
    place = found or Location("")
    known = {
        "file": f"{prefix}{place.file}" if place.file else None,
        "line": place.line,
        "col": place.column,
        "title": code,
    }
    properties = ",".join(
        f"{key}={_escaped(str(value), ':,')}" for key, value in known.items() if value is not None
    )
    text = "\n".join(filter(None, lines))
    return f"::{kind} {properties}::{_escaped(text)}"


def _escaped(text: str, more: str = "") -> str:
    for sign in ("%", "\r", "\n", *more):
        text = text.replace(sign, f"%{ord(sign):02X}")
    return text


def outputs(values: Mapping[str, str]) -> str:
    """Text to append to the file of outputs. No value can pass for another output."""
    lines = []
    for name, value in values.items():
        end = f"end-{uuid4()}"
        lines += [f"{name}<<{end}", value, end]
    return "\n".join(lines) + "\n"


def prefix_of(root: Path, workspace: Path) -> str:
    """What to put before a path relative to `root` so that it is relative to the checkout."""
    root, workspace = root.resolve(), workspace.resolve()
    if not root.is_relative_to(workspace) or root == workspace:
        return ""
    return root.relative_to(workspace).as_posix() + "/"
