"""Settings of odfbuild.yaml that name datasets or columns which there are not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from odfbuild.engine.checks import AcceptedValues, Asked, NotNull, Relationship, Unique
from odfbuild.errors import CheckError, OdfbuildError, ProjectError
from odfbuild.plan.columns.known import KnownColumns
from odfbuild.plan.columns.of_query import Columns
from odfbuild.project.config import place_in_config
from odfbuild.project.settings.checks import checks_of
from odfbuild.survey.definitions import Definitions
from odfbuild.wording import did_you_mean

_BY_NAME = ("checks", "policies", "freshness", "owners")
"""The lists whose entries are about the datasets that their `match` names."""


def wrong_settings(found: Definitions) -> list[OdfbuildError]:
    """Patterns that no dataset matches, and checks of columns that are certainly not there."""
    return [*_idle_patterns(found), *_wrong_checks(found)]


def _idle_patterns(found: Definitions) -> Iterator[OdfbuildError]:
    from fnmatch import fnmatchcase

    config = found.project.config
    names = {name.lower(): name for name in (*found.graph.order, *found.projections)}
    for key in _BY_NAME:
        for number, entry in enumerate(getattr(config, key)):
            for index, pattern in enumerate(entry.match):
                if not any(fnmatchcase(name, pattern) for name in names):
                    path = ("content", key, number, "match", index)
                    yield ProjectError(
                        f"no dataset is called '{pattern}', so this entry of `{key}` does nothing",
                        code="E0151",
                        location=place_in_config(config.root, *path),
                        help=did_you_mean(
                            pattern, names.values(), "correct the pattern, or remove it"
                        ),
                    )


def _wrong_checks(found: Definitions) -> Iterator[OdfbuildError]:
    config = found.project.config
    if not config.checks:
        return
    known = KnownColumns(found.project.definitions, found.projections)
    told: set[tuple[object, ...]] = set()
    for name in found.graph.order:
        for asked in checks_of(config.checks, name):
            for dataset, column, columns in _missing(name, asked, known):
                # An entry may be about many datasets: the first one tells what is wrong.
                if (asked.path, column) in told:
                    continue
                told.add((asked.path, column))
                names = [each.name for each in columns]
                yield CheckError(
                    f"'{dataset}' has no column '{column}', which a check asks for",
                    code="E0541",
                    dataset=name,
                    notes=(f"check: {asked.check}",),
                    location=place_in_config(config.root, "content", "checks", *asked.path),
                    help=did_you_mean(column, names, f"it has: {', '.join(names)}"),
                )


def _missing(dataset: str, asked: Asked, known: KnownColumns) -> Iterator[tuple[str, str, Columns]]:
    """Datasets, columns that a check asks for and they do not have, and the columns they have."""
    check = asked.check
    wanted: list[tuple[str, Sequence[str]]] = []
    if isinstance(check, Unique):
        wanted.append((dataset, check.columns))
    elif isinstance(check, NotNull | AcceptedValues | Relationship):
        wanted.append((dataset, [check.column]))
    if isinstance(check, Relationship):
        wanted.append((check.to, [check.field]))
    for name, columns in wanted:
        relation = known.relation(name)
        if relation is not None:
            there = {each.name for each in relation}
            yield from ((name, each, relation) for each in columns if each not in there)
