"""What apply does with published tables: found without reading data or asking a place.

What a table holds was remembered on this machine when it was last published or looked at. Where it
was not, for example in a fresh clone, apply looks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from odfbuild.errors import InSettings, OdfbuildError, TableError, as_one
from odfbuild.exchange.tables.behind import behind, pin_of
from odfbuild.exchange.tables.faults import NOT_THERE
from odfbuild.exchange.tables.remembered import Known, is_gone, known_of
from odfbuild.exchange.tables.rules import wrong_ahead, wrong_columns
from odfbuild.plan.model import Action, DatasetPlan, Plan
from odfbuild.plan.right_queries import MOST_NEW
from odfbuild.plan.tables import TablePlan, TableStep
from odfbuild.project.config import place_in_config
from odfbuild.project.tables import Table, declared_tables, location_of
from odfbuild.wording import count, did_you_mean

if TYPE_CHECKING:
    from odfbuild.odf.chain.projection import Projection
    from odfbuild.plan.columns.known import KnownColumns
    from odfbuild.project.model import Config
    from odfbuild.store.workspace import Workspace

_MAY_ADD = frozenset({Action.CREATE, Action.REBUILD, Action.RUN, Action.POLL, Action.PROMOTE})


def with_tables(
    plan: Plan,
    config: Config,
    workspace: Workspace,
    projections: Mapping[str, Projection],
    allowed: Collection[str] = (),
    known_columns: Callable[[], KnownColumns] | None = None,
) -> Plan:
    """The plan with what apply does with tables of its datasets.

    `allowed` are names of tables that may be written anew although somebody else changed them.
    `known_columns` tells the columns of datasets that have none yet, unless there are very many.
    """
    going = {Action.DELETE, Action.FORGET}
    items = {each.name: each for each in plan.datasets if going.isdisjoint(each.actions)}
    names = [*items, *(each.name for each in plan.external)]
    tables = declared_tables(config, names)
    rewrites = tuple(_known_name(name, tables) for name in allowed)
    refused = same_names(config, tables)
    refused |= _wrong_ahead(config, tables, items, projections, known_columns)
    found = (
        _plan(
            config,
            workspace,
            table,
            items.get(table.dataset),
            projections.get(table.dataset),
            known_of(config, table),
            refused.get(table),
            table.name in rewrites,
        )
        for table in tables
    )
    return replace(plan, tables=tuple(each for each in found if each), rewrites=rewrites)


def _known_name(name: str, tables: Iterable[Table]) -> str:
    names = {each.name.lower(): each.name for each in tables}
    if name.lower() not in names:
        raise no_such_table(name, list(names.values()))
    return names[name.lower()]


def no_such_table(name: str, names: list[str]) -> TableError:
    """The error for a name that no table of the project has."""
    return TableError(
        f"there is no table '{name}'",
        code="E1311",
        help=did_you_mean(name, names, "`odfbuild table ls` lists the tables of the project"),
    )


def _wrong_ahead(
    config: Config,
    tables: Iterable[Table],
    items: Mapping[str, DatasetPlan],
    projections: Mapping[str, Projection],
    known_columns: Callable[[], KnownColumns] | None,
) -> dict[Table, OdfbuildError]:
    """What is wrong with tables of datasets that are to get their first records."""
    new = [
        each
        for each in tables
        if ((state := projections.get(each.dataset)) is None or state.schema is None)
        and _may_add(items.get(each.dataset))
    ]
    if known_columns is None or not new or len(new) > MOST_NEW:
        return {}
    known = known_columns()
    found = {each: wrong_ahead(each, known, projections.get(each.dataset)) for each in new}
    return {
        table: as_one([located(config, each) for each in wrong], table.dataset)
        for table, wrong in found.items()
        if wrong
    }


def _may_add(item: DatasetPlan | None) -> bool:
    return item is not None and not _MAY_ADD.isdisjoint(item.actions)


def same_names(config: Config, tables: Iterable[Table]) -> dict[Table, OdfbuildError]:
    """The tables that are called as one before, and those that would lie where one before does."""
    first: dict[str, Table] = {}
    found: dict[Table, OdfbuildError] = {}
    for each in tables:
        before = first.setdefault(each.name.lower(), each)
        if before is not each:
            found[each] = TableError(
                f"two tables are called '{each.name}': one of '{before.dataset}', and one of "
                f"'{each.dataset}'",
                code="E1312",
                location=place_in_config(config.root, "content", *each.says("match")),
                dataset=each.dataset,
                help='give one of the entries a `name`, such as "{dataset}-2"',
            )
    return found


def located(config: Config, error: OdfbuildError) -> OdfbuildError:
    """An error about a setting, with its place in odfbuild.yaml."""
    place = error.location
    if not isinstance(place, InSettings):
        return error
    return error.at(place_in_config(config.root, "content", *place.path))


def _plan(
    config: Config,
    workspace: Workspace,
    table: Table,
    item: DatasetPlan | None,
    state: Projection | None,
    known: Known | None,
    refused: OdfbuildError | None,
    allowed: bool,
) -> TablePlan | None:
    """What apply does with a table; `None`: nothing."""

    def made(step: TableStep, because: str, **more: Any) -> TablePlan:
        return TablePlan(
            name=table.name,
            dataset=table.dataset,
            format=table.format,
            location=location_of(config, config.tables[table.entry]),
            step=step,
            because=because,
            **more,
        )

    if state is not None and state.schema is None:
        state = None  # there is nothing to publish yet
    if refused is None and state is not None:
        wrong = [located(config, each) for each in wrong_columns(table, state)]
        refused = as_one(wrong, table.dataset) if wrong else None
    if refused is not None:
        return made(TableStep.REFUSE, refused.message, refusal=refused)
    to_come = _may_add(item)
    if state is None:
        return made(TableStep.FOLLOW, "once its dataset has columns") if to_come else None
    if allowed:
        return made(TableStep.REWRITE, "it was allowed", anew="it was allowed")
    if known is None:
        if is_gone(table):
            return made(TableStep.CREATE, "it is new", anew="it is new")
        return made(TableStep.LOOK, "what it holds is not known on this machine")
    if is_gone(table):
        return made(TableStep.CREATE, NOT_THERE, anew=NOT_THERE)
    store = workspace.dataset(table.dataset)
    lacks = behind(known.pin, pin_of(table, state, store), state, store)
    if lacks is None:
        return made(TableStep.FOLLOW, "after its dataset") if to_come else None
    if lacks.anew is not None:
        return made(TableStep.REWRITE, lacks.anew, anew=lacks.anew, partitions=known.partitions)
    last = known.pin.last_offset
    records = (state.last_offset or 0) - (-1 if last is None else last)
    partitions = None if table.partition_by else 1
    return made(TableStep.UPDATE, count(records, "record"), partitions=partitions)
