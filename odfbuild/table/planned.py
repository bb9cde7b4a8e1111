"""What apply does with published tables: found without reading data or asking a place.

What a table holds was remembered on this machine when it was last published or looked at. Where it
was not, for example in a fresh clone, apply looks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from odfbuild.errors import InSettings, OdfbuildError, TableError, as_one
from odfbuild.plan.model import Action, DatasetPlan, Plan
from odfbuild.plan.tables import TablePlan, TableStep
from odfbuild.project.config import place_in_config
from odfbuild.project.tables.declared import Table, declared_tables, location_of
from odfbuild.store.disposable import read_disposable, write_disposable
from odfbuild.store.remote import scheme_of
from odfbuild.table.behind import behind, pin_of
from odfbuild.table.contract import TablePin
from odfbuild.table.rules import wrong_columns
from odfbuild.wording import count, did_you_mean

if TYPE_CHECKING:
    from odfbuild.odf.chain.projection import Projection
    from odfbuild.odf.multihash import Multihash
    from odfbuild.odf.timestamp import Timestamp
    from odfbuild.project.model import Config
    from odfbuild.store.workspace import Workspace
    from odfbuild.table.contract import TableState

_STAMP = b"odfbuild tables 1\n"
_MAY_ADD = frozenset({Action.CREATE, Action.REBUILD, Action.RUN, Action.POLL, Action.PROMOTE})


class Known(NamedTuple):
    """What is remembered of a table: where it is, its pin as text, and how many partitions."""

    address: str
    pin: str
    partitions: int | None


def known_tables(config: Config) -> dict[str, Known]:
    """What is remembered of tables, by name; nothing where it cannot be read."""
    found = read_disposable(config.cache / "tables.bin", _STAMP) or {}
    return {name: Known(*values) for name, values in found.items()}


def remember(config: Config, found: Mapping[str, tuple[Table, TableState | None]]) -> None:
    """Remember the states of tables; of `None` nothing."""
    kept = {name: tuple(each) for name, each in known_tables(config).items()}
    for name, (table, state) in found.items():
        kept.pop(name, None)
        if state is not None and state.pin is not None and state.changed_by is None:
            kept[name] = (table.address, state.pin.to_text(), state.partitions)
    write_disposable(config.cache / "tables.bin", _STAMP, kept, [])


class PublishedTable(NamedTuple):
    """A table, the block of its dataset that it holds, and when that was committed."""

    table: Table
    block: Multihash
    time: Timestamp


def published_tables(
    config: Config, workspace: Workspace, datasets: Iterable[str]
) -> Iterator[PublishedTable]:
    """The tables of these datasets that were published, as far as this machine knows."""
    known = known_tables(config)
    for table in declared_tables(config, datasets):
        found = known.get(table.name)
        pin = TablePin.from_text(found.pin) if found and found.address == table.address else None
        if pin is None:
            continue
        with suppress(OdfbuildError):  # the history was rewritten since
            block = workspace.dataset(table.dataset).read_block(pin.block)
            yield PublishedTable(table, pin.block, block.system_time)


def with_tables(
    plan: Plan,
    config: Config,
    workspace: Workspace,
    projections: Mapping[str, Projection],
    allowed: Collection[str] = (),
) -> Plan:
    """The plan with what apply does with tables of its datasets.

    `allowed` are names of tables that may be written anew although somebody else changed them.
    """
    going = {Action.DELETE, Action.FORGET}
    items = {each.name: each for each in plan.datasets if going.isdisjoint(each.actions)}
    names = [*items, *(each.name for each in plan.external)]
    tables = declared_tables(config, names)
    rewrites = tuple(_known_name(name, tables) for name in allowed)
    known = known_tables(config)
    refused = _same_names(config, tables)
    found = (
        _plan(
            config,
            workspace,
            table,
            items.get(table.dataset),
            projections.get(table.dataset),
            known.get(table.name),
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


def _same_names(config: Config, tables: Iterable[Table]) -> dict[Table, OdfbuildError]:
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
    to_come = item is not None and not _MAY_ADD.isdisjoint(item.actions)
    if state is None:
        return made(TableStep.FOLLOW, "once its dataset has columns") if to_come else None
    if allowed:
        return made(TableStep.REWRITE, "it was allowed", anew="it was allowed")
    if known is None or known.address != table.address:
        if scheme_of(table.location) is None and not Path(table.address).exists():
            return made(TableStep.CREATE, "it is new", anew="it is new")
        return made(TableStep.LOOK, "what it holds is not known on this machine")
    pin = TablePin.from_text(known.pin)
    assert pin is not None
    lacks = behind(pin, pin_of(table, state), state, workspace.dataset(table.dataset))
    if lacks is None:
        return made(TableStep.FOLLOW, "after its dataset") if to_come else None
    if lacks.anew is not None:
        return made(TableStep.REWRITE, lacks.anew, anew=lacks.anew, partitions=known.partitions)
    records = (state.last_offset or 0) - (pin.last_offset if pin.last_offset is not None else -1)
    partitions = None if table.partition_by else 1
    return made(TableStep.UPDATE, count(records, "record"), partitions=partitions)
