"""What is wrong with `personal` of odfbuild.yaml, with places in that file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from odfbuild.errors import InSettings, OdfbuildError, PersonalDataError
from odfbuild.odf.chain.projection import Projection
from odfbuild.plan.columns.known import KnownColumns
from odfbuild.plan.columns.lineages import Lineages
from odfbuild.plan.queries.personal import idle_columns, wrong_columns
from odfbuild.project.config import place_in_config
from odfbuild.project.model import Config, Project
from odfbuild.survey.definitions import Definitions


def personal_faults(
    project: Project,
    projections: Mapping[str, Projection],
    faults: Mapping[str, OdfbuildError],
    lineages: Lineages,
) -> dict[str, OdfbuildError]:
    """What is wrong with personal columns of datasets, by name; the first of several errors."""
    if not project.config.personal:
        return {}
    known = KnownColumns(project.definitions, projections, faults)
    wrong = {name.lower() for name in faults}
    found: dict[str, OdfbuildError] = {}
    for definition, error in _each(project, known, lineages):
        if definition.lower() not in wrong:
            found.setdefault(definition, error)
    return found


def wrong_personal(found: Definitions) -> Iterator[OdfbuildError]:
    """All that is wrong, dataset by dataset, and columns that no dataset has."""
    project = found.project
    if not project.config.personal:
        return
    known = found.columns()
    for _, error in _each(project, known, Lineages()):
        yield error
    if found.all_are_known and not found.wrong:
        names = dict.fromkeys((*found.graph.order, *found.projections))
        yield from _placed(
            project.config, idle_columns(project.config.personal, tuple(names), known)
        )


def _each(
    project: Project, known: KnownColumns, lineages: Lineages
) -> Iterator[tuple[str, PersonalDataError]]:
    config = project.config
    for definition in project.definitions:
        errors = wrong_columns(definition, config.personal, known, lineages, config.engines)
        for error in _placed(config, errors):
            yield definition.name, error


def _placed(config: Config, errors: Iterable[PersonalDataError]) -> Iterator[PersonalDataError]:
    for error in errors:
        place = error.location
        assert isinstance(place, InSettings), "personal columns are declared there"
        yield error.at(place_in_config(config.root, "content", *place.path))
