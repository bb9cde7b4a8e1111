"""A query in a file of its own: its text becomes `query` of the definition beside it.

From there on it is as if the definition had it, so that manifests and chains stay as they are.
Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from odfbuild.errors import Location, ProjectError
from odfbuild.project.source import Source

Path = tuple[str | int, ...]


def with_query(documents: Sequence[Any], source: Source, query: Source) -> list[Any]:
    """The documents of a definition file, with the text of `query` in the one that takes it.

    Raises `ProjectError` E0128 where there is no such one, or it has a query already.
    """
    found = list(_transforms(documents))
    if len(found) != 1:
        many = "several" if found else "no"
        raise ProjectError(
            f"{query.file} has a query, and {source.file} has {many} SetTransform for it",
            code="E0128",
            location=Location(query.file),
            help="define one derivative in that file, or move the query into the definition, as "
            "`query`, and delete this file",
        )
    document, path = found[0]
    transform = _at(documents[document], path)
    own = next((key for key in ("query", "queries") if key in transform), None)
    if own is not None:
        raise ProjectError(
            f"the query is in {query.file}, too",
            code="E0128",
            location=source.locate(document, (*path, own)),
            help=f"delete `{own}` here, or delete {query.file}",
        )
    made = list(documents)
    made[document] = _replaced(documents[document], path, {**transform, "query": query.text})
    return made


def _transforms(documents: Sequence[Any]) -> Iterator[tuple[int, Path]]:
    """Where the transformations of SetTransform are, by document."""
    for number, document in enumerate(documents):
        content = document.get("content") if isinstance(document, dict) else None
        events = content.get("metadata") if isinstance(content, dict) else None
        for index, event in enumerate(events if isinstance(events, list) else ()):
            if not isinstance(event, dict) or event.get("kind") != "SetTransform":
                continue
            if isinstance(event.get("transform"), dict):
                yield number, ("content", "metadata", index, "transform")


def _at(data: Any, path: Path) -> Any:
    for key in path:
        data = data[key]
    return data


def _replaced(data: Any, path: Path, value: Any) -> Any:
    """A copy of `data` with another value at `path`; what was read is kept by others."""
    if not path:
        return value
    key, *rest = path
    made = list(data) if isinstance(data, list) else dict(data)
    made[key] = _replaced(data[key], tuple(rest), value)  # type: ignore[index]
    return made
