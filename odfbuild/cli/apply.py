"""`odfbuild apply`."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.github import tell_outcome
from odfbuild.cli.json_lines import OPTION, JsonLines, end_without_run
from odfbuild.cli.options import (
    AllowOption,
    ApproveOption,
    JobsOption,
    JsonOptions,
    LimitOptions,
    LockTimeoutOption,
    PlanOrSelection,
    PublishOption,
    UncacheableOption,
    approved,
    waiting,
    wishes_of,
)
from odfbuild.store.lock_holders import LOCK_TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odfbuild.apply.run_log import Sink
    from odfbuild.cli.console import Console
    from odfbuild.plan.graph.selection import Selection
    from odfbuild.plan.model import Plan
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
    state: Context,
    of: PlanOrSelection,
    limit: LimitOptions,
    *,
    fetch_uncacheable: UncacheableOption = False,
    allow: AllowOption = None,
    digest: Annotated[
        str | None,
        typer.Option(
            "--digest",
            metavar="DIGEST",
            envvar="ODFBUILD_DIGEST",
            help="Apply only if the plan has this digest.",
        ),
    ] = None,
    as_json: JsonOptions,
    json_lines: Annotated[
        bool,
        typer.Option(
            OPTION,
            help="Print events as they happen: one JSON object on each line.",
        ),
    ] = False,
    auto_approve: ApproveOption = False,
    jobs: JobsOption = None,
    keep_going: Annotated[
        bool,
        typer.Option(
            "--keep-going/--fail-fast",
            "-k",
            envvar="ODFBUILD_KEEP_GOING",
            help="After a failure, continue with independent datasets, or stop.",
        ),
    ] = True,
    lock_timeout: LockTimeoutOption = LOCK_TIMEOUT,
    log_format: Annotated[
        LogFormat,
        typer.Option(
            "--log-format", envvar="ODFBUILD_LOG_FORMAT", help="Format of progress messages."
        ),
    ] = LogFormat.text,
    publish: PublishOption = True,
) -> int:
    """Apply a plan: run and commit only what is out of date.

    On a terminal the plan is shown first and has to be confirmed. Everything that is committed
    stays, whatever happens to the rest; running it again continues where it stopped.
    """
    file, selection = of
    if json_lines and as_json:
        raise typer.BadParameter("it excludes --json", param_hint=OPTION)
    if file is None:
        plan_request = wishes_of(selection, fetch_uncacheable, allow, limit)
        found: Survey | Approved = _planned(state, plan_request, digest)
    elif fetch_uncacheable or allow or limit:
        limits = "--sample" if limit and limit.sample else "--since"
        hint = "--fetch-uncacheable" if fetch_uncacheable else "--allow" if allow else limits
        raise typer.BadParameter("give it to `odfbuild plan -o` instead", param_hint=hint)
    else:
        found = _saved(state, file, selection, digest)
    return carry_out(
        state,
        found,
        jobs=jobs,
        logs=log_format is LogFormat.json,
        lock_timeout=lock_timeout,
        auto_approve=auto_approve,
        as_json=as_json,
        fail_fast=not keep_going,
        publish=publish,
        lines=JsonLines() if json_lines else None,
    )


def carry_out(
    state: Context,
    found: Survey | Approved,
    *,
    jobs: int | None,
    logs: bool,
    lock_timeout: float,
    auto_approve: bool,
    as_json: bool,
    fail_fast: bool,
    publish: bool,
    lines: JsonLines | None = None,
) -> int:
    """Show a plan, ask, do it, and show what became of it; the exit code."""
    console, made = state.console, found.plan
    as_json = as_json or lines is not None
    todo = any(item.actions or item.refusal or item.promoted for item in made.datasets)
    if not _confirmed(console, made, auto_approve, todo=todo, as_json=as_json):
        if lines is not None:
            end_without_run(None, 1, "not approved")
        return 1
    if found.plan.branch is not None and found.project.config.tables:
        console.note("A branch publishes no tables.")
    sinks: list[Sink] = [console.log] if logs else []
    sinks += [lines] if lines is not None else []
    if todo or made.tables or any(each.allowed for each in made.retention):
        outcome = _apply(state, found, jobs, sinks, lock_timeout, as_json, fail_fast=fail_fast)
    else:
        outcome = _nothing(found)
        if lines is not None:
            lines.nothing_to_do(made)
    if not as_json:
        _tell_beside(console, outcome)
    if publish and made.publications:
        outcome = _published(console, found, outcome, as_json=as_json)
    if lines is not None:
        lines.ended(outcome)
    elif as_json:
        from odfbuild.report.transfers import apply_to_data

        console.data(apply_to_data(outcome))
    elif outcome.datasets:
        from odfbuild.report.outcome import closing_lines

        console.result(f"\n{closing_lines(outcome)}")
    console.error(*outcome.errors)
    _tell_others(console, found.project.config, outcome)
    _tell_deleted(console, made, outcome)
    tell_outcome(console, outcome, found.project.config.root)
    return outcome.exit_code


def _tell_beside(console: Console, outcome: ApplyOutcome) -> None:
    """Show what became of old records and of tables."""
    if outcome.withdrawn or outcome.tables:
        from odfbuild.report.outcome import render_tables, render_withdrawn

        told = (render_withdrawn(outcome), render_tables(outcome.tables, color=console.color))
        for each in filter(None, told):
            console.result(each)


def _published(
    console: Console, found: Survey | Approved, outcome: ApplyOutcome, *, as_json: bool
) -> ApplyOutcome:
    """Push what was committed, and show what became of it."""
    from odfbuild.apply.publish import publish
    from odfbuild.cli.transfers import watching
    from odfbuild.report.transfers import render_published

    with watching(console) as watcher:
        outcome = publish(found, outcome, watcher)
    if outcome.published and not as_json:
        console.result(render_published(outcome, color=console.color))
    return outcome


def _confirmed(
    console: Console, plan: Plan, auto_approve: bool, *, todo: bool, as_json: bool
) -> bool:
    """Show the plan and ask, on a terminal; what takes history away needs a yes anywhere."""
    from odfbuild.extras import require_engine
    from odfbuild.plan.model import drops_history, takes_engine
    from odfbuild.report.plan.text import render_plan

    dropped = [each.name for each in plan.datasets if drops_history(each)]
    withdrawn = [each.dataset for each in plan.retention if each.happens]
    ask = not auto_approve and (
        bool(dropped or withdrawn) or (plan.has_changes and console.interactive)
    )
    if not as_json:
        console.result(render_plan(plan, color=console.color, full=False))
    elif ask:
        console.note(render_plan(plan, full=False))
    if todo and (plan.promotes is None or any(map(takes_engine, plan.datasets))):
        require_engine("`odfbuild apply`")
    what = "replaces the history of" if plan.promotes else "deletes or rebuilds"
    told = [f"{what} {', '.join(dropped)}"] if dropped or not withdrawn else []
    told += [f"withdraws records of {', '.join(withdrawn)}"] if withdrawn else []
    refusal = f"nothing was applied: the plan {' and '.join(told)}"
    return not ask or approved(console, auto_approve, "Do this?", refusal)


def _tell_others(console: Console, config: Config, outcome: ApplyOutcome) -> None:
    """Send alerts, if the machine names anybody for them; a failure to do so is only told."""
    if not config.notify:
        return
    from odfbuild.api.alerting import tell_of_run

    console.error(*tell_of_run(config, outcome))


def _tell_deleted(console: Console, plan: Plan, outcome: ApplyOutcome) -> None:
    from odfbuild.plan.model import Action
    from odfbuild.survey.outcome import Status

    committed = {each.name for each in outcome.having(Status.COMMITTED)}
    for each in plan.datasets:
        if Action.DELETE in each.actions and each.name in committed:
            console.note(
                f"To restore it: odfbuild reset {each.name} --to {each.expected_head} "
                "(before `odfbuild gc`)"
            )


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
    from odfbuild.survey.approved import approve, check_digest, load_plan, take_part

    saved = load_plan(file)
    if digest is not None:
        check_digest(saved.digest, digest)
    config = _config_of(state, saved)
    if selection:
        part = take_part(saved, selection, config)
        tell_part(state.console, part)
        saved = replace(saved, plan=part.plan)
    return approve(saved, config)


def _config_of(state: Context, saved: SavedPlan) -> Config:
    """The configuration of the environment and branch that a plan was made for."""
    from odfbuild.errors import PlanError
    from odfbuild.survey.approved import check_branch

    asked, planned = state.given.env, saved.plan.env
    if asked is not None and asked != planned:
        raise PlanError(
            f"this plan is for {_called(planned)}, and not for {_called(asked)}",
            code="E0365",
            help="leave --env out, or make a plan for that environment",
        )
    branch = saved.plan.branch.name if saved.plan.branch else None
    if state.given.branch is not None:
        check_branch(saved.plan, state.given.branch)
    return replace(state, given=replace(state.given, env=planned, branch=branch)).config()


def _called(env: str | None) -> str:
    return "no environment" if env is None else f"the environment '{env}'"


def tell_part(console: Console, part: Subset) -> None:
    """Say what a selection brought along, and what it left."""
    if part.added:
        console.note(f"Also applied, as inputs of selected datasets: {', '.join(part.added)}.")
    if part.left:
        console.note(f"Not applied: {', '.join(part.left)}.")


def _nothing(found: Survey | Approved) -> ApplyOutcome:
    """Policies can have changed even so."""
    from odfbuild.survey.outcome import ApplyOutcome
    from odfbuild.survey.protection import record_protection

    record_protection(found.plan, found.project.config, found.workspace)
    return ApplyOutcome(datasets=())


def _apply(
    state: Context,
    found: Survey | Approved,
    jobs: int | None,
    sinks: Sequence[Sink],
    lock_timeout: float,
    as_json: bool,
    *,
    fail_fast: bool,
) -> ApplyOutcome:
    """Apply; `sinks` get the events. Where stderr is one, there are no other messages on it."""
    logs = state.console.log in sinks
    told = not logs and state.tell_of_engine(found.plan)  # before all that takes time to import
    import os

    from odfbuild.apply.options import ApplyOptions, to_do
    from odfbuild.apply.recorded import apply_recorded
    from odfbuild.cli.progress import listener_for
    from odfbuild.cli.signals import cancel_on_interrupt
    from odfbuild.engine.release import engine_version

    state = replace(state, console=replace(state.console, verbosity=-1)) if logs else state
    console = state.console
    from odfbuild.plan.model import takes_engine

    cache, names = found.project.config.cache, list(to_do(found.plan))
    with (
        listener_for(console, names, cache=cache, as_json=as_json) as listener,
        cancel_on_interrupt(console, listener.abort) as cancel,
    ):
        options = ApplyOptions(
            factory=partial(
                state.start_engine,
                found.plan.waiting_bytes,
                told=told,
                needed=any(map(takes_engine, found.plan.datasets)),
            ),
            engine_version=engine_version(),
            listener=listener,
            locate=found.locate,
            jobs=jobs or os.cpu_count() or 1,
            cancel=cancel,
            fail_fast=fail_fast,
            waiting=waiting(console, lock_timeout, cancel.is_set),
        )
        outcome = apply_recorded(found, options, sinks)
    moved = [dataset.name for dataset in outcome.datasets if dataset.blocks]
    if moved and found.plan.branch is None:
        from odfbuild.cli.git import note_heads

        note_heads(state, moved)
    return outcome
