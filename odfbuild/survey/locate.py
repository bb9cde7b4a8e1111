"""From a place in a query to the place in the file that defines it."""

from __future__ import annotations

import re
from dataclasses import replace

from odfbuild.errors import EngineProblem, Errors, Location, OdfbuildError
from odfbuild.odf.model import AddPushSource, MetadataEvent, SetPollingSource, SetTransform
from odfbuild.project.locate import locate_in_query, locate_path
from odfbuild.project.model import Definition, Project

_QUERY = re.compile(r"quer(?:y|ies\[(\d+)\])")
_STEP = re.compile(r"(fetch|prepare)(?:\[(\d+)\]|\.(\w+))?")


def locate(
    project: Project, dataset: str, error: OdfbuildError, *, push_source: str | None = None
) -> OdfbuildError:
    """`error` with a location in the project's files; unchanged where there is none for it.

    `push_source` names the source whose query is meant when a dataset has several.
    """
    definition = next((d for d in project.definitions if d.name == dataset), None)
    if definition is None or isinstance(error, EngineProblem):
        return error
    if isinstance(error, Errors):
        return Errors(_located(project, definition, each, push_source) for each in error.errors)
    return _located(project, definition, error, push_source)


def _located(
    project: Project, definition: Definition, error: OdfbuildError, push_source: str | None
) -> OdfbuildError:
    found = error.location
    if found is None:
        error.location = locate_path(project, definition, ("name",))
        return error
    step = _STEP.fullmatch(found.file)
    if step is not None:
        error.location = _in_source(project, definition, step)
        return error
    match = _QUERY.fullmatch(found.file)
    if match is None:
        return error
    error.location = _in_query(project, definition, int(match.group(1) or 0), found, push_source)
    return error


def _in_source(project: Project, definition: Definition, step: re.Match[str]) -> Location:
    index = next(
        i
        for i, event in enumerate(definition.snapshot.metadata)
        if isinstance(event, SetPollingSource)
    )
    inside = [int(step[2])] if step[2] else [step[3]] if step[3] else []
    return locate_path(project, definition, ["metadata", index, step[1], *inside])


def _in_query(
    project: Project,
    definition: Definition,
    step: int,
    found: Location,
    push_source: str | None,
) -> Location | None:
    for index, event in enumerate(definition.snapshot.metadata):
        member = _transform_member(event, push_source)
        if member is None:
            continue
        place = locate_in_query(
            project,
            definition,
            ("metadata", index, member),
            step,
            found.line or 1,
            found.column or 1,
        )
        if place is not None:
            return replace(place, length=max(place.length, found.length))
    return locate_path(project, definition, ("name",))


def _transform_member(event: MetadataEvent, push_source: str | None) -> str | None:
    if isinstance(event, SetTransform):
        return "transform"
    if isinstance(event, AddPushSource) and push_source not in (None, event.source_name):
        return None
    if isinstance(event, SetPollingSource | AddPushSource) and event.preprocess is not None:
        return "preprocess"
    return None
