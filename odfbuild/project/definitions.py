"""The definitions in a file, or everything that is wrong with them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

from odfbuild.errors import Errors, Location, OdfbuildError, ProjectError
from odfbuild.ingest.check import problems_of
from odfbuild.odf.decode_errors import DecodeErrors
from odfbuild.odf.identity import is_alias
from odfbuild.odf.model import AddPushSource, DatasetSnapshot, SetPollingSource
from odfbuild.odf.normalise import SnapshotErrors, normalise_snapshot
from odfbuild.odf.yaml_form import from_manifest
from odfbuild.project.columns import column_problems
from odfbuild.project.model import Config, Definition, WrongDefinition
from odfbuild.project.problems import is_about_value, located, old_form_problem
from odfbuild.project.query_files import with_query
from odfbuild.project.source import Source, read_sources
from odfbuild.project.sql_names import with_sql_names
from odfbuild.project.times import time_problems
from odfbuild.project.yaml.source import read_documents
from odfbuild.values import Value

_OF_TEMPLATES = re.compile(r"(?<!\$)\{\{|\{%")
"""What only templates have; `${{ … }}` is filled in when data is fetched."""


class Read(Value):
    """The definitions of a file that are right, and those that are wrong."""

    right: tuple[Definition, ...]
    wrong: tuple[WrongDefinition, ...] = ()


def read_file(config: Config, path: str) -> Read:
    """The definitions of one file; whatever is wrong with one of them, the others are given."""
    inside = f"{config.root}/"
    file = path[len(inside) :] if path.startswith(inside) else os.path.relpath(path, inside)
    right: list[Definition] = []
    wrong: list[WrongDefinition] = []
    try:
        sources = read_sources(config, file)
    except OdfbuildError as error:
        return Read((), (WrongDefinition(file=file, name=None, errors=error.apart()),))
    for source in sources:
        read = _decode(source)
        right += read.right
        wrong += read.wrong
    return Read(tuple(right), tuple(wrong))


def definitions_in(source: Source) -> list[Definition]:
    """The definitions of a text; raises `Errors` with all that is wrong in it."""
    read = _decode(source)
    if read.wrong:
        raise Errors(error for each in read.wrong for error in each.errors)
    return list(read.right)


def _decode(source: Source) -> Read:
    try:
        documents = read_documents(source.text, source.file)
    except ProjectError as error:
        told = _noted(source.translated(error), source)
        return Read((), (_wrong(source, _name_in(source.text), [told]),))
    right: list[Definition] = []
    wrong: list[WrongDefinition] = []
    if source.query is not None:
        try:
            documents = with_query(documents, source, source.query)
        except ProjectError as error:
            name = _name_of(next((each for each in documents if each is not None), None))
            return Read((), (_wrong(source, name, [error]),))
    for index, data in enumerate(documents):
        if data is None:
            continue  # nothing between two `---`, or after the last one
        try:
            snapshot = _snapshot(data, _Document(source, index))
        except Errors as error:
            errors = list(error.errors)
            if not wrong:
                errors[0] = _noted(errors[0], source)
            wrong.append(_wrong(source, _name_of(data), errors))
            continue
        right.append(
            Definition(content=snapshot, file=source.file, document=index, instance=source.instance)
        )
    return Read(tuple(right), tuple(wrong))


def _wrong(source: Source, name: str | None, errors: list[OdfbuildError]) -> WrongDefinition:
    return WrongDefinition(
        file=source.file,
        name=name,
        errors=tuple(errors),
        rendered=None if source.template is None else source.text,
        instance=source.instance,
    )


_NAME = re.compile(r"""^ *name: *["']?([\w./-]+)["']? *(?:#.*)?$""", re.MULTILINE)


def _name_in(text: str) -> str | None:
    """The name in a text that is no YAML, where there is just one that it can be."""
    found = [name for name in _NAME.findall(text) if is_alias(name)]
    return found[0] if len(found) == 1 else None


def _name_of(data: Any) -> str | None:
    """The name in a document that is no definition, where it has one."""
    content = data.get("content") if isinstance(data, dict) else None
    name = content.get("name") if isinstance(content, dict) else None
    return name if isinstance(name, str) and is_alias(name) else None


def _noted(error: OdfbuildError, source: Source) -> OdfbuildError:
    """The first error of a file, with a word about templates where it looks like one of them."""
    if source.template is None and _OF_TEMPLATES.search(source.text):
        return error.noted("`{{ … }}` and `{% … %}` are filled in where a file is called ….yaml.j2")
    return error


class _Document(Value):
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
    found += column_problems(snapshot, document.source, document.index)
    try:
        normal = normalise_snapshot(with_sql_names(snapshot))
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
                at = document.place(("content", "metadata", index, *path), value=True)
                yield error.at(at)


def _problems_of_times(snapshot: DatasetSnapshot, document: _Document) -> Iterator[OdfbuildError]:
    for path, error in time_problems(snapshot):
        *before, last = path
        # Columns in DDL may stand under either name.
        ddl = (*before[:-1], "ddlSchema", last)
        known = ddl if document.source.has(document.index, ddl) else path
        yield error.at(document.place(known, value=True))


def _not_a_snapshot(kind: Any, document: _Document) -> ProjectError:
    found = f"this document is of kind {kind}" if kind else "this document has no `kind`"
    return ProjectError(
        f"{found}, and only DatasetSnapshot defines a dataset",
        code="E0109",
        location=document.place(("kind",), value=True),
        help="begin it with `kind: DatasetSnapshot`, `version: 1`, `content:`; "
        "keep other files outside of the folder of definitions",
    )
