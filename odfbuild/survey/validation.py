"""All that is wrong with a project by its text: for `validate`, and for editors while one types."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace

from odfbuild.errors import Code, OdfbuildError, in_order
from odfbuild.plan.graph.build import find_graph
from odfbuild.project.definitions import read_file
from odfbuild.project.model import Definition, Project
from odfbuild.project.source import query_file_of
from odfbuild.survey.definitions import Definitions
from odfbuild.survey.faults import all_faults
from odfbuild.survey.queries import wrong_queries, wrong_queries_of
from odfbuild.survey.settings import wrong_settings
from odfbuild.survey.unit_tests import unit_tests_of

OF_ALL = (Code.CIRCULAR, Code.CIRCULAR_CHECK)
"""Errors that only a look at all datasets finds: circles among them."""


def all_that_is_wrong(found: Definitions, *, engine_follows: bool = False) -> list[OdfbuildError]:
    """What is wrong with definitions, queries, settings and unit tests.

    `engine_follows`: queries that are not understood are left to the engine.
    """
    of_queries = wrong_queries(found, engine_follows=engine_follows).values()
    wrong = in_order([*found.errors, *(error for errors in of_queries for error in errors)])
    wrong += wrong_settings(found)
    wrong += unit_tests_of(found)[1]
    return wrong


def with_file_again(found: Definitions, file: str) -> tuple[Definitions, list[OdfbuildError]]:
    """The project with one file of definitions read again, and what is wrong in this file.

    A file with its query belongs to it. `file` is relative to the root. The work does not grow
    with the number of other datasets, but for their names: the graph stays as it was, and so do
    errors in other files.
    """
    project = found.project
    read = read_file(project.config, f"{project.config.root}/{file}")
    own: Sequence[Definition] = read.right
    if project.config.external:
        from odfbuild.project.references import with_names_here

        own = tuple(with_names_here(own, project.config))
    others = dict(found.by_name)
    for each in found.by_file.get(file, ()):
        others.pop(each.folded, None)
    wrong_files = [each for each in project.wrong if each.file != file]
    files = {file, query_file_of(file)}
    wrong = _elsewhere(found.wrong, files)
    beside = [others[each.folded] for each in own if each.folded in others]
    small = Project(
        config=project.config,
        definitions=tuple(sorted((*beside, *own), key=lambda each: (each.file, each.document))),
        wrong=(*wrong_files, *read.wrong),
    )
    graph = find_graph(small, found.projections, damaged=_named(own, others, wrong))
    faults = all_faults(replace(small, wrong=read.wrong), graph, {})
    folded = {name.lower() for name in faults}
    right = [each for each in own if each.folded not in folded]
    by_name = {**others, **{each.folded: each for each in right}}
    again = replace(
        found,
        project=replace(
            project, definitions=tuple(by_name.values()), wrong=(*wrong_files, *read.wrong)
        ),
        wrong={**wrong, **faults},
    )
    vars(again).update(by_name=by_name, by_file={**found.by_file, file: tuple(right)})
    errors = [each for of_one in faults.values() for each in of_one]
    errors += [each for some in wrong_queries_of(again, right).values() for each in some]
    return again, in_order(each for each in errors if _is_in(each, files))


def unit_tests_again(found: Definitions, file: str) -> list[OdfbuildError]:
    """What is wrong in one file of unit tests."""
    return unit_tests_of(found, [os.path.join(found.project.config.root, file)])[1]  # noqa: PTH118


def _named(
    own: Sequence[Definition], others: Mapping[str, Definition], wrong: Iterable[str]
) -> list[str]:
    """Names of datasets that inputs may mean: those that are meant, or all, to suggest one."""
    read = {each.lower() for definition in own for each in definition.inputs}
    read -= {each.folded for each in own}
    if read <= others.keys():
        return [*(others[each].name for each in read), *wrong]
    taken = {each.folded for each in own}
    return [*(each.name for folded, each in others.items() if folded not in taken), *wrong]


def _elsewhere(
    wrong: Mapping[str, Sequence[OdfbuildError]], files: Container[str | None]
) -> dict[str, Sequence[OdfbuildError]]:
    kept = {name: [e for e in errors if not _is_in(e, files)] for name, errors in wrong.items()}
    return {name: errors for name, errors in kept.items() if errors}


def _is_in(error: OdfbuildError, files: Container[str | None]) -> bool:
    return error.location is not None and error.location.file in files
