"""Datasets as assets of Dagster: their graph, checks, groups, owners and freshness.

Materialising assets runs `odfbuild apply` on them; what it tells while it goes on becomes
materialisations, results of checks and, where a dataset had nothing new, observations.
"""

# Annotations stay values: Dagster looks at that of `context`.
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from importlib.util import find_spec
from typing import Any

from odfbuild.errors import missing_extra
from odfbuild.integrations.command import (
    PROGRAM,
    ApplyCommand,
    Event,
    failure,
    is_end_of_dataset,
    reasons,
)
from odfbuild.integrations.datasets import DatasetFacts, NamedCheck, datasets_of
from odfbuild.wording import count

if find_spec("dagster") is None:
    raise missing_extra("dagster", "assets of Dagster")

import dagster as dg

_OWNER = re.compile(r"[\w.+-]+@[\w-]+(\.[\w-]+)+")
_TEAM = re.compile(r"@[\w.-]+/([\w.-]+)")
_SHORTEST_WINDOW = timedelta(minutes=1)
"""Dagster refuses a freshness policy with less."""
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
        return self._command(select, exclude).start().events()

    def violations(self, select: Iterable[str]) -> dict[str, list[Event]]:
        """What all committed records of datasets violate, as `odfbuild test` tells it."""
        return self._command(select, ()).violations()

    def _command(self, select: Iterable[str], exclude: Iterable[str]) -> ApplyCommand:
        return ApplyCommand(
            project=self.project,
            env=self.env,
            branch=self.branch,
            select=tuple(select),
            exclude=tuple(exclude),
            program=tuple(self.program),
            arguments=tuple(self.arguments),
        )


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
        runner = getattr(context.resources, resource_key)
        chosen = [by_key[key] for key in by_key if key in context.selected_asset_keys]
        if chosen:
            events = runner.apply(each.name for each in chosen)
            yield from _results(context, {each.name: each for each in chosen}, events)
        else:
            keys = {each.asset_key for each in context.selected_asset_check_keys}
            asked = [by_key[key] for key in by_key if key in keys]
            yield from _tested(context, asked, runner.violations(each.name for each in asked))

    return datasets


def asset_key(name: str) -> dg.AssetKey:
    """The key of a dataset's asset: its name, split at dots."""
    return dg.AssetKey(re.split(r"[./]", name))


def _asset(facts: DatasetFacts) -> dg.AssetSpec:
    age = facts.max_age and max(facts.max_age, _SHORTEST_WINDOW)
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
            failures += filter(None, [failure(event)])
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
    results = {each["check"]: each for each in event.get("check_results", ())}
    for check in facts.checks:
        if check.check in results:
            result = results[check.check]
            passed = result["status"] == "passed"
            yield from _check_result(context, facts, check, passed, result["found"])


def _tested(
    context: dg.AssetExecutionContext,
    asked: Iterable[DatasetFacts],
    violations: Mapping[str, Sequence[Event]],
) -> Iterator[Any]:
    """What checks find that run alone: they are about all committed records."""
    for facts in asked:
        broken = {each["check"]: each for each in violations.get(facts.name, ())}
        for check in facts.checks:
            found = broken.get(check.check)
            text = None if found is None else count(found["count"], "record")
            if found is not None and found["example"]:
                text = f"{text}, such as {found['example']}"
            yield from _check_result(context, facts, check, found is None, text)


def _check_result(
    context: dg.AssetExecutionContext,
    facts: DatasetFacts,
    check: NamedCheck,
    passed: bool,
    found: str | None,
) -> Iterator[Any]:
    """The result of a check, unless it is left out of this run."""
    key = asset_key(facts.name)
    if dg.AssetCheckKey(key, check.name) in context.selected_asset_check_keys:
        yield dg.AssetCheckResult(
            asset_key=key,
            check_name=check.name,
            passed=passed,
            severity=dg.AssetCheckSeverity.WARN if check.warn else dg.AssetCheckSeverity.ERROR,
            description=found,
        )


def _observe(
    context: dg.AssetExecutionContext, facts: DatasetFacts, metadata: Mapping[str, Any]
) -> None:
    """Say that a dataset was looked at and has nothing new."""
    context.log_event(dg.AssetObservation(asset_key(facts.name), metadata=metadata))


def _line(event: Event) -> str:
    return f"{event['dataset']}: {event['msg']}" if event["dataset"] else str(event["msg"])
