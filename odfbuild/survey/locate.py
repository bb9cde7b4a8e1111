"""From a place in a query to the place in the file that defines it."""

from __future__ import annotations

from dataclasses import replace

from odfbuild.errors import EngineProblem, InDefinition, Location, OdfbuildError
from odfbuild.odf.model import AddPushSource, MetadataEvent, SetPollingSource, SetTransform
from odfbuild.project.locate import locate_in_query, locate_path
from odfbuild.project.model import Definition, Project


def locate(
    project: Project, dataset: str, error: OdfbuildError, *, push_source: str | None = None
) -> OdfbuildError:
    """`error` with a location in the project's files; unchanged where there is none for it.

    `push_source` names the source whose query is meant when a dataset has several.
    """
    definition = next((d for d in project.definitions if d.name == dataset), None)
    if definition is None or isinstance(error, EngineProblem):
        return error
    return error.mapped(lambda each: _located(project, definition, each, push_source))


def _located(
    project: Project, definition: Definition, error: OdfbuildError, push_source: str | None
) -> OdfbuildError:
    found = error.location
    if found is None:
        return error.at(locate_path(project, definition, ("name",)))
    if not isinstance(found, InDefinition):
        return error
    if found.path[0] == "queries":
        return error.at(_in_query(project, definition, found, push_source))
    events = definition.snapshot.metadata
    index = next(i for i, event in enumerate(events) if isinstance(event, SetPollingSource))
    return error.at(locate_path(project, definition, ("metadata", index, *found.path)))


def _in_query(
    project: Project, definition: Definition, found: InDefinition, push_source: str | None
) -> Location:
    for index, event in enumerate(definition.snapshot.metadata):
        member = _transform_member(event, push_source)
        if member is None:
            continue
        place = locate_in_query(
            project,
            definition,
            ("metadata", index, member),
            int(found.path[1]),
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
