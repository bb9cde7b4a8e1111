"""Which datasets of a project do not keep to their data contracts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from odfbuild.errors import OdfbuildError, as_one
from odfbuild.odf.chain.projection import Projection
from odfbuild.project.model import Config, Project

if TYPE_CHECKING:
    from odfbuild.plan.columns.known import KnownColumns


def broken_contracts(
    config: Config,
    names: Iterable[str],
    projections: Mapping[str, Projection],
    columns: Callable[[], KnownColumns],
) -> Iterator[tuple[str, OdfbuildError]]:
    """Each breach with its dataset; a file that is no contract is one of all its datasets.

    `columns` are those of definitions; asked for only where there are contracts.
    """
    if not config.contracts:
        return
    from odfbuild.plan.contract import breaches
    from odfbuild.project.odcs.contract import contracts_of
    from odfbuild.project.settings.checks import checks_of
    from odfbuild.project.settings.freshness import max_age

    known = columns()
    for name in names:
        asked, age = checks_of(config.checks, name), max_age(config.freshness, name)
        try:
            for contract in contracts_of(config, name):
                for error in breaches(name, contract, known, projections.get(name), asked, age):
                    yield name, error
        except OdfbuildError as error:
            yield name, error


def refused_by_contracts(
    project: Project,
    names: Iterable[str],
    projections: Mapping[str, Projection],
    faults: Mapping[str, OdfbuildError],
) -> dict[str, OdfbuildError]:
    """Why a plan refuses datasets that break their contracts, by name; of `faults` none are known.

    Each has one error, which tells the others in its notes.
    """

    def columns() -> KnownColumns:
        from odfbuild.plan.columns.known import KnownColumns

        return KnownColumns(project.definitions, projections, faults)

    found: dict[str, list[OdfbuildError]] = {}
    for name, error in broken_contracts(project.config, names, projections, columns):
        found.setdefault(name, []).append(error)
    return {name: as_one(errors, name) for name, errors in found.items()}
