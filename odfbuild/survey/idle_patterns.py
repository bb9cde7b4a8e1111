"""Entries of odfbuild.yaml that do nothing: no dataset, or no column, has the name they match."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from odfbuild.errors import Location, OdfbuildError, ProjectError
from odfbuild.odf.chain.projection import Projection
from odfbuild.project.model import Project
from odfbuild.project.settings.by_name import last_matching, matching
from odfbuild.project.settings.showing import ShownColumns
from odfbuild.wording import did_you_mean

if TYPE_CHECKING:
    from odfbuild.plan.columns.known import KnownColumns

_BY_NAME = (
    *("checks", "policies", "freshness", "owners", "show", "publish", "tables", "watermarks"),
    *("descriptions", "contracts", "personal"),
)
"""The lists whose entries are about the datasets that their `match` names."""


def idle_patterns(
    project: Project,
    order: Iterable[str],
    projections: Mapping[str, Projection],
    wrong: Collection[str],
) -> Iterator[OdfbuildError]:
    """Patterns that match no dataset that is defined, well or wrongly (`wrong`), or has a chain.

    Also those of columns that none of the datasets has which their entry is about.
    """
    if not any(getattr(project.config, key) for key in _BY_NAME):
        return
    if any(each.name is None for each in project.wrong):
        return  # nobody knows what that file defines
    names = {name.lower(): name for name in (*order, *projections, *wrong)}
    for key in _BY_NAME:
        for number, entry in enumerate(getattr(project.config, key)):
            for index, pattern in enumerate(entry.match):
                if not any(fnmatchcase(name, pattern) for name in names):
                    from odfbuild.project.config import place_in_config

                    path = ("content", key, number, "match", index)
                    yield ProjectError(
                        f"no dataset is called '{pattern}', so this entry of `{key}` does nothing",
                        code="E0151",
                        location=place_in_config(project.config.root, *path),
                        help=did_you_mean(
                            pattern, names.values(), "correct the pattern, or remove it"
                        ),
                    )
    if any(each.columns != ShownColumns() for each in project.config.show):
        yield from _idle_columns(project, names.values(), projections, wrong)
    if project.config.descriptions:
        yield from _idle_descriptions(project, names.values(), projections, wrong)


def _idle_columns(
    project: Project,
    names: Iterable[str],
    projections: Mapping[str, Projection],
    wrong: Collection[str],
) -> Iterator[OdfbuildError]:
    """Patterns of columns in `show`: one with a typing error would let values out."""
    from odfbuild.plan.columns.known import KnownColumns
    from odfbuild.project.config import place_in_config

    show = project.config.show
    known = KnownColumns(project.definitions, projections, wrong)
    about: dict[int, list[str]] = {}
    for name in names:
        entry = last_matching(show, name)
        if entry is not None:
            about.setdefault(show.index(entry), []).append(name)
    for number, datasets in about.items():
        columns = _columns_of(datasets, known, projections)
        for key in ("include", "exclude") if columns is not None else ():
            for index, pattern in enumerate(getattr(show[number].columns, key)):
                if not any(fnmatchcase(each, pattern) for each in columns or ()):
                    path = ("content", "show", number, "columns", key, index)
                    place = place_in_config(project.config.root, *path)
                    yield _no_column(pattern, columns or (), place)


def _idle_descriptions(
    project: Project,
    names: Iterable[str],
    projections: Mapping[str, Projection],
    wrong: Collection[str],
) -> Iterator[OdfbuildError]:
    """Columns in `descriptions` that none of the datasets has."""
    from odfbuild.plan.columns.known import KnownColumns
    from odfbuild.project.config import place_in_config

    known, names = KnownColumns(project.definitions, projections, wrong), tuple(names)
    for number, entry in enumerate(project.config.descriptions):
        about = [name for name in names if matching(entry, name) is not None]
        columns = _columns_of(about, known, projections)
        for column in entry.columns if columns is not None else ():
            if column.lower() not in (columns or ()):
                path = ("content", "descriptions", number, "columns", column)
                place = place_in_config(project.config.root, *path)
                yield _no_column(column, columns or (), place)


def _columns_of(
    datasets: Iterable[str], known: KnownColumns, projections: Mapping[str, Projection]
) -> set[str] | None:
    """Names in lower case of all columns of datasets; `None` where only data can tell."""
    from odfbuild.plan.columns.evolution import committed_columns

    columns: set[str] = set()
    for name in datasets:
        found = known.relation(name)
        if found is None:
            return None
        state = projections.get(name)
        committed = committed_columns(state) if state is not None else None
        columns |= {each.name.lower() for each in (*found, *(committed or ()))}
    return columns


def _no_column(text: str, columns: Collection[str], place: Location) -> ProjectError:
    return ProjectError(
        f"no dataset of this entry has a column '{text}'",
        code="E1220",
        location=place,
        help=did_you_mean(text, columns, "correct the name, or remove it"),
    )
