"""`odfbuild apply`."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.github import tell_outcome
from odfbuild.cli.options import (
    AllowOption,
    ExcludeOption,
    Format,
    FormatOption,
    JsonOption,
    SelectOption,
    SelectorOption,
    UncacheableOption,
    selection_of,
    wishes_of,
)

if TYPE_CHECKING:
    from odfbuild.cli.console import Console
    from odfbuild.graph.selection import Selection
    from odfbuild.plan.saved import SavedPlan
    from odfbuild.plan.subset import Subset
    from odfbuild.project.model import Config
    from odfbuild.survey.approved import Approved
    from odfbuild.survey.outcome import ApplyOutcome
    from odfbuild.survey.survey import PlanRequest, Survey


class LogFormat(StrEnum):
    """Form of progress on standard error."""

    text = "text"
    json = "json"


def apply(
    context: typer.Context,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[PLAN]", help="What `plan -o` saved (default: plan now)."),
    ] = None,
    select: SelectOption = None,
    exclude: ExcludeOption = None,
    selector: SelectorOption = None,
    fetch_uncacheable: UncacheableOption = False,
    allow: AllowOption = None,
    digest: Annotated[
        str | None,
        typer.Option(
            "--digest",
            metavar="DIGEST",
            envvar="ODFBUILD_DIGEST",
            help="Refuse any plan but the one with this digest.",
        ),
    ] = None,
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
    keep_going: Annotated[
        bool,
        typer.Option(
            "--keep-going/--fail-fast",
            "-k",
            envvar="ODFBUILD_KEEP_GOING",
            help="After a failure do what does not depend on it, or begin nothing more.",
        ),
    ] = True,
    lock_timeout: Annotated[
        float,
        typer.Option(
            "--lock-timeout",
            min=0,
            metavar="SECONDS",
            envvar="ODFBUILD_LOCK_TIMEOUT",
            help="Wait so long for datasets that another process works on.",
        ),
    ] = 0.0,
    log_format: Annotated[
        LogFormat,
        typer.Option("--log-format", envvar="ODFBUILD_LOG_FORMAT", help="Form of the progress."),
    ] = LogFormat.text,
) -> int:
    """Bring datasets to what their definitions say; run only what is stale.

    On a terminal the plan is shown first and has to be confirmed. Everything that is committed
    stays, whatever happens to the rest; running it again continues where it stopped.
    """
    state: Context = context.obj
    console = state.console
    selection = selection_of(select, exclude, selector)
    if file is None:
        plan_request = wishes_of(selection, fetch_uncacheable, allow)
        found: Survey | Approved = _planned(state, plan_request, digest)
    elif fetch_uncacheable or allow:
        hint = "--fetch-uncacheable" if fetch_uncacheable else "--allow"
        raise typer.BadParameter("give it to `odfbuild plan -o` instead", param_hint=hint)
    else:
        found = _saved(state, file, selection, digest)
    made = found.plan
    as_json = as_json or format is Format.json
    if not as_json:
        from odfbuild.report.plan.text import render_plan

        console.result(render_plan(made, color=console.color, full=False))
    todo = any(item.actions or item.refusal for item in made.datasets)
    if todo:
        from odfbuild.extras import require_engine

        require_engine("`odfbuild apply`")
    ask = todo and made.has_changes and not auto_approve and console.interactive
    if ask and not console.confirm("Do this?"):
        console.note("Nothing was done.")
        return 1
    outcome = (
        _carry_out(state, found, jobs, log_format, lock_timeout, fail_fast=not keep_going)
        if todo
        else _nothing(found)
    )
    if as_json:
        from odfbuild.report.outcome import outcome_to_data

        console.data(outcome_to_data(outcome))
    elif outcome.datasets:
        from odfbuild.report.outcome import render_outcome

        console.result(render_outcome(outcome, color=console.color))
    console.error(*outcome.errors)
    tell_outcome(console, outcome, found.project.config.root)
    return outcome.exit_code


def _planned(state: Context, plan_request: PlanRequest, digest: str | None) -> Survey:
    """The plan of now, if it is the one that was approved."""
    found = state.survey(plan_request)
    if digest is not None:
        from odfbuild.plan.document import plan_digest
        from odfbuild.survey.approved import check_digest

        check_digest(plan_digest(found.plan), digest)
    return found


def _saved(state: Context, file: Path, selection: Selection, digest: str | None) -> Approved:
    """A saved plan, or the part of it that is selected."""
    from dataclasses import replace

    from odfbuild.survey.approved import approve, check_digest, load_plan, take_part

    saved = load_plan(file)
    if digest is not None:
        check_digest(saved.digest, digest)
    config = _config_of(state, saved)
    if selection:
        part = take_part(saved, selection, config)
        _tell(state.console, part)
        saved = replace(saved, plan=part.plan)
    return approve(saved, config)


def _config_of(state: Context, saved: SavedPlan) -> Config:
    """The configuration of the environment that a plan was made for."""
    from dataclasses import replace

    from odfbuild.errors import PlanError

    asked, planned = state.given.env, saved.plan.env
    if asked is not None and asked != planned:
        raise PlanError(
            f"this plan is for {_called(planned)}, and not for {_called(asked)}",
            code="E0365",
            help="leave --env out, or make a plan for that environment",
        )
    return replace(state, given=replace(state.given, env=planned)).config()


def _called(env: str | None) -> str:
    return "no environment" if env is None else f"the environment '{env}'"


def _tell(console: Console, part: Subset) -> None:
    if part.added:
        console.note(f"Also applied, because others read it: {', '.join(part.added)}.")
    if part.left:
        console.note(f"Left for later: {', '.join(part.left)}.")


def _nothing(found: Survey | Approved) -> ApplyOutcome:
    """Policies can have changed even so."""
    from odfbuild.survey.outcome import ApplyOutcome
    from odfbuild.survey.protection import record_protection

    record_protection(found.plan, found.project.config, found.workspace)
    return ApplyOutcome(datasets=())


def _carry_out(
    state: Context,
    found: Survey | Approved,
    jobs: int | None,
    log_format: LogFormat,
    lock_timeout: float,
    *,
    fail_fast: bool,
) -> ApplyOutcome:
    import os

    from odfbuild.apply.recorded import apply_recorded
    from odfbuild.apply.run import ApplyOptions
    from odfbuild.cli.progress import listener_for
    from odfbuild.cli.signals import cancel_on_interrupt
    from odfbuild.engine.release import engine_version

    console = state.console
    as_json = log_format is LogFormat.json
    with (
        cancel_on_interrupt(console) as cancel,
        listener_for(console, silent=as_json, cache=found.project.config.cache) as listener,
    ):
        options = ApplyOptions(
            factory=partial(state.start_engine, found.plan.waiting_bytes),
            engine_version=engine_version(),
            listener=listener,
            locate=found.locate,
            jobs=jobs or os.cpu_count() or 1,
            cancel=cancel,
            fail_fast=fail_fast,
            lock_timeout=lock_timeout,
        )
        outcome = apply_recorded(found, options, (console.log,) if as_json else ())
    moved = [dataset.name for dataset in outcome.datasets if dataset.blocks]
    if moved:
        from odfbuild.cli.git import note_heads

        note_heads(state, moved)
    return outcome
