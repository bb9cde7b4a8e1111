"""`odfbuild test`."""

from __future__ import annotations

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.exit_codes import EXIT_MISMATCH
from odfbuild.cli.options import JsonOptions, SelectionOptions


def test(
    context: typer.Context,
    selection: SelectionOptions,
    as_json: JsonOptions,
) -> int:
    """Run the checks of odfbuild.yaml on all committed records.

    New records are checked by apply, before they are committed.
    """
    from odfbuild.apply.audit import Audits
    from odfbuild.engine.lazy import LazyEngine
    from odfbuild.report.findings.audits import audits_to_data, render_audits

    state: Context = context.obj
    workspace, config = state.workspace(), state.config()
    names = state.committed(workspace, selection)
    engine = LazyEngine(state.start_engine)
    audits = Audits(config.root, config.checks, workspace, engine.get)
    try:
        found = audits.committed(names)
    finally:
        engine.stop()
    if as_json:
        state.console.data(audits_to_data(found, audits.place))
    else:
        state.console.result(render_audits(found, audits.place, color=state.console.color))
    failed = any(not each.warn for violations in found.values() for each in violations)
    return EXIT_MISMATCH if failed else 0
