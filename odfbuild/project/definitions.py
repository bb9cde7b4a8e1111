"""The definitions in a file, or everything that is wrong with them."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from odfbuild.errors import Errors, Location, OdfbuildError, ProjectError
from odfbuild.ingest.check import problems_of
from odfbuild.odf.decode_errors import DecodeErrors
from odfbuild.odf.identity import DatasetAlias, identifier_of, is_alias
from odfbuild.odf.model import (
    AddPushSource,
    DatasetSnapshot,
    SetPollingSource,
    SetTransform,
    TransformInput,
    TransformSql,
)
from odfbuild.odf.normalise import SnapshotErrors, normalise_snapshot
from odfbuild.odf.yaml_form import from_manifest
from odfbuild.project.columns import column_problems
from odfbuild.project.model import Config, Definition, WrongDefinition
from odfbuild.project.problems import is_about_value, located, old_form_problem
from odfbuild.project.source import Source, read_sources
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


_WORD = re.compile(r"\w+")


def with_sql_names(snapshot: DatasetSnapshot) -> DatasetSnapshot:
    """The definition, with aliases for inputs that its queries call by their names in SQL."""
    events = tuple(
        _named(each) if isinstance(each, SetTransform) else each for each in snapshot.metadata
    )
    same = all(one is other for one, other in zip(events, snapshot.metadata, strict=True))
    return snapshot if same else replace(snapshot, metadata=events)


def _named(event: SetTransform) -> SetTransform:
    possible = _possible(event.inputs)
    if not possible:
        return event
    texts = _texts(event.transform)
    words = {word.lower() for text in texts for word in _WORD.findall(text)}
    if words.isdisjoint(possible):  # most queries: nothing is parsed
        return event
    taken = {each.alias.lower() for each in event.inputs if each.alias is not None}
    taken |= {each.alias.lower() for each in event.transform.queries or () if each.alias}
    read = _tables(texts) - taken
    aliases = {possible[name]: name for name in read if name in possible}
    # What a query calls by both names can have only one: that of its dataset stays.
    aliases = {index: name for index, name in aliases.items() if _is_free(event, index, read)}
    if not aliases:
        return event
    inputs = tuple(
        replace(each, alias=identifier_of(str(each.dataset_ref))) if index in aliases else each
        for index, each in enumerate(event.inputs)
    )
    return replace(event, inputs=inputs)


def _is_free(event: SetTransform, index: int, read: set[str]) -> bool:
    return str(event.inputs[index].dataset_ref).lower() not in read


def _possible(inputs: tuple[TransformInput, ...]) -> dict[str, int]:
    """Places of inputs by their names in SQL, where each stands for one of them only."""
    found = [
        (identifier_of(str(each.dataset_ref)).lower(), index)
        for index, each in enumerate(inputs)
        if each.alias is None and isinstance(each.dataset_ref, DatasetAlias)
    ]
    times = Counter(name for name, _ in found)
    return {
        name: index
        for name, index in found
        if times[name] == 1 and name != str(inputs[index].dataset_ref).lower()
    }


def _texts(transform: TransformSql) -> list[str]:
    own = [transform.query] if transform.query is not None else []
    return [*own, *(step.query for step in transform.queries or ())]


def _tables(texts: list[str]) -> set[str]:
    """Names in lower case that queries read from; none of a query that is not understood."""
    from odfbuild.sql.parsed import tables_in

    return {name for text in texts for name in tables_in(text)}
