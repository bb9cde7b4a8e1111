"""`odfbuild promote`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from odfbuild.cli import complete
from odfbuild.cli.context import Context
from odfbuild.cli.exit_codes import EXIT_CHANGES, exit_code_of
from odfbuild.cli.option_groups import Together
from odfbuild.cli.options import (
    SELECTING,
    ApproveOption,
    BranchArgument,
    DetailedExitcodeOption,
    DetailOption,
    JobsOption,
    LockTimeoutOption,
    PublishOption,
    selection_of,
    wishes_of,
)
from odfbuild.cli.plan_form import PlanForm, PlanFormOptions, show_plan
from odfbuild.store.lock_holders import LOCK_TIMEOUT

if TYPE_CHECKING:
    from odfbuild.plan.graph.selection import Selection
    from odfbuild.survey.approved import Approved

_Selected = Annotated[
    "Selection",
    Together(SELECTING, lambda *options: selection_of(None, *options)),
]


def promote(
    state: Context,
    branch: BranchArgument,
    selection: _Selected,
    form: PlanFormOptions,
    *,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            "--allow",
            metavar="rebuild|forward:NAME",
            autocompletion=complete.consents("rebuild", "forward"),
            envvar="ODFBUILD_ALLOW",
            help="Replace the history of this dataset by the one that was rebuilt in the branch, "
            "or do nothing about its records that only onQueryChange asks for; "
            "rebuild:NAME+ includes all downstream datasets.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show the plan of the promotion.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            envvar="ODFBUILD_OUT",
            help="Only save the plan to this file, for `odfbuild apply FILE`.",
        ),
    ] = None,
    detail: DetailOption = False,
    detailed_exitcode: DetailedExitcodeOption = False,
    auto_approve: ApproveOption = False,
    jobs: JobsOption = None,
    lock_timeout: LockTimeoutOption = LOCK_TIMEOUT,
    publish: PublishOption = True,
) -> int:
    """Move the heads to what a branch has.

    Where a head did not move since the branch left it, nothing is computed. Where it moved, the
    changes of the branch are replayed on top of it. On a terminal the plan is shown first and has
    to be confirmed. Afterwards the branch is gone: all of it is on the head.
    """
    from odfbuild.cli.apply import carry_out, tell_part
    from odfbuild.survey.promotion import survey_promotion

    console = state.console
    asked = wishes_of(selection, allow=allow)
    if any((asked.corrections, asked.deletions, asked.rewrites, asked.reads, asked.withdrawals)):
        raise typer.BadParameter(
            "a promotion takes `rebuild:NAME` and `forward:NAME` only", param_hint="--allow"
        )
    planning = dry_run or detailed_exitcode or out is not None
    if not planning and form in (PlanForm.md, PlanForm.html):
        raise typer.BadParameter("add --dry-run: this is a form of the plan", param_hint="--format")
    found, part = survey_promotion(
        state.config(), branch, asked.selection, asked.rebuilds, asked.forward
    )
    if part is not None:
        tell_part(console, part)
    if planning or not found.plan.applyable:
        return _show(state, found, form, out, detail, detailed_exitcode=detailed_exitcode)
    return carry_out(
        state,
        found,
        jobs=jobs,
        logs=False,
        lock_timeout=lock_timeout,
        auto_approve=auto_approve,
        as_json=form is PlanForm.json,
        fail_fast=True,
        publish=publish,
    )


def _show(
    state: Context,
    found: Approved,
    form: PlanForm,
    out: Path | None,
    detail: bool,
    *,
    detailed_exitcode: bool,
) -> int:
    """Show the plan, and save it; the exit code of `plan`."""
    from odfbuild.cli.github import tell_plan
    from odfbuild.project.git.revision import revision
    from odfbuild.report.plan.json import plan_to_data, stamp

    console, config = state.console, found.project.config
    saved = stamp(found.plan, git=revision(config.root))
    show_plan(console, saved, form, full=detail, owners=config.owners)
    if out is not None:
        from odfbuild.cli.output_file import write_json

        write_json(out, plan_to_data(saved))
        console.note(f"Saved as {saved.digest}. To do exactly this: odfbuild apply {out}")
    tell_plan(console, saved, out, config)
    if not found.plan.applyable:
        return exit_code_of(found.plan.refusals)
    return EXIT_CHANGES if detailed_exitcode and found.plan.has_changes else 0
