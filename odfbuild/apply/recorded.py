"""Run one apply, for the command and the method, and write its run log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from odfbuild.apply.options import ApplyOptions
from odfbuild.apply.run_log import RunLog, Sink
from odfbuild.apply.telemetry import telemetry
from odfbuild.plan.document import plan_digest
from odfbuild.project.settings.checks import checks_of
from odfbuild.survey.promotion import check_finished
from odfbuild.survey.protection import record_protection

if TYPE_CHECKING:
    from odfbuild.survey.approved import Approved
    from odfbuild.survey.outcome import ApplyOutcome
    from odfbuild.survey.survey import Survey


def apply_recorded(
    found: Survey | Approved, options: ApplyOptions, sinks: Sequence[Sink] = ()
) -> ApplyOutcome:
    """Do what a plan says, with a log of the run in the cache; then protect what policies protect.

    `sinks` get the records of the log as they are written, and so does telemetry if it is on.
    """
    with telemetry() as observers:
        return _apply(found, options, (*sinks, *observers))


def _apply(found: Survey | Approved, options: ApplyOptions, sinks: Sequence[Sink]) -> ApplyOutcome:
    if found.workspace.branch is None:
        check_finished(found.workspace, found.plan.promotes)
    config, digest = found.project.config, plan_digest(found.plan)

    def head(name: str) -> str | None:
        state = found.workspace.projection(name)
        return str(state.head) if state else None

    def checks(name: str) -> list[str]:
        return [str(each.check) for each in checks_of(config.checks, name)]

    log = RunLog(config.cache, options.listener, sinks, head=head, checks=checks)
    log.ready(found.plan, digest)
    logged = replace(options, listener=log, factory=log.telling(options.factory))
    limit = found.plan.branch.limit if found.plan.branch else None
    workspace = found.workspace.under(limit)
    if found.plan.promotes is None:
        from odfbuild.apply.run import apply_plan

        outcome = apply_plan(found.plan, found.project, workspace, logged)
    else:
        from odfbuild.apply.promote import promote

        outcome = promote(found, logged)
    if any(each.allowed for each in found.plan.retention) and not options.cancel.is_set():
        from odfbuild.apply.withdraw import withdraw_due

        done = withdraw_due(found.plan, found.project, found.workspace, options.waiting)
        log.withdrawn(done)
        outcome = replace(outcome, withdrawn=done)
    if found.plan.tables or outcome.withdrawn:
        from odfbuild.apply.tables import publish_tables

        stopped = options.cancel.is_set
        tables = publish_tables(config, found.workspace, found.plan, outcome, stopped)
        log.published(tables)
        outcome = replace(outcome, tables=tables, interrupted=stopped())
    log.ended(found.plan, digest, outcome, workspace)
    record_protection(found.plan, config, workspace)
    return outcome
