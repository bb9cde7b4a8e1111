"""Output of commands for GitHub Actions."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.cli.runner import is_github

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from odfbuild.cli.console import Console
    from odfbuild.errors import OdfbuildError
    from odfbuild.inspect.data_diff.model import Comparison
    from odfbuild.plan.saved import SavedPlan
    from odfbuild.project.lint.finding import Finding
    from odfbuild.project.model import Config
    from odfbuild.survey.outcome import ApplyOutcome


def root_of_project(arguments: Sequence[str]) -> Path | None:
    """The project that a command line is about; `None`: there is none."""
    from odfbuild.errors import OdfbuildError
    from odfbuild.project.config import find_root

    given = [Path(value) for key, value in pairwise(arguments) if key in ("-C", "--directory")]
    try:
        return find_root(given[0] if given else None)
    except OdfbuildError:
        return None


def tell_plan(
    console: Console,
    saved: SavedPlan,
    file: Path | None,
    config: Config,
    records: Comparison | None = None,
) -> None:
    """The plan as summary of the step; `changes`, `plan_digest` and `plan_file` as outputs.

    With `records`, what may be shown of what it does to them.
    """
    if not is_github():
        return
    from odfbuild.report.github import SUMMARY_BUDGET
    from odfbuild.report.plan.markdown import render_markdown

    text = render_markdown(saved, owners=config.owners, records=records, budget=SUMMARY_BUDGET)
    _append("GITHUB_STEP_SUMMARY", text)
    _output(
        {
            "changes": "true" if saved.plan.has_changes else "false",
            "plan_digest": saved.digest,
            "plan_file": str(file.resolve()) if file is not None else "",
        }
    )
    refusals = [each.refusal for each in saved.plan.datasets if each.refusal is not None]
    tell_errors(console, refusals, config.root)


def tell_outcome(console: Console, outcome: ApplyOutcome, root: Path) -> None:
    """How an apply ended as summary of the step, and its errors at their places."""
    if not is_github():
        return
    from odfbuild.report.forms.markdown import in_text_block
    from odfbuild.report.outcome import render_outcome

    said = render_outcome(outcome)
    if outcome.published:
        from odfbuild.report.transfers import render_published

        said += f"\n{render_published(outcome)}"
    _append("GITHUB_STEP_SUMMARY", in_text_block(said))
    tell_errors(console, outcome.errors, root)


def tell_errors(console: Console, errors: Sequence[OdfbuildError], root: Path | None) -> None:
    """Mark the places of errors in the files of the pull request."""
    if not is_github() or not errors:
        return
    from odfbuild.report.github import error_commands

    for line in error_commands(errors, _prefix(root)):
        console.command(line)


def tell_findings(console: Console, findings: Sequence[Finding], root: Path) -> None:
    """Mark the places of what `odfbuild lint` found."""
    if not is_github():
        return
    from odfbuild.report.github import finding_commands

    for line in finding_commands(findings, _prefix(root)):
        console.command(line)


def _prefix(root: Path | None) -> str:
    from odfbuild.report.github import prefix_of

    checkout = os.environ.get("GITHUB_WORKSPACE")
    return prefix_of(root, Path(checkout)) if root is not None and checkout else ""


def _output(values: Mapping[str, str]) -> None:
    from odfbuild.report.github import outputs

    _append("GITHUB_OUTPUT", outputs(values))


def _append(variable: str, text: str) -> None:
    """Add to the file that a variable of the environment names, if it does."""
    name = os.environ.get(variable)
    if name:
        with Path(name).open("a", encoding="utf-8") as file:
            file.write(text if text.endswith("\n") else text + "\n")
