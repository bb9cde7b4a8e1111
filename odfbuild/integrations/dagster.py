"""Datasets as assets of Dagster: their graph, checks, groups, owners and freshness.

Materialising assets runs `odfbuild apply` on them; what it tells while it goes on becomes
materialisations, results of checks and, where a dataset had nothing new, observations.
"""

# Annotations stay values: Dagster looks at that of `context`.
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from odfbuild.errors import missing_extra
from odfbuild.integrations.command import PROGRAM, ApplyCommand, Event, is_end_of_dataset, reasons
from odfbuild.integrations.datasets import DatasetFacts, NamedCheck, datasets_of

if find_spec("dagster") is None:
    raise missing_extra("dagster", "assets of Dagster")

import dagster as dg

_OWNER = re.compile(r"[\w.+-]+@[\w-]+(\.[\w-]+)+")
_TEAM = re.compile(r"@[\w.-]+/([\w.-]+)")
_SHOWN = ("records", "records_read", "blocks", "bad_records", "seconds")


class OdfbuildResource(dg.ConfigurableResource):
    """A project: its folder, and the environment and branch that runs work in.

    `program` is how odfbuild is called, by default the one of this Python; `arguments` are further
    options of `apply`, such as `["--jobs", "4"]`.
    """

    project: str
    env: str | None = None
    branch: str | None = None
    program: list[str] = list(PROGRAM)
    arguments: list[str] = []

    def apply(self, select: Iterable[str] = (), exclude: Iterable[str] = ()) -> Iterator[Event]:
        """Apply datasets, by default all, and give the events as they happen."""
        command = ApplyCommand(
            project=self.project,
            env=self.env,
            branch=self.branch,
            select=tuple(select),
            exclude=tuple(exclude),
            program=tuple(self.program),
            arguments=tuple(self.arguments),
        )
        return command.start().events()


def odfbuild_assets(
    odfbuild: OdfbuildResource,
    *,
    select: Sequence[str] = (),
    exclude: Sequence[str] = (),
    name: str = "odfbuild",
    resource_key: str = "odfbuild",
) -> dg.AssetsDefinition:
    """The datasets of a project, or those selected, as assets that are materialised together.

    The resource under `resource_key` runs them. Raises `Errors` for wrong definitions.
    """
    facts = datasets_of(odfbuild.project, odfbuild.env, select, exclude)
    if not facts:
        raise dg.DagsterInvalidDefinitionError("no dataset of the project is selected")
    by_key = {asset_key(each.name): each for each in facts}

    @dg.multi_asset(
        name=name,
        specs=[_asset(each) for each in facts],
        check_specs=[_check(each, check) for each in facts for check in each.checks],
        can_subset=True,
        required_resource_keys={resource_key},
    )
    def datasets(context: dg.AssetExecutionContext) -> Iterator[Any]:
        chosen = [by_key[key] for key in by_key if key in context.selected_asset_keys]
        if not chosen:
            raise dg.Failure("checks run when their dataset is materialised: select it, too")
        events = getattr(context.resources, resource_key).apply(each.name for each in chosen)
        yield from _results(context, {each.name: each for each in chosen}, events)

    return datasets


def asset_key(name: str) -> dg.AssetKey:
    """The key of a dataset's asset: its name, split at dots."""
    return dg.AssetKey(re.split(r"[./]", name))


def _asset(facts: DatasetFacts) -> dg.AssetSpec:
    age = facts.max_age
    return dg.AssetSpec(
        asset_key(facts.name),
        deps=[asset_key(each) for each in facts.inputs],
        description=facts.description,
        group_name=facts.group,
        owners=_owners(facts.owners),
        kinds={"odf", facts.kind},
        metadata={"dataset": facts.name, "definition": facts.file},
        skippable=True,
        freshness_policy=dg.FreshnessPolicy.time_window(fail_window=age) if age else None,
    )


def _owners(owners: Iterable[str]) -> list[str]:
    """Those that Dagster knows a form of: addresses, and teams of `@org/team`."""
    found = []
    for each in owners:
        team = _TEAM.fullmatch(each)
        if team:
            found.append(f"team:{team[1]}")
        elif _OWNER.fullmatch(each):
            found.append(each)
    return found


def _check(facts: DatasetFacts, check: NamedCheck) -> dg.AssetCheckSpec:
    return dg.AssetCheckSpec(
        check.name,
        asset=asset_key(facts.name),
        description=check.check,
        blocking=not check.warn,
    )


def _results(
    context: dg.AssetExecutionContext, chosen: Mapping[str, DatasetFacts], events: Iterator[Event]
) -> Iterator[Any]:
    """What Dagster is told of a run; raises `Failure` at its end if it failed."""
    failures: list[str] = []
    open_ones = dict(chosen)
    for event in events:
        facts = chosen.get(event["dataset"] or "")
        if event["event"] == "run.end":
            failures += reasons(event)
            if event["exit_code"]:
                told = failures or [event["msg"]]
                raise dg.Failure("; ".join(told), metadata={"exit_code": event["exit_code"]})
        elif not is_end_of_dataset(event):
            context.log.info(_line(event))
        elif facts is None:
            context.log.info(_line(event))  # what came with the selection
        else:
            open_ones.pop(facts.name, None)
            context.log.info(_line(event))
            if event["status"] in ("failed", "lost"):
                failures.append(f"{facts.name}: {event['msg']}")
            yield from _of_dataset(context, facts, event)
    for each in open_ones.values():
        _observe(context, each, {"status": "up to date"})


def _of_dataset(
    context: dg.AssetExecutionContext, facts: DatasetFacts, event: Event
) -> Iterator[Any]:
    key, status = asset_key(facts.name), event["status"]
    shown = {each: event[each] for each in _SHOWN if each in event}
    if status == "committed":
        head = event.get("head")
        yield dg.MaterializeResult(
            key,
            metadata={**shown, **({"head": head} if head else {})},
            data_version=dg.DataVersion(head) if head else None,
        )
    elif status == "noop":
        _observe(context, facts, {"status": event["msg"]})
    known = {each.check: each for each in facts.checks}
    for result in event.get("check_results", ()):
        check = known.get(result["check"])
        if check is None:
            continue
        yield dg.AssetCheckResult(
            asset_key=key,
            check_name=check.name,
            passed=result["status"] == "passed",
            severity=dg.AssetCheckSeverity.WARN if check.warn else dg.AssetCheckSeverity.ERROR,
            description=result["found"],
        )


def _observe(
    context: dg.AssetExecutionContext, facts: DatasetFacts, metadata: Mapping[str, Any]
) -> None:
    """Say that a dataset was looked at and has nothing new."""
    context.log_event(dg.AssetObservation(asset_key(facts.name), metadata=metadata))


def _line(event: Event) -> str:
    return f"{event['dataset']}: {event['msg']}" if event["dataset"] else str(event["msg"])
