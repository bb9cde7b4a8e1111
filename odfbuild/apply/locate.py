"""From a place in a query to the place in the file that defines it."""

from __future__ import annotations

import re
from dataclasses import replace

from odfbuild.errors import Errors, Location, OdfbuildError
from odfbuild.odf.model import MetadataEvent, SetPollingSource, SetTransform
from odfbuild.project.locate import locate_in_query, locate_path
from odfbuild.project.model import Definition, Project

_QUERY = re.compile(r"quer(?:y|ies\[(\d+)\])")


def locate(project: Project, dataset: str, error: OdfbuildError) -> OdfbuildError:
    """`error` with a location in the project's files; unchanged where there is none for it."""
    definition = next((d for d in project.definitions if d.name == dataset), None)
    if definition is None:
        return error
    if isinstance(error, Errors):
        return Errors(_located(project, definition, each) for each in error.errors)
    return _located(project, definition, error)


def _located(project: Project, definition: Definition, error: OdfbuildError) -> OdfbuildError:
    found = error.location
    if found is None:
        error.location = locate_path(project, definition, ("name",))
        return error
    match = _QUERY.fullmatch(found.file)
    if match is None:
        return error
    error.location = _in_query(project, definition, int(match.group(1) or 0), found)
    return error


def _in_query(
    project: Project, definition: Definition, step: int, found: Location
) -> Location | None:
    for index, event in enumerate(definition.snapshot.metadata):
        member = _transform_member(event)
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


def _transform_member(event: MetadataEvent) -> str | None:
    if isinstance(event, SetTransform):
        return "transform"
    if isinstance(event, SetPollingSource) and event.preprocess is not None:
        return "preprocess"
    return None
