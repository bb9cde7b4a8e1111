"""`odfbuild plan`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.data_diff import (
    OF_RECORDS,
    LimitBytesOption,
    for_others,
    for_this_output,
    limit_of,
    of_plan,
    refuse_limit_bytes,
)
from odfbuild.cli.exit_codes import EXIT_CHANGES, exit_code_of
from odfbuild.cli.github import tell_errors, tell_plan
from odfbuild.cli.options import (
    AllowOption,
    DetailedExitcodeOption,
    DetailOption,
    LimitOptions,
    SelectionOptions,
    UncacheableOption,
    wishes_of,
)
from odfbuild.cli.plan_form import PlanForm, PlanFormOptions, show_plan
from odfbuild.cli.runner import is_github
from odfbuild.python_gc import paused_collector


@paused_collector()
def plan(
    context: typer.Context,
    selection: SelectionOptions,
    form: PlanFormOptions,
    limit: LimitOptions,
    *,
    fetch_uncacheable: UncacheableOption = False,
    allow: AllowOption = None,
    refresh: Annotated[
        bool,
        typer.Option(
            "--refresh",
            envvar="ODFBUILD_REFRESH",
            help="Also ask web servers whether the data changed that was read of them, and "
            "repositories for new blocks of external datasets; uses the network.",
        ),
    ] = False,
    data: Annotated[
        bool,
        typer.Option(
            "--data",
            help="Also show what changed queries, or the branch, do to records; starts Spark if "
            "it has to compute them.",
        ),
    ] = False,
    limit_bytes: LimitBytesOption = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", envvar="ODFBUILD_OUT", help="Save the plan to this file."
        ),
    ] = None,
    detail: DetailOption = False,
    detailed_exitcode: DetailedExitcodeOption = False,
) -> int:
    """Show what apply would do, and why.

    Starts no JVM unless --data is given, uses no network unless --refresh is, and changes nothing.
    """
    from odfbuild.plan.right_queries import MOST_NEW, new_of
    from odfbuild.survey.idle_patterns import idle_patterns

    if not data:
        refuse_limit_bytes(context, OF_RECORDS)
    state: Context = context.obj
    found = state.survey(wishes_of(selection, fetch_uncacheable, allow, limit, refresh))
    made = found.plan
    records = of_plan(state, found, limit_of(limit_bytes)) if data else None
    if out is None and form is PlanForm.text and not is_github() and records is None:
        from odfbuild.report.plan.text import render_plan

        state.console.result(render_plan(made, color=state.console.color, full=detail))
    else:
        from odfbuild.project.git.revision import revision
        from odfbuild.report.plan.json import plan_to_data, stamp

        saved = stamp(made, git=revision(found.project.config.root))
        config = found.project.config
        shown = None if records is None else for_others(records, config)
        show_plan(
            state.console,
            saved,
            form,
            full=detail,
            owners=config.owners,
            records=None if records is None else for_this_output(records, config),
            shown=shown,
        )
        if out is not None:
            from odfbuild.cli.output_file import write_json

            write_json(out, plan_to_data(saved))
            state.console.note(f"Saved as {saved.digest}. To do exactly this: odfbuild apply {out}")
        tell_plan(state.console, saved, out, config, shown)
    new = new_of(found.project.definitions, {name.lower() for name in found.projections})
    if new > MOST_NEW:
        what = f"The queries of {new:,} new datasets were not checked"
        state.console.note(f"{what}: `odfbuild validate` checks them all.")
    idle = list(idle_patterns(found.project, found.graph.order, found.projections, found.faults))
    state.console.error(*idle)
    tell_errors(state.console, idle, found.project.config.root)
    failed = records.errors if records is not None else ()
    state.console.error(*failed)
    if not made.applyable:
        return exit_code_of(made.refusals)
    if idle or failed:
        return 1
    return EXIT_CHANGES if detailed_exitcode and made.has_changes else 0
