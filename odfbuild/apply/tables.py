"""Publish tables after the commits of an apply, as `tables` in odfbuild.yaml says.

Commits stay, whatever happens here, and the fault of one table never stops another one; the next
apply publishes what was left.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from odfbuild.errors import OdfbuildError, as_one
from odfbuild.exchange.tables.planned import located
from odfbuild.exchange.tables.remembered import remember
from odfbuild.ingest.secrets import scrub, scrub_error
from odfbuild.ingest.unexpected_errors import unforeseen
from odfbuild.plan.tables import TablePlan, TableStep
from odfbuild.project.tables import Table, declared_tables
from odfbuild.survey.outcome import ApplyOutcome, Status, TableOutcome

if TYPE_CHECKING:
    from odfbuild.plan.model import Plan
    from odfbuild.project.model import Config
    from odfbuild.store.workspace import Workspace


def publish_tables(
    config: Config,
    workspace: Workspace,
    plan: Plan,
    outcome: ApplyOutcome,
    stopped: Callable[[], bool],
) -> tuple[TableOutcome, ...]:
    """What became of the tables of a plan, of which `outcome` tells the datasets.

    None begins once it is `stopped`. A table that only follows its dataset is left out where that
    has nothing new. Those of datasets whose old records were withdrawn are written as a whole.
    """
    withdrawn = {each.dataset for each in outcome.withdrawn if each.error is None}
    moved = {each.name for each in outcome.datasets if each.blocks}
    steps = [
        each for each in plan.tables if each.step is not TableStep.FOLLOW or each.dataset in moved
    ]
    datasets = dict.fromkeys([*(each.dataset for each in steps), *withdrawn])
    # Of tables with the same name the first one keeps it; the other one's step is refused.
    tables = {each.name: each for each in reversed(declared_tables(config, datasets))}
    planned = {each.name for each in steps}
    also = [
        each for name, each in tables.items() if each.dataset in withdrawn and name not in planned
    ]
    found = []
    todo: list[TablePlan | Table] = [*steps, *also]
    for step in todo:
        if stopped():
            break
        allowed = step.name in plan.rewrites
        why = "somebody else changed it, and that is allowed" if allowed else None
        if isinstance(step, TablePlan) and step.refusal is not None:
            found.append(_failed(step.name, step.dataset, step.refusal))
        else:
            found.append(publish_table(config, workspace, tables[step.name], anew=why))
    return tuple(found)


def publish_table(
    config: Config, workspace: Workspace, table: Table, *, anew: str | None = None
) -> TableOutcome:
    """Bring one table up to date, or write it `anew` for that reason; never raises."""
    from odfbuild.exchange.tables.publish import publish

    began = time.monotonic()
    try:
        done = publish(config, workspace, table, anew=anew)
    except OdfbuildError as error:
        placed = [scrub_error(located(config, each)) for each in error.apart()]
        return _failed(table.name, table.dataset, as_one(placed, table.dataset))
    except Exception as error:  # a defect of ours must not take the other tables down
        defect = unforeseen(error, config.cache, f"publishing the table '{table.name}'", table.name)
        return _failed(table.name, table.dataset, defect)
    remember(config, table, done.state)
    return TableOutcome(
        name=table.name,
        dataset=table.dataset,
        status=Status.COMMITTED if done.written else Status.NOOP,
        because=f"all of it, because {done.anew}" if done.anew else "",
        partitions=done.partitions,
        records=done.records,
        seconds=time.monotonic() - began,
    )


def _failed(name: str, dataset: str, error: OdfbuildError) -> TableOutcome:
    """A table that is as it was."""
    status = Status.LOST if error.exit_code == 5 else Status.FAILED
    because = scrub(error.message)
    return TableOutcome(name=name, dataset=dataset, status=status, because=because, error=error)
