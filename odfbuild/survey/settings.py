"""Settings of odfbuild.yaml that name datasets or columns which there are not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from odfbuild.errors import CheckError, Location, OdfbuildError
from odfbuild.plan.columns.known import KnownColumns
from odfbuild.plan.queries.checks import in_text, wrong_checks
from odfbuild.project.config import place_in_config, place_in_text
from odfbuild.project.model import Config
from odfbuild.project.settings.checks import checks_of
from odfbuild.survey.definitions import Definitions
from odfbuild.survey.idle_patterns import idle_patterns


def wrong_settings(found: Definitions) -> list[OdfbuildError]:
    """Patterns that no dataset matches, and checks that certainly cannot be asked."""
    names = (*found.graph.order, *found.projections)
    return [*idle_patterns(found.project, names), *_wrong_checks(found)]


def _wrong_checks(found: Definitions) -> Iterator[OdfbuildError]:
    config = found.project.config
    if not config.checks:
        return
    known = KnownColumns(found.project.definitions, found.projections)
    names = {name.lower() for name in (*found.graph.order, *found.projections)}
    told: set[tuple[object, ...]] = set()
    for name in found.graph.order:
        for part, error in wrong_checks(name, checks_of(config.checks, name), known, names):
            # An entry may be about many datasets: the first one tells what is wrong.
            if (error.declared, part) not in told:
                told.add((error.declared, part))
                error.location = place_of_check(config, error)
                yield error


def place_of_check(config: Config, error: CheckError) -> Location:
    """Where in odfbuild.yaml the check stands that is wrong, or the wrong part of its query."""
    path = ("content", "checks", *error.declared[0])
    inside = in_text(error)
    if inside is not None:
        line, column, length = inside
        found = place_in_text(config.root, line, column, *path)
        if found is not None:
            return replace(found, length=length)
    return place_in_config(config.root, *path)
