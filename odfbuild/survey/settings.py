"""Settings of odfbuild.yaml that name datasets or columns which there are not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from odfbuild.errors import CheckError, InSettings, Location, OdfbuildError, PlanError
from odfbuild.plan.queries.checks import wrong_checks
from odfbuild.project.config import place_in_config, place_in_text
from odfbuild.project.model import Config
from odfbuild.project.settings.checks import checks_of
from odfbuild.survey.contracts import broken_contracts
from odfbuild.survey.definitions import Definitions
from odfbuild.survey.idle_patterns import idle_patterns
from odfbuild.survey.personal import wrong_personal


def wrong_settings(found: Definitions) -> list[OdfbuildError]:
    """Patterns that no dataset matches; checks, tables and personal columns that cannot be."""
    idle = idle_patterns(found.project, found.graph.order, found.projections, found.wrong)
    return [
        *idle,
        *_wrong_checks(found),
        *_wrong_tables(found),
        *_broken_contracts(found),
        *wrong_personal(found),
    ]


def _broken_contracts(found: Definitions) -> Iterator[OdfbuildError]:
    config = found.project.config
    told: set[object] = set()
    for _, error in broken_contracts(config, found.graph.order, found.projections, found.columns):
        # A file that cannot be read is so for each of its datasets.
        if isinstance(error, PlanError) or error.location not in told:
            told.add(error.location)
            yield error


def _wrong_tables(found: Definitions) -> Iterator[OdfbuildError]:
    """Tables with one name or place, and columns that they name and their datasets do not have."""
    config = found.project.config
    if not config.tables:
        return
    from odfbuild.exchange.tables.planned import located, same_names
    from odfbuild.exchange.tables.rules import wrong_ahead
    from odfbuild.project.tables import declared_tables

    tables = declared_tables(config, dict.fromkeys((*found.graph.order, *found.external())))
    twice = same_names(config, tables)
    yield from twice.values()
    known = found.columns()
    told: set[tuple[object, str]] = set()
    for table in (each for each in tables if each not in twice):
        for error in wrong_ahead(table, known, found.projections.get(table.dataset)):
            # An entry may be about many datasets: the first one tells what is wrong.
            if (error.location, error.code) not in told:
                told.add((error.location, error.code))
                yield located(config, error)


def _wrong_checks(found: Definitions) -> Iterator[OdfbuildError]:
    config = found.project.config
    if not config.checks:
        return
    known = found.columns()
    names: set[str] | None = None
    if found.all_are_known:
        names = {name.lower() for name in (*found.graph.order, *found.projections, *found.wrong)}
    told: set[tuple[object, ...]] = set()
    for name in found.graph.order:
        for part, error in wrong_checks(name, checks_of(config.checks, name), known, names):
            # An entry may be about many datasets: the first one tells what is wrong.
            declared = isinstance(error.location, InSettings) and error.location.path
            if (declared, part) not in told:
                told.add((declared, part))
                yield error.at(place_of_check(config, error))


def place_of_check(config: Config, error: CheckError) -> Location:
    """Where in odfbuild.yaml the check stands that is wrong, or the wrong part of its query."""
    declared = error.location
    assert isinstance(declared, InSettings), "checks are declared there"
    path = ("content", *declared.path)
    if declared.line is not None:
        found = place_in_text(config.root, declared.line, declared.column or 1, *path)
        if found is not None:
            return replace(found, length=declared.length)
    return place_in_config(config.root, *path)
