"""What schedulers show of a project's datasets, read from its definitions. Knows no scheduler."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path, PurePath

from odfbuild.api import Project
from odfbuild.odf.model import SetInfo
from odfbuild.plan.graph.selection import Selection
from odfbuild.project.model import Definition
from odfbuild.project.overrides import Overrides
from odfbuild.project.settings.checks import checks_of
from odfbuild.project.settings.freshness import max_age
from odfbuild.project.settings.owners import owners_of
from odfbuild.records.checks import Asked
from odfbuild.values import Value

_NO_NAME = re.compile(r"\W+", re.ASCII)


class NamedCheck(Value):
    """A check, as events call it and as a scheduler calls it; `warn`: it stops nothing."""

    check: str
    name: str
    warn: bool


class DatasetFacts(Value, kw_only=True):
    """A dataset, its inputs, and the datasets that its checks refer to.

    `group` is the folder of its definition below the one of all definitions.
    """

    name: str
    kind: str
    inputs: tuple[str, ...]
    checked_against: tuple[str, ...]
    file: str
    group: str
    description: str | None
    owners: tuple[str, ...]
    checks: tuple[NamedCheck, ...]
    max_age: timedelta | None


def datasets_of(
    folder: str, env: str | None, select: Sequence[str], exclude: Sequence[str]
) -> list[DatasetFacts]:
    """The defined datasets of a project, or those selected, inputs first.

    Raises `Errors` with all that is wrong with definitions.
    """
    project = Project(folder, env=env)
    config, graph = project.config(), project.graph()
    chosen = frozenset(graph.order)
    if select or exclude:
        from odfbuild.survey.survey import choose

        selection = Selection(select=tuple(select), exclude=tuple(exclude))
        chosen, _ = choose(Path(folder), selection, Overrides(env=env))
    found = []
    for name in graph.order:
        definition: Definition | None = graph.dag.nodes[name]["definition"]
        if name not in chosen or definition is None:
            continue
        found.append(
            DatasetFacts(
                name=name,
                kind=definition.snapshot.kind.name.lower(),
                inputs=graph.inputs[name],
                checked_against=graph.checks.get(name, ()),
                file=definition.file,
                group=_group(definition.file),
                description=_description(definition),
                owners=owners_of(config.owners, name),
                checks=_named(checks_of(config.checks, name)),
                max_age=max_age(config.freshness, name),
            )
        )
    return found


def _named(asked: Sequence[Asked]) -> tuple[NamedCheck, ...]:
    """The checks, each with a name of letters, digits and `_` that no other one of them has."""
    found: dict[str, NamedCheck] = {}
    for each in asked:
        check, warn = str(each.check), each.warn
        plain = name = _NO_NAME.sub("_", check).strip("_")
        number = 2
        while name in found and found[name].check != check:
            name, number = f"{plain}_{number}", number + 1
        found.setdefault(name, NamedCheck(check, name, warn))
    return tuple(found.values())


def _group(file: str) -> str:
    """The folder of a definition without the one of all definitions, or `datasets`."""
    return _NO_NAME.sub("_", "_".join(PurePath(file).parent.parts[1:])) or "datasets"


def _description(definition: Definition) -> str | None:
    events = definition.snapshot.metadata
    return next((each.description for each in events if isinstance(each, SetInfo)), None)
