"""Where datasets, columns and variables are defined, and where they are used.

Reads the files that may name them; of a project only those of the datasets concerned.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from odfbuild.api.editor.completions import macros_of
from odfbuild.api.editor.explanations import definition_of, readers_of
from odfbuild.api.editor.outline import Entry
from odfbuild.api.editor.queries import result_names
from odfbuild.api.editor.sql_parts import SqlPart
from odfbuild.api.editor.subjects import (
    Dataset,
    Function,
    Key,
    NamedColumn,
    Opened,
    Span,
    Subject,
    Variable,
    View,
    matrix_names,
    names_dataset,
    schema_name,
    span_in,
)
from odfbuild.errors import Location, OdfbuildError, PlanError
from odfbuild.odf.model import SetTransform
from odfbuild.project.config import FILE
from odfbuild.project.load import unit_test_files
from odfbuild.project.model import Definition
from odfbuild.project.source import (
    QUERY_SUFFIXES,
    definition_files_of,
    query_file_of,
    read_text,
)
from odfbuild.sql.sql_words import words_of


def definition(view: View, subject: Subject) -> Span | None:
    """Where the thing is defined; `None`: nowhere in the project."""
    match subject:
        case Dataset():
            return of_dataset(view, subject.name)
        case NamedColumn() if subject.dataset is not None:
            return of_column(view, subject.dataset, subject.name)
        case Variable():
            return _of_variable(view, subject.name)
        case Function() | Key() | NamedColumn():
            return None


def open_file(root: Path, file: str) -> Opened | None:
    """A file below the root as it is now; `None` where it cannot be read, or belongs to none."""
    try:
        text = read_text(root / file, file)
    except OdfbuildError:
        return None
    if not file.endswith(QUERY_SUFFIXES):
        return Opened(file, text)
    found = (open_file(root, each) for each in definition_files_of(file))
    beside = next((each for each in found if each is not None), None)
    return None if beside is None else Opened(file, text, beside)


def opened(view: View, file: str) -> Opened | None:
    """A file of the project as it is now; `None` where it cannot be read."""
    if file == view.opened.file:
        return view.opened
    return open_file(view.found.project.config.root, file)


def view_of(view: View, file: str) -> View | None:
    """Another file of the same project."""
    found = opened(view, file)
    return None if found is None else View(view.found, found)


def views_of(view: View, file: str) -> list[View]:
    """A definition file, and the file with its query if it has one."""
    query = query_file_of(file)
    found = [view_of(view, each) for each in (file, query) if each is not None]
    return [each for each in found if each is not None]


def refused(message: str, help: str, place: Location | None = None) -> PlanError:
    """The error for what is not renamed."""
    return PlanError(f"not renamed: {message}", code="E0383", location=place, help=help)


def of_dataset(view: View, name: str) -> Span | None:
    """The name in a definition; of a template, the text that makes it."""
    found = definition_of(view, name)
    file = found.file if found is not None else _file_of_wrong(view, name)
    there = view_of(view, file) if file is not None else None
    if there is None:
        return None
    entry = entry_of_name(there, name, found)
    if entry is None:
        return Span(there.opened.file, 0, 0)
    return _unquoted(there.opened.file, entry)


def _file_of_wrong(view: View, name: str) -> str | None:
    wrong = view.found.project.wrong
    file = next((e.file for e in wrong if (e.name or "").lower() == name.lower()), None)
    if file is not None:
        return file
    errors = view.found.wrong.get(name, ())
    return next((each.location.file for each in errors if each.location is not None), None)


def entry_of_name(there: View, name: str, definition: Definition | None) -> Entry | None:
    """The name of a dataset in the file that defines it."""
    named = [e for e in there.opened.outline.entries if e.path == ("content", "name")]
    for entry in named:
        if entry.plain.lower() == name.lower():
            return entry
    for entry in named:
        if "{" in entry.plain and definition is not None:
            return entry
    return named[0] if len(named) == 1 else None


def _unquoted(file: str, entry: Entry) -> Span:
    quoted = entry.text != entry.plain
    return Span(file, entry.value[0] + quoted, entry.value[1] - quoted)


def of_column(view: View, dataset: str, column: str) -> Span | None:
    """The entry of a SELECT or the line of a schema that makes a column of a dataset."""
    found = definition_of(view, dataset)
    views = views_of(view, found.file) if found is not None else []
    if found is None or not views:
        return None
    document = found.document + views[0].shift
    there, part = last_query(views, document) or (views[0], None)
    for name, start, end in result_names(part.sql) if part is not None else ():
        if part is not None and name.lower() == column.lower():
            return span_in(there.opened.file, part, start, end)
    schema = schema_entry(views[0], document, column)
    if schema is not None:
        return schema
    for event in found.snapshot.metadata:
        for each in event.inputs if isinstance(event, SetTransform) else ():
            columns = view.columns.relation(str(each.dataset_ref)) or ()
            if any(one.name.lower() == column.lower() for one in columns):
                return of_column(view, str(each.dataset_ref), column)
    return None


def last_query(views: Iterable[View], document: int) -> tuple[View, SqlPart] | None:
    """The query that makes the records of a dataset, and its file."""
    found = [
        (there, part) for there in views for part in there.opened.parts if part.document == document
    ]
    return found[-1] if found else None


def schema_entry(there: View, document: int, column: str) -> Span | None:
    """The name of a column in the schema of a source."""
    for entry in there.opened.outline.entries:
        name = schema_name(entry) if entry.document == document else None
        if name is not None and name[0].lower() == column.lower():
            return Span(there.opened.file, *name[1])
    return None


def _of_variable(view: View, name: str) -> Span | None:
    for entry in matrix_names(view.opened):
        if entry.path[-1] == name and entry.key is not None:
            return Span(view.opened.defined_in.file, *entry.key)
    settings = opened(view, FILE)
    if settings is not None:
        found = settings.outline.entry(0, ("content", "vars", name))
        if found is not None and found.key is not None:
            return Span(FILE, *found.key)
    for file, macro in macros_of(view):
        if macro == name:
            text = opened(view, file)
            at = re.search(rf"macro\s+({re.escape(name)})", text.text if text else "")
            if at is not None:
                return Span(file, at.start(1), at.end(1))
    return None


# --- References ---


def references(view: View, name: str, *, declaration: bool = True) -> list[Span]:
    """All places that name a dataset: definitions, queries, unit tests, odfbuild.yaml."""
    found: list[Span] = []
    if declaration:
        place = of_dataset(view, name)
        found += [place] if place is not None else []
    for there in files_that_name(view, name):
        found += _in_file(there, name)
    return sorted(dict.fromkeys(found), key=lambda each: (each.file, each.start))


def column_references(
    view: View, dataset: str, column: str, *, declaration: bool = True
) -> list[Span]:
    """Where a column is made, and all words of queries that certainly name it."""
    made = of_column(view, dataset, column) if declaration else None
    found = [made] if made is not None else []
    for name in readers_of(view, dataset):
        reader = definition_of(view, name)
        for there in views_of(view, reader.file) if reader is not None else ():
            for part in there.opened.parts:
                if reader is None or part.document != reader.document + there.shift:
                    continue
                read, of = there.read(part), there.called(part, dataset)
                for each in read.columns if read is not None else ():
                    if each.table in of and each.column.name.lower() == column.lower():
                        found.append(span_in(there.opened.file, part, each.start, each.end))
    return sorted(dict.fromkeys(found), key=lambda each: (each.file, each.start))


def files_that_name(view: View, name: str) -> Iterator[View]:
    """Files that read a dataset, test it, or have settings for it by its exact name."""
    readers = set(readers_of(view, name))
    files = {each.file for each in view.found.project.definitions if each.name in readers}
    files |= {each.file for each in view.found.project.wrong}
    files |= {
        error.location.file
        for errors in view.found.wrong.values()
        for error in errors
        if error.location is not None and error.location.file != FILE
    }
    config = view.found.project.config
    root = f"{config.root}/"
    for path in unit_test_files(config.datasets, config.boundary.check_open, _ignore):
        files.add(path.removeprefix(root))
    for file in (*sorted(files), FILE):
        yield from views_of(view, file)


def _ignore(_: str, __: OdfbuildError) -> None:
    """What is wrong with links, a diagnostic says."""


def _in_file(there: View, name: str) -> Iterator[Span]:
    file, folded = there.opened.file, name.lower()
    for entry in there.opened.outline.entries:
        kind = there.opened.kind(entry.document)
        if entry.path and names_dataset(kind, entry.path) and entry.path != ("content", "name"):
            if entry.plain.lower() == folded:
                yield _unquoted(file, entry)
        elif entry.key is not None and kind == "UnitTests" and _is_given(entry, folded):
            yield Span(file, *entry.key)
    for part in there.opened.parts:
        aliases = there.called(part, name)
        if not aliases:
            continue
        words = [w for w in words_of(part.sql) if w.name.lower() in aliases]
        read = there.read(part)
        tables = {each.start for each in read.tables} if read else set()
        for word in words:
            if word.start in tables or word.name.lower() == folded:
                yield span_in(file, part, word.start, word.end)


def _is_given(entry: Entry, folded: str) -> bool:
    return entry.path[-2:-1] == ("given",) and str(entry.path[-1]).lower() == folded
