"""`odfbuild apply`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from odfbuild.cli.context import (
    Context,
    ExcludeOption,
    Format,
    FormatOption,
    JsonOption,
    SelectOption,
    SelectorOption,
    UncacheableOption,
    selection_of,
    start_engine,
)

if TYPE_CHECKING:
    from odfbuild.apply.outcome import ApplyOutcome
    from odfbuild.apply.survey import Survey


def apply(
    context: typer.Context,
    select: SelectOption = None,
    exclude: ExcludeOption = None,
    selector: SelectorOption = None,
    fetch_uncacheable: UncacheableOption = False,
    format: FormatOption = Format.text,
    as_json: JsonOption = False,
    auto_approve: Annotated[
        bool,
        typer.Option("--auto-approve", "-y", envvar="ODFBUILD_AUTO_APPROVE", help="Do not ask."),
    ] = False,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", "-j", min=1, envvar="ODFBUILD_JOBS", help="Datasets at once (default: cores)."
        ),
    ] = None,
) -> int:
    """Bring datasets to what their definitions say; run only what is stale.

    On a terminal the plan is shown first and has to be confirmed. Everything that is committed
    stays, whatever happens to the rest; running it again continues where it stopped.
    """
    state: Context = context.obj
    console = state.console
    found = state.survey(
        selection_of(select, exclude, selector), fetch_uncacheable=fetch_uncacheable
    )
    made = found.plan
    as_json = as_json or format is Format.json
    if not as_json:
        from odfbuild.report.plan_text import render_plan

        console.result(render_plan(made, color=console.color, full=False))
    todo = any(item.actions or item.refusal for item in made.datasets)
    ask = todo and made.has_changes and not auto_approve and console.interactive
    if ask and not console.confirm("Do this?"):
        console.note("Nothing was done.")
        return 1
    outcome = _carry_out(state, found, jobs) if todo else _nothing()
    if as_json:
        from odfbuild.report.listing import outcome_to_data

        console.data(outcome_to_data(outcome))
    elif outcome.datasets:
        from odfbuild.report.listing import render_outcome

        console.result(render_outcome(outcome, color=console.color))
    for dataset in outcome.datasets:
        if dataset.error is not None:
            console.error(dataset.error)
    return outcome.exit_code


def _nothing() -> ApplyOutcome:
    from odfbuild.apply.outcome import ApplyOutcome

    return ApplyOutcome(datasets=())


def _carry_out(state: Context, found: Survey, jobs: int | None) -> ApplyOutcome:
    import os

    from odfbuild.apply.run import ApplyOptions, apply_plan
    from odfbuild.cli.progress import listener_for
    from odfbuild.cli.signals import cancel_on_interrupt

    with cancel_on_interrupt(state.console) as cancel, listener_for(state.console) as listener:
        options = ApplyOptions(
            factory=start_engine,
            listener=listener,
            locate=found.locate,
            jobs=jobs or os.cpu_count() or 1,
            cancel=cancel,
        )
        return apply_plan(found.plan, found.project, found.workspace, options)
