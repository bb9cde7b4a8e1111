"""The definitions in a file, or everything that is wrong with them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

from odfbuild.errors import Errors, Location, OdfbuildError, ProjectError
from odfbuild.ingest.check import problems_of
from odfbuild.odf.decode_errors import DecodeErrors
from odfbuild.odf.model import AddPushSource, DatasetSnapshot, SetPollingSource
from odfbuild.odf.normalise import SnapshotErrors, normalise_snapshot
from odfbuild.odf.yaml_form import from_manifest
from odfbuild.project.model import Config, Definition
from odfbuild.project.problems import is_about_value, located, old_form_problem
from odfbuild.project.source import Source, read_sources
from odfbuild.project.times import time_problems
from odfbuild.project.yaml.plain import read_documents
from odfbuild.values import dataclass


@dataclass(frozen=True, slots=True)
class Decoded:
    """A definition, and the document that says it as plain values."""

    definition: Definition
    data: Any


_OF_TEMPLATES = re.compile(r"(?<!\$)\{\{|\{%")
"""What only templates have; `${{ … }}` is filled in when data is fetched."""


def snapshot_of(data: Any) -> DatasetSnapshot:
    """The definition in a document that is known to be right."""
    return normalise_snapshot(from_manifest("DatasetSnapshot", data))


def read_file(config: Config, path: str) -> tuple[Decoded, ...]:
    """The definitions of one file; raises `ProjectError` or `Errors`, with all that is wrong."""
    inside = f"{config.root}/"
    file = path[len(inside) :] if path.startswith(inside) else os.path.relpath(path, inside)
    found: list[Decoded] = []
    errors: list[OdfbuildError] = []
    for source in read_sources(config, file):
        try:
            found += _decode(source)
        except Errors as error:
            errors.extend(error.errors)
    if errors:
        raise Errors(errors)
    return tuple(found)


def definitions_in(source: Source) -> list[Definition]:
    """The definitions of a text; raises `Errors` with all that is wrong in it."""
    return [each.definition for each in _decode(source)]


def _decode(source: Source) -> list[Decoded]:
    try:
        documents = read_documents(source.text, source.file)
    except ProjectError as error:
        raise Errors([_noted(source.translated(error), source)]) from None
    found: list[Decoded] = []
    errors: list[OdfbuildError] = []
    for index, data in enumerate(documents):
        if data is None:
            continue  # nothing between two `---`, or after the last one
        try:
            snapshot = _snapshot(data, _Document(source, index))
        except Errors as error:
            errors.extend(error.errors)
            continue
        definition = Definition(
            snapshot=snapshot, file=source.file, document=index, instance=source.instance
        )
        found.append(Decoded(definition, data))
    if errors:
        raise Errors([_noted(errors[0], source), *errors[1:]])
    return found


def _noted(error: OdfbuildError, source: Source) -> OdfbuildError:
    """The first error of a file, with a word about templates where it looks like one of them."""
    if source.template is None and _OF_TEMPLATES.search(source.text):
        error.notes += ("`{{ … }}` and `{% … %}` are filled in where a file is called ….yaml.j2",)
    return error


@dataclass(frozen=True, slots=True)
class _Document:
    """A YAML document of a file or of an instance of a template."""

    source: Source
    index: int

    def place(self, path: tuple[str | int, ...], value: bool = False) -> Location:
        return self.source.locate(self.index, path, value=value)


def _snapshot(data: Any, document: _Document) -> DatasetSnapshot:
    kind = data.get("kind") if isinstance(data, dict) else None
    if kind != "DatasetSnapshot":
        raise Errors([_not_a_snapshot(kind, document)])
    try:
        snapshot = from_manifest("DatasetSnapshot", data)
    except DecodeErrors as error:
        source = document.source
        old = old_form_problem(data, document.place, source.file, source.template is not None)
        if old is not None:
            raise Errors([old]) from None
        raise Errors(
            located(each, document.place(each.path, value=is_about_value(each)))
            for each in error.errors
        ) from None
    found = list(_problems_of_sources(snapshot, document))
    found += _problems_of_times(snapshot, document)
    try:
        normal = normalise_snapshot(snapshot)
    except SnapshotErrors as error:
        found += [
            ProjectError(
                problem.message,
                code=problem.code,
                location=document.place(("content", *problem.path)),
                help=problem.help,
            )
            for problem in error.problems
        ]
    if found:
        raise Errors(found)
    return normal


def _problems_of_sources(snapshot: DatasetSnapshot, document: _Document) -> Iterator[OdfbuildError]:
    for index, event in enumerate(snapshot.metadata):
        if isinstance(event, SetPollingSource | AddPushSource):
            for path, error in problems_of(event):
                error.location = document.place(("content", "metadata", index, *path), value=True)
                yield error


def _problems_of_times(snapshot: DatasetSnapshot, document: _Document) -> Iterator[OdfbuildError]:
    for path, error in time_problems(snapshot):
        *before, last = path
        # Columns in DDL may stand under either name.
        ddl = (*before[:-1], "ddlSchema", last)
        known = ddl if document.source.has(document.index, ddl) else path
        error.location = document.place(known, value=True)
        yield error


def _not_a_snapshot(kind: Any, document: _Document) -> ProjectError:
    found = f"this document is of kind {kind}" if kind else "this document has no `kind`"
    return ProjectError(
        f"{found}, and only DatasetSnapshot defines a dataset",
        code="E0109",
        location=document.place(("kind",), value=True),
        help="begin it with `kind: DatasetSnapshot`, `version: 1`, `content:`; "
        "keep other files outside of the folder of definitions",
    )
