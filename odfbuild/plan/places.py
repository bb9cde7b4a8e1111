"""Places of the parts of a definition in the project's files.

Planning reads no files; it names a place by its path, and what it was handed looks it up. Only
refusals ask, so a plan without them costs nothing here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from odfbuild.errors import InDefinition, Location, Path
from odfbuild.odf.model import AddPushSource, DatasetSnapshot, MetadataEvent
from odfbuild.project.model import Definition
from odfbuild.values import Value

__all__ = ["FileOnly", "Path", "Place", "path_of", "placed"]


class Place(Protocol):
    """The places of one definition. Paths begin below its `content`."""

    def of(self, *paths: Path) -> Location:
        """The place of the first value that the file has, or of the nearest one above the last."""
        ...

    def in_query(self, path: Path, step: int, line: int, column: int | None = None) -> Location:
        """The place of a line, or of a column in it, of query number `step` of a transform.

        Both count from 1; `path` leads to the transform.
        """
        ...


class FileOnly(Value):
    """Names the file of a definition and nothing more."""

    definition: Definition

    def of(self, *paths: Path) -> Location:
        """See `Place.of`."""
        return Location(self.definition.file, instance=self.definition.instance)

    def in_query(self, path: Path, step: int, line: int, column: int | None = None) -> Location:
        """See `Place.in_query`."""
        return self.of(path)


def placed(found: Location | None, path: Path, place: Place) -> Location | None:
    """A place in the text of a query of the transform at `path` as one in the project's file."""
    if not isinstance(found, InDefinition) or found.line is None:
        return place.of(path)
    at = place.in_query(path, int(found.path[1]), found.line, found.column)
    return replace(at, length=max(at.length, found.length)) if at.snippet else at


def path_of(snapshot: DatasetSnapshot, event: MetadataEvent) -> Path:
    """The path of the definition's event that `event` was made from.

    What a removed event leads to, such as a disabled source, comes from the list itself.
    """
    wanted = _slot(event)
    for index in range(len(snapshot.metadata) - 1, -1, -1):
        if _slot(snapshot.metadata[index]) == wanted:
            return ("metadata", index)
    return ("metadata",)


def _slot(event: MetadataEvent) -> tuple[type, str | None]:
    return type(event), event.source_name if isinstance(event, AddPushSource) else None
