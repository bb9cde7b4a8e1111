"""Places of changed events in the project's files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from odfbuild.errors import Location, OdfbuildError
from odfbuild.odf.yaml_form import to_data
from odfbuild.plan.model import DatasetPlan, EventChange, Plan
from odfbuild.plan.places import Path, path_of
from odfbuild.project.model import Definition, Project
from odfbuild.project.source import Source, read_sources


def with_places(plan: Plan, changed: Iterable[DatasetPlan], project: Project) -> Plan:
    """The plan with the places of the changes to `changed`; reads their files again."""
    finder = PlaceFinder(project)
    placed = {dataset.name: _placed(dataset, finder) for dataset in changed}
    return replace(plan, datasets=tuple(placed.get(d.name, d) for d in plan.datasets))


def _placed(dataset: DatasetPlan, finder: PlaceFinder) -> DatasetPlan:
    changes = [replace(c, location=finder.find(dataset.name, c)) for c in dataset.changes]
    return replace(dataset, changes=tuple(changes))


class PlaceFinder:
    """Finds places in the files of a project, reading each file once."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._definitions = {definition.name: definition for definition in project.definitions}
        self._sources: dict[str, list[Source]] = {}

    def find(self, dataset: str, change: EventChange) -> Location | None:
        """The first line of the definition that makes the change; `None`: it cannot be told."""
        definition = self._definitions.get(dataset)
        source = self._source(definition) if definition else None
        if definition is None or source is None:
            return None
        base = ("content", *path_of(definition.snapshot, change.after))
        if change.before is None or type(change.before) is not type(change.after):
            return source.locate(definition.document, base)
        path, line = _first_difference(to_data(change.before), to_data(change.after))
        if "queries" in path and "queries" not in source.text:
            # The file says `query` where the definition in normal form has `queries`.
            path = ("transform", "query") if path[0] == "transform" else ("preprocess", "query")
        if line is not None:
            place = source.locate_in_scalar(definition.document, (*base, *path), line, 1)
            if place is not None:
                return place
        return source.locate(definition.document, (*base, *path))

    def _source(self, definition: Definition) -> Source | None:
        file = definition.file
        if file not in self._sources:
            try:
                self._sources[file] = read_sources(self._project.config, file)
            except (OdfbuildError, OSError):
                # Somebody is editing the file right now; the plan needs no line numbers to hold.
                self._sources[file] = []
        found = (s for s in self._sources[file] if s.instance == definition.instance)
        return next(found, None)


def _first_difference(before: Any, after: Any) -> tuple[Path, int | None]:
    """The path to the first value that differs and, in a text of several lines, its line."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in (*after, *before):
            if before.get(key) != after.get(key):
                path, line = _first_difference(before.get(key), after.get(key))
                return (key, *path), line
    if isinstance(before, list) and isinstance(after, list):
        for index, (old, new) in enumerate(zip(before, after, strict=False)):
            if old != new:
                path, line = _first_difference(old, new)
                return (index, *path), line
    if isinstance(before, str) and isinstance(after, str):
        return (), _first_line(before.splitlines(), after.splitlines())
    return (), None


def _first_line(before: Sequence[str], after: Sequence[str]) -> int:
    for number, (old, new) in enumerate(zip(before, after, strict=False), 1):
        if old != new:
            return number
    return max(1, min(len(before) + 1, len(after)))
