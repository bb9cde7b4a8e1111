"""`odfbuild test`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.exit_codes import EXIT_MISMATCH
from odfbuild.cli.options import SelectionOptions
from odfbuild.cli.plan_form import ReportForm, ReportFormOptions

if TYPE_CHECKING:
    from odfbuild.plan.graph.selection import Selection


def test(
    state: Context,
    selection: SelectionOptions,
    form: ReportFormOptions,
    *,
    unit: Annotated[
        bool,
        typer.Option(
            "--unit", help="Run the unit tests of queries instead, on the records given in them."
        ),
    ] = False,
) -> int:
    """Run the checks of odfbuild.yaml on all committed records.

    New records are checked by apply, before they are committed. With --unit, run the queries on
    records that files `NAME.test.yaml` give, and compare the results; reads no committed records.
    """
    if unit:
        return _unit_tests(state, selection, form)
    return _checks(state, selection, form)


def _checks(state: Context, selection: Selection, form: ReportForm) -> int:
    from odfbuild.apply.audit import Audits
    from odfbuild.engine.lazy import LazyEngine
    from odfbuild.report.findings.audits import (
        audits_markdown,
        audits_to_data,
        render_audits,
    )

    workspace, config = state.workspace(), state.config()
    names = state.committed(workspace, selection)
    with LazyEngine(state.start_engine) as engine:
        audits = Audits(config.root, config.checks, workspace, engine.get)
        found = audits.committed(names)
    if form is ReportForm.json:
        state.console.data(audits_to_data(found, audits.place))
    elif form is ReportForm.md:
        state.console.result(audits_markdown(found, audits.place))
    else:
        state.console.result(render_audits(found, audits.place, color=state.console.color))
    failed = any(not each.warn for violations in found.values() for each in violations)
    return EXIT_MISMATCH if failed else 0


def _unit_tests(state: Context, selection: Selection, form: ReportForm) -> int:
    from odfbuild.apply.unit_tests.run import unit_test
    from odfbuild.engine.lazy import LazyEngine
    from odfbuild.report.findings.unit_tests import (
        render_unit_tests,
        unit_tests_markdown,
        unit_tests_to_data,
    )

    with LazyEngine(state.start_engine) as engine:
        outcomes = unit_test(state.directory, state.given, state.defined(selection), engine.get)
    if form is ReportForm.json:
        state.console.data(unit_tests_to_data(outcomes))
    elif form is ReportForm.md:
        state.console.result(unit_tests_markdown(outcomes))
    else:
        state.console.result(render_unit_tests(outcomes, color=state.console.color))
    return 0 if all(each.passed for each in outcomes) else EXIT_MISMATCH
