"""`odfbuild lint`."""

from __future__ import annotations

from typing import Annotated

import typer

from odfbuild.cli import github
from odfbuild.cli.context import Context
from odfbuild.cli.options import JsonOptions, SelectionOptions


def lint(
    state: Context,
    selection: SelectionOptions,
    *,
    fix: Annotated[
        bool, typer.Option("--fix", help="Fix what can be fixed without changing any data.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 for warnings, too.")
    ] = False,
    as_json: JsonOptions,
) -> int:
    """Lint definitions: find valid ones that may cause problems.

    `lint` in odfbuild.yaml sets the level of each rule.
    """
    from odfbuild.api.authoring import linting
    from odfbuild.report.errors import with_errors
    from odfbuild.report.findings.lint import findings_to_data, render_findings
    from odfbuild.survey.definitions import look_at_definitions

    chosen = state.chosen(selection)
    found = look_at_definitions(state.directory, state.given)
    linted = linting.lint(found, chosen)
    findings = linted.findings
    if fix:
        for file in linting.fix(found, findings):
            state.console.note(f"Fixed {file}")
        findings = [each for each in findings if not each.can_fix]
    github.tell_findings(state.console, findings, found.project.config.root)
    if as_json:
        names = [each.name for each in found.project.definitions]
        looked_at = [name for name in names if chosen is None or name in chosen]
        told = {"datasets": looked_at, "findings": findings_to_data(findings)}
        state.console.data(with_errors(told, linted.faults))
    elif findings:
        others = len(linted.faults)
        state.console.result(render_findings(findings, others, color=state.console.color))
    elif not linted.faults:
        state.console.result("No issues found.")
    state.console.error(*linted.faults)
    failed = any(strict or each.level == "error" for each in findings)
    return 1 if linted.faults or failed else 0
